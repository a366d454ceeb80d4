package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

type checkOptions struct {
	root   string
	output string
}

func (c *cli) checkCommand() *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:     "check PATH",
		GroupID: groupFiles,
		Short:   "Find the faults in a folder that would keep it out of the mesh",
		Long: `Render a folder and look at every object with Istio's own rules, strictly: what Istio would
accept and then drop in silence is a fault too. A finding of level Error keeps a commit out
of the cluster; the agent uses the same rules. No cluster is needed.

` + worktreeHelp + `

Exit code: 0 no finding of level Error, 1 at least one, 2 the folder could not be rendered or
checked.`,
		Example: `  mooring check overlays/prod
  mooring check overlays/prod -o json | jq '.findings[] | select(.level == "Error")'`,
		Args:              args(1, 1, "PATH"),
		ValidArgsFunction: completeFolders,
		RunE: func(cmd *cobra.Command, args []string) error {
			return cannotTell(c.check(cmd.Context(), o, args[0]))
		},
	}
	cmd.Flags().StringVar(&o.root, "root", "", "the root of the repository; default is the nearest folder above PATH with a .git")
	addOutputFlag(cmd, &o.output, outputText, outputJSON)
	_ = cmd.MarkFlagDirname("root")
	return cmd
}

func (c *cli) check(ctx context.Context, o *checkOptions, path string) error {
	set, err := renderPath(ctx, path, o.root)
	if err != nil {
		return err
	}
	findings, err := check.Check(ctx, set)
	if err != nil {
		return fmt.Errorf("check %s: %w", path, err)
	}
	if o.output == outputJSON {
		err = writeJSON(c.out, checkReport{Objects: len(set.Objects), Files: len(set.Files), Findings: findingsForJSON(findings)})
	} else {
		color := paletteFor(c.color, c.out, c.getenv)
		if err = c.printFindings(color, findings); err == nil {
			_, err = fmt.Fprintln(c.out, summary(color, set, findings))
		}
	}
	if err == nil && check.Blocks(findings) {
		return &exitError{code: exitFound}
	}
	return err
}

// printFindings writes the findings below the files that they are in. They come sorted by file.
func (c *cli) printFindings(color palette, findings []check.Finding) error {
	var b strings.Builder
	file := "\x00" // no file has this name, so that the first finding begins a group
	for i, f := range findings {
		if f.Origin.File != file {
			if i > 0 {
				b.WriteByte('\n')
			}
			file = f.Origin.File
			b.WriteString(color.bold(cmp.Or(file, "(made by the kustomization)")) + "\n")
		}
		place := ""
		if f.Origin.Line > 0 {
			place = fmt.Sprintf("line %d: ", f.Origin.Line)
		}
		level := string(f.Level)
		fmt.Fprintf(&b, "  %s%s %s %s\n", place, color.ofLevel(level)(level), f.Code, f.Subject())
		message := f.Message
		if f.Field != "" {
			message = f.Field + ": " + message
		}
		fmt.Fprintf(&b, "    %s\n", oneLine(message))
		if f.Mend != "" {
			fmt.Fprintf(&b, "    %s\n", color.dim(oneLine(f.Mend)))
		}
	}
	if len(findings) > 0 {
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(c.out, b.String())
	return err
}

// summary is the last line: what was found in how much.
func summary(color palette, set *render.Set, findings []check.Finding) string {
	in := fmt.Sprintf("%s from %s", plural(len(set.Objects), "object"), plural(len(set.Files), "file"))
	if len(findings) == 0 {
		return fmt.Sprintf("%s: %s", in, color.green("no finding"))
	}
	var counts []string
	for _, level := range []check.Level{check.Error, check.Warning, check.Info} {
		n := 0
		for _, f := range findings {
			if f.Level == level {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, color.ofLevel(string(level))(plural(n, levelNoun(level))))
		}
	}
	return fmt.Sprintf("%s: %s", in, strings.Join(counts, ", "))
}

// levelNoun is what findings of a level are called when they are counted.
func levelNoun(level check.Level) string {
	if level == check.Info {
		return "hint"
	}
	return strings.ToLower(string(level))
}

// checkReport is the answer of check as JSON. Its names are a promise to the scripts that read it.
type checkReport struct {
	Objects  int           `json:"objects"`
	Files    int           `json:"files"`
	Findings []jsonFinding `json:"findings"`
}

type jsonFinding struct {
	Code   string `json:"code"`
	Level  string `json:"level"`
	Object jsonID `json:"object"`
	// From is what the object was made of, where nobody wrote it.
	From    *jsonID `json:"from,omitempty"`
	File    string  `json:"file,omitempty"`
	Line    int     `json:"line,omitempty"`
	Field   string  `json:"field,omitempty"`
	Message string  `json:"message"`
	Mend    string  `json:"mend,omitempty"`
}

type jsonID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// findingsForJSON gives a list that is never null.
func findingsForJSON(findings []check.Finding) []jsonFinding {
	all := make([]jsonFinding, len(findings))
	for i, f := range findings {
		all[i] = jsonFinding{
			Code: f.Code, Level: string(f.Level), Object: jsonID(f.Object), File: f.Origin.File, Line: f.Origin.Line,
			Field: f.Field, Message: f.Message, Mend: f.Mend,
		}
		if f.From != (render.ID{}) {
			from := jsonID(f.From)
			all[i].From = &from
		}
	}
	return all
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
