package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func (c *cli) explainCommand() *cobra.Command {
	var becomes string
	var codes bool
	cmd := &cobra.Command{
		Use:     "explain CODE\n  mooring explain [FIELD]\n  mooring explain --becomes KIND [PATH]",
		GroupID: groupFiles,
		Short:   "Say what a finding means, or a field of an AppConfiguration",
		Long: `Say what a finding of mooring check means, by its CODE, such as MOOR002: what happens to the
traffic, why Istio says nothing, how it is mended, with an example that is wrong and one that is
right. --codes lists the codes.

Or say what a field of an AppConfiguration means: its type, what is allowed in it, its default, its
own fields, and the field of which Istio object it becomes. Without FIELD the blocks are listed.

FIELD is a path below spec, such as destinationRule.trafficPolicy; "spec." before it is fine. The
items of a list need no index, and the names in a map may be left out.

--becomes asks the other way round: which fields become this field of an Istio object? Without
PATH all that become something in objects of that kind are listed.

` + exitHelp,
		Example: `  mooring explain MOOR002
  mooring explain --codes
  mooring explain
  mooring explain virtualService.routes.retries
  mooring explain --becomes DestinationRule spec.trafficPolicy.outlierDetection`,
		Args:              args(0, 1, "FIELD"),
		ValidArgsFunction: completeFields,
		RunE: func(cmd *cobra.Command, args []string) error {
			page := &explanation{color: paletteFor(c.color, c.out, c.getenv), width: widthOf(c.out)}
			path := strings.Join(args, "")
			root, err := appFields()
			switch {
			case codes && (path != "" || cmd.Flags().Changed("becomes")):
				err = usageErrorf(cmd.CommandPath(), "--codes lists all codes and goes with nothing else")
			case codes:
				page.codes()
			case !cmd.Flags().Changed("becomes") && isCode(path):
				err = page.code(path)
			case err != nil:
			case cmd.Flags().Changed("becomes"):
				err = page.reverse(root, becomes, path)
			case path == "":
				page.blocks(root)
			default:
				err = page.field(root, path)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.out, page.text.String())
			return err
		},
	}
	cmd.Flags().BoolVar(&codes, "codes", false, "list the codes of all findings, with their level and title")
	cmd.Flags().StringVar(&becomes, "becomes", "", "list the fields that become something in objects of this `KIND`, such as DestinationRule")
	return cmd
}

// explanation is what is printed.
type explanation struct {
	color palette
	// width of the terminal; 0 when the output is no terminal, and a line is as long as its text.
	width int
	text  strings.Builder
}

// blocks lists what a spec consists of.
func (e *explanation) blocks(root *appField) {
	e.paragraphs(root.description())
	e.text.WriteByte('\n')
	t := &table{head: []string{"BLOCK", "BECOMES", "WHAT IT IS"}, width: e.width}
	for _, f := range root.fields {
		t.add(cell{text: f.name, paint: e.color.bold}, cell{text: strings.Join(f.kinds(), ", "), paint: e.color.dim}, plain(f.firstSentence()))
	}
	_ = t.write(&e.text) // a Builder takes everything
	e.text.WriteString("\nmooring explain FIELD says more of one of them.\n")
}

// field says all that is known of one field.
func (e *explanation) field(root *appField, path string) error {
	f, err := root.find(path)
	if err != nil {
		return err
	}
	e.fact("FIELD", e.color.bold("spec."+f.path()))
	e.fact("TYPE", f.typeName())
	e.fact("REQUIRED", f.requiredText())
	for _, fact := range f.limits() {
		e.fact(fact.name, fact.value)
	}
	e.fact("BECOMES", f.becomesText())
	if text := f.description(); text != "" {
		e.text.WriteByte('\n')
		e.paragraphs(text)
	}
	if len(f.fields) > 0 {
		e.text.WriteString("\n" + e.color.bold("FIELDS") + "\n")
		all := f.below()
		depth := f.depth() + 1
		e.table(all, 1, func(f *appField) string {
			return strings.Repeat("  ", f.depth()-depth) + f.name
		})
	}
	return nil
}

// reverse lists the fields that become a field of an Istio object.
func (e *explanation) reverse(root *appField, kind, path string) error {
	found, err := root.becoming(kind, path)
	if err != nil {
		return err
	}
	e.table(found, 0, func(f *appField) string { return f.path() })
	return nil
}

const factColumn = 10

// fact writes a line "NAME  value"; one without a value is left out.
func (e *explanation) fact(name, value string) {
	if value == "" {
		return
	}
	width := e.width
	if width > 0 {
		width = max(width-factColumn, minLastColumn)
	}
	for i, line := range wrapText(value, width) {
		if i > 0 {
			name = ""
		}
		e.text.WriteString(e.color.dim(fmt.Sprintf("%-*s", factColumn, name)) + line + "\n")
	}
}

// paragraphs writes a text, wrapped where it is a terminal.
func (e *explanation) paragraphs(text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			e.text.WriteByte('\n')
		}
		for _, line := range wrapText(paragraph, e.width) {
			e.text.WriteString(line + "\n")
		}
	}
}

// table writes a line for each field: what it is called, its type, and the first sentence about it.
func (e *explanation) table(fields []*appField, indent int, name func(*appField) string) {
	t := &table{head: []string{"", "", ""}, width: e.width}
	for _, f := range fields {
		kind := f.typeName()
		if f.required {
			kind += ", required"
		}
		text := f.firstSentence()
		if text == "" {
			text = f.becomes()
		}
		t.add(plain(strings.Repeat("  ", indent)+name(f)), cell{text: kind, paint: e.color.dim}, plain(text))
	}
	lines := &strings.Builder{}
	_ = t.write(lines) // a Builder takes everything
	_, body, _ := strings.Cut(lines.String(), "\n")
	e.text.WriteString(body)
}

// wrapText breaks a text between words; a width of 0 breaks nothing. Lines that are longer than the width have one word.
func wrapText(text string, width int) []string {
	words := strings.Fields(text)
	if width <= 0 {
		return []string{strings.Join(words, " ")}
	}
	var lines []string
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// completeFields offers the fields below what was typed so far, or the codes when it begins as they do.
func completeFields(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 && typed != "" && strings.ToUpper(typed) == typed {
		return completeCodes(cmd, args, typed)
	}
	root, err := appFields()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	above, _ := cutLast(typed, ".")
	parent := root
	if above != "" {
		if parent, err = root.find(above); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		above += "."
	}
	var found []cobra.Completion
	for _, f := range parent.fields {
		if strings.HasPrefix(above+f.name, typed) {
			found = append(found, cobra.CompletionWithDesc(above+f.name, f.firstSentence()))
		}
	}
	slices.Sort(found)
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// cutLast divides a path before its last separator; without one, all of it is after.
func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return "", s
}
