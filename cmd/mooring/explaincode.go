package main

import (
	"github.com/spf13/cobra"

	"github.com/mooring-dev/mooring/render/check"
)

// completeCodes offers the codes of findings, with what they mean.
func completeCodes(_ *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all []cobra.Completion
	for _, r := range check.Rules() {
		all = append(all, cobra.CompletionWithDesc(r.Code, r.Title))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
