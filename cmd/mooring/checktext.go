package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/mooring-dev/mooring/render/check"
)

// checkText is the report for people.
type checkText struct {
	color palette
	// width of the terminal; 0 when it is none.
	width int
}

const (
	// defaultWidth is how much of a source line is shown where there is no terminal: a file of JSON may be one line of a megabyte.
	defaultWidth = 120
	// mostGaps is how many of the things that were not checked are listed.
	mostGaps = 6
)

func (t checkText) write(w io.Writer, r *checked) error {
	if r.nothing() {
		return nil // the errors say why
	}
	var b strings.Builder
	shown := r.shown()
	group := ""
	for i, f := range shown {
		if name := groupOf(f); i == 0 || name != group {
			if i > 0 {
				b.WriteByte('\n')
			}
			group = name
			b.WriteString(t.color.bold(visible(group)) + "\n")
		}
		t.finding(&b, f)
	}
	if len(shown) > 0 {
		b.WriteByte('\n')
	}
	t.gaps(&b, r)
	b.WriteString(t.summary(r) + "\n")
	if hint := hintOfCodes(shown); hint != "" {
		b.WriteString(t.color.dim(hint) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// groupOf is the headline that a finding stands under.
func groupOf(f foundIn) string {
	switch {
	case f.Origin.File != "":
		return f.Origin.File
	case f.Foreign:
		return "(in the cluster)"
	}
	return "(made by the kustomization)"
}

func (t checkText) finding(b *strings.Builder, f foundIn) {
	place := ""
	if f.Origin.Line > 0 {
		place = fmt.Sprintf("line %d: ", f.Origin.Line)
	}
	level := string(f.Level)
	fmt.Fprintf(b, "  %s%s %s %s%s\n", place, t.color.ofLevel(level)(level), f.Code, visible(f.Subject()), t.color.dim(note(f.Finding)))
	message := f.Message
	if f.Field != "" {
		message = f.Field + ": " + message
	}
	fmt.Fprintf(b, "    %s\n", visible(message))
	t.source(b, f)
	if f.Mend != "" {
		fmt.Fprintf(b, "    %s\n", t.color.dim(visible(f.Mend)))
	}
	t.fix(b, f.Fix)
}

// fix shows what takes the place of an object whose kind is gone.
func (t checkText) fix(b *strings.Builder, fix *check.Fix) {
	if fix == nil {
		return
	}
	if fix.Exact {
		b.WriteString("    in its place, or by mooring check --fix:\n")
	} else {
		fmt.Fprintf(b, "    to start from; it is not the same, because %s:\n", visible(fix.Why))
	}
	for line := range strings.Lines(fix.YAML) {
		b.WriteString("      " + visible(strings.TrimRight(line, "\n")) + "\n")
	}
}

// note says why a finding is no fault of the commit.
func note(f check.Finding) string {
	var notes []string
	if f.Suppressed != nil {
		why := "accepted by " + f.Suppressed.By
		if f.Suppressed.Reason != "" {
			why += ": " + visible(f.Suppressed.Reason)
		}
		notes = append(notes, why)
	}
	if f.Known {
		notes = append(notes, "the mesh has it already")
	}
	if f.Foreign {
		notes = append(notes, "the object is not among the files")
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// source shows the line and what in it is meant.
func (t checkText) source(b *strings.Builder, f foundIn) {
	line, ok := f.line()
	if !ok {
		return
	}
	number := fmt.Sprint(f.Origin.Line)
	gutter := "    " + strings.Repeat(" ", len(number)) + " |"
	width := cmp.Or(t.width, defaultWidth)
	e := excerptOf(line, locate(line, f.Path()), max(width-len(gutter)-1, minLastColumn))
	fmt.Fprintf(b, "    %s%s\n", t.color.dim(number+" | "), e.text)
	if e.width > 0 {
		fmt.Fprintf(b, "%s %s%s\n", t.color.dim(gutter), strings.Repeat(" ", e.start), t.color.ofLevel(string(f.Level))(strings.Repeat("^", e.width)))
	}
}

// gaps lists what could not be checked.
func (t checkText) gaps(b *strings.Builder, r *checked) {
	if len(r.gaps) == 0 {
		return
	}
	b.WriteString(t.color.bold("not checked:") + "\n")
	for i, g := range r.gaps {
		if !r.showAll && i == mostGaps && len(r.gaps) > mostGaps+1 {
			fmt.Fprintf(b, "  and %d more; --show all lists them\n", len(r.gaps)-i)
			break
		}
		fmt.Fprintf(b, "  %s %s: %s\n", g.Code, visible(g.About), t.color.dim(visible(g.Why)))
	}
	if r.cluster == "" {
		b.WriteString(t.color.dim("  mooring check --cluster asks the cluster that they are for.") + "\n")
	}
	b.WriteByte('\n')
}

// summary says what was found in how much.
func (t checkText) summary(r *checked) string {
	n := r.counts()
	var found []string
	for _, c := range []struct {
		n     int
		level check.Level
	}{{n.Error, check.Error}, {n.Warning, check.Warning}, {n.Info, check.Info}} {
		if c.n > 0 {
			found = append(found, t.color.ofLevel(string(c.level))(plural(c.n, levelNoun(c.level))))
		}
	}
	text := t.color.green("no finding")
	if len(found) > 0 {
		text = strings.Join(found, ", ")
	}
	if n.Error+n.Warning+n.Info == 0 && n.Known+n.Foreign+n.Suppressed > 0 {
		text = t.color.green("no new finding")
	}
	in := fmt.Sprintf("%s from %s", plural(r.objects, "object"), plural(len(r.files), "file"))
	if r.cluster != "" {
		in += ", over what lives in " + r.cluster
	}
	text = in + ": " + text
	if rest := others(n); rest != "" {
		text += "; " + rest
		if !r.showAll {
			text += " (--show all lists them)"
		}
	}
	return text
}

// others counts what the commit is not to blame for.
func others(n counted) string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{n.Suppressed, "accepted"}, {n.Known, "in the mesh already"}, {n.Foreign, "about what else is in the cluster"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	return strings.Join(parts, ", ")
}

// hintOfCodes names the way to the pages, with the worst code that has one to begin with; empty when none has.
func hintOfCodes(found []foundIn) string {
	known := map[string]bool{}
	for _, r := range check.Rules() {
		known[r.Code] = true
	}
	var worst *check.Finding
	for _, f := range found {
		if known[f.Code] && (worst == nil || !worst.Level.AtLeast(f.Level)) {
			worst = &f.Finding
		}
	}
	if worst == nil {
		return ""
	}
	return "mooring explain " + worst.Code + " says what it means, and how it looks when it is right."
}

// levelNoun is what findings of a level are called when they are counted.
func levelNoun(level check.Level) string {
	if level == check.Info {
		return "hint"
	}
	return strings.ToLower(string(level))
}

func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
