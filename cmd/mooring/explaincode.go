package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-dev/mooring/render/check"
)

// codeShape is what tells a code from a field: fields begin with a small letter.
var codeShape = regexp.MustCompile(`^[A-Z][A-Z0-9_-]*[0-9]$`)

// ownCode is what begins as a code of ours or of Istio, in whatever letters.
var ownCode = regexp.MustCompile(`(?i)^(moor|ist)[0-9]+$`)

// isCode says whether somebody asks for a code. They may write a code that exists as they like.
func isCode(word string) bool {
	return codeShape.MatchString(word) || ownCode.MatchString(word) || slices.ContainsFunc(check.Rules(), func(r check.Rule) bool { return strings.EqualFold(r.Code, word) })
}

// pageWidth is how wide a page is at most: longer lines are hard to read, and shorter ones waste a terminal.
const pageWidth = 100

// code says all that is known of a rule.
func (e *explanation) code(name string) error {
	page, err := check.PageOf(name)
	if err != nil {
		return unknownCode(name, err)
	}
	if e.width == 0 || e.width > pageWidth {
		e.width = pageWidth
	}
	e.fact("CODE", e.color.bold(page.Code))
	e.fact("LEVEL", e.color.ofLevel(string(page.Level))(string(page.Level))+" ("+levelMeaning(page.Level)+")")
	e.fact("FINDS", page.Title)
	e.text.WriteByte('\n')
	e.paragraphs(page.Text)
	e.examples("WRONG", page.Bad, e.color.red)
	if len(page.Found) > 0 {
		e.heading("FOUND")
		for _, line := range page.Found {
			for i, part := range wrapText(line, e.width-4) {
				indent := "  "
				if i > 0 {
					indent += "  "
				}
				e.text.WriteString(indent + part + "\n")
			}
		}
	}
	e.examples("RIGHT", page.Good, e.color.green)
	e.text.WriteString("\n" + e.color.dim(fmt.Sprintf("Where it is meant, an annotation accepts it: %s: %q", check.SuppressAnnotation, page.Code+": the reason")) + "\n")
	return nil
}

func levelMeaning(level check.Level) string {
	switch level {
	case check.Info:
		return "worth knowing"
	case check.Warning:
		return "probably not what is meant; the commit is applied"
	}
	return "keeps a commit out of the cluster"
}

func (e *explanation) heading(text string) {
	e.text.WriteString("\n" + e.color.bold(text) + "\n")
}

// examples shows files, which are never wrapped: they are there to be copied.
func (e *explanation) examples(title string, files []check.Example, paint func(string) string) {
	for _, f := range files {
		e.text.WriteString("\n" + paint(title) + "  " + e.color.dim(f.Name) + "\n")
		for line := range strings.SplitSeq(strings.TrimRight(f.Content, "\n"), "\n") {
			e.text.WriteString(strings.TrimRight("  "+line, " ") + "\n")
		}
	}
}

// codes lists all that there are.
func (e *explanation) codes() {
	t := &table{head: []string{"CODE", "LEVEL", "FINDS"}, width: e.width}
	for _, r := range check.Rules() {
		t.add(cell{text: r.Code, paint: e.color.bold}, cell{text: string(r.Level), paint: e.color.ofLevel(string(r.Level))}, plain(r.Title))
	}
	_ = t.write(&e.text) // a Builder takes everything
	e.text.WriteString("\nmooring explain CODE says more of one of them. Those that begin with IST are Istio's own.\n")
}

// unknownCode names codes that come near one that does not exist. A code that exists and has no page is no such thing.
func unknownCode(name string, err error) error {
	if slices.ContainsFunc(check.Rules(), func(r check.Rule) bool { return strings.EqualFold(r.Code, name) }) {
		return err
	}
	err = fmt.Errorf("there is no code %s", strings.ToUpper(name))
	if near := nearCodes(name); len(near) > 0 {
		return withHint(err, "did you mean %s? mooring explain --codes lists them all", strings.Join(near, " or "))
	}
	return withHint(err, "mooring explain --codes lists all of Mooring and Istio; one of a policy of your own is described where the policy is")
}

// nearCodes are those with the same number, or else those that a slip of the finger leads to.
func nearCodes(name string) []string {
	const most = 3
	name = strings.ToUpper(name)
	number := func(code string) int {
		n, err := strconv.Atoi(strings.TrimLeft(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_-"))
		if err != nil {
			return -1
		}
		return n
	}
	type candidate struct {
		code     string
		distance int
	}
	var all []candidate
	for _, r := range check.Rules() {
		d := editDistance(name, r.Code)
		switch {
		case number(name) == number(r.Code) && d <= len(name)/2:
			all = append(all, candidate{r.Code, 0})
		case d == 1:
			all = append(all, candidate{r.Code, 1})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var codes []string
	if len(all) > 0 && all[0].distance == 0 { // what has the number is meant
		all = slices.DeleteFunc(all, func(c candidate) bool { return c.distance > 0 })
	}
	for _, c := range all[:min(len(all), most)] {
		codes = append(codes, c.code)
	}
	return codes
}

// completeCodes offers the codes of findings, with what they mean.
func completeCodes(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	// Of a list, the last code is being typed.
	before, last := cutLast(typed, ",")
	if before != "" {
		before += ","
	}
	var all []cobra.Completion
	for _, r := range check.Rules() {
		if strings.HasPrefix(r.Code, strings.ToUpper(last)) {
			all = append(all, cobra.CompletionWithDesc(before+r.Code, r.Title))
		}
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}
