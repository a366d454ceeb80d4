package policy

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// APIVersion and Kind of a policy's document.
const (
	APIVersion = "mooring.dev/v1alpha1"
	Kind       = "CheckPolicy"
)

// document is a policy as it is written.
type document struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metadata `json:"metadata"`
	Spec            spec     `json:"spec"`
}

type metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type spec struct {
	Code            string       `json:"code"`
	Level           string       `json:"level,omitempty"`
	Match           match        `json:"match,omitempty"`
	MatchConditions []expression `json:"matchConditions,omitempty"`
	Variables       []expression `json:"variables,omitempty"`
	Validations     []validation `json:"validations"`
}

type expression struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type validation struct {
	Expression        string `json:"expression"`
	Message           string `json:"message,omitempty"`
	MessageExpression string `json:"messageExpression,omitempty"`
	// Field is the path of the fault in the object, such as spec.http[0], for the line of the finding.
	Field string `json:"field,omitempty"`
	Mend  string `json:"mend,omitempty"`
}

var (
	codes = regexp.MustCompile(`^[A-Z][A-Z0-9_-]*[0-9]+$`)
	names = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Parse reads and compiles the policies of a file: one or more documents of kind CheckPolicy, and nothing else. The file's name is for messages. The error
// joins all that is wrong with the file.
func Parse(file string, data []byte) ([]*Policy, error) {
	var all []*Policy
	var errs []error
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for n := 1; ; n++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			break
		}
		p, err := parse(text)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: document %d: %w", file, n, err))
		case p != nil:
			p.File = file
			all = append(all, p)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

// parse reads one document; nil for an empty one.
func parse(text []byte) (*Policy, error) {
	var head metav1.TypeMeta
	if err := yaml.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	if head == (metav1.TypeMeta{}) && onlyComments(text) {
		return nil, nil
	}
	if head.APIVersion != APIVersion || head.Kind != Kind {
		return nil, fmt.Errorf("%q of %q is no policy; write apiVersion: %s and kind: %s", head.Kind, head.APIVersion, APIVersion, Kind)
	}
	var d document
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		return nil, fmt.Errorf("policy %s: %w", d.Metadata.Name, err)
	}
	if err := d.valid(); err != nil {
		return nil, fmt.Errorf("policy %s: %w", d.Metadata.Name, err)
	}
	p, err := compile(d)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", d.Metadata.Name, err)
	}
	return p, nil
}

func onlyComments(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}

// valid says what is wrong with a document before anything is compiled.
func (d *document) valid() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if d.Metadata.Name == "" {
		bad("metadata.name is missing")
	}
	switch {
	case !codes.MatchString(d.Spec.Code):
		bad("spec.code is %q; write capitals and a number, such as ACME001", d.Spec.Code)
	case strings.HasPrefix(d.Spec.Code, "MOOR"), strings.HasPrefix(d.Spec.Code, "IST"):
		bad("spec.code is %q; MOOR and IST are the prefixes of Mooring's and Istio's own rules", d.Spec.Code)
	}
	if d.Spec.Level == "" {
		d.Spec.Level = "Error"
	}
	if !slices.Contains([]string{"Error", "Warning", "Info"}, d.Spec.Level) {
		bad("spec.level is %q; write Error, Warning or Info", d.Spec.Level)
	}
	if len(d.Spec.Validations) == 0 {
		bad("spec.validations is empty: the policy would demand nothing")
	}
	seen := map[string]bool{}
	for i, v := range d.Spec.Variables {
		if !names.MatchString(v.Name) {
			bad("spec.variables[%d].name is %q; write letters, digits and underscores", i, v.Name)
		}
		if seen[v.Name] {
			bad("spec.variables[%d].name is %q, as that of an earlier one", i, v.Name)
		}
		seen[v.Name] = true
	}
	for _, err := range d.Spec.Match.valid() {
		bad("spec.match.%w", err)
	}
	return errors.Join(errs...)
}
