package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// The values of --output. A command offers those that make sense for it; the first is its default.
const (
	outputText  = "text"
	outputTable = "table"
	outputWide  = "wide"
	outputYAML  = "yaml"
	outputJSON  = "json"
)

// addOutputFlag adds -o with the forms that a command can print.
func addOutputFlag(cmd *cobra.Command, output *string, forms ...string) {
	cmd.Flags().VarP(choice(output, forms...), "output", "o", "form of the output: "+strings.Join(forms, ", "))
	completeChoices(cmd, "output", forms...)
}

// writeYAML prints values as YAML documents.
func writeYAML(w io.Writer, value any) error {
	out, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("print as YAML: %w", err)
	}
	_, err = w.Write(out)
	return err
}

// writeJSON prints a value as indented JSON.
func writeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return fmt.Errorf("print as JSON: %w", err)
	}
	return nil
}

// listOf wraps objects as kubectl does, so that the output of get can be read by the same tools.
func listOf(items []runtime.Object) map[string]any {
	if items == nil {
		items = []runtime.Object{}
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{}}
}
