package apply

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Style gives a line of a printed plan its looks; action is what the line is about, and empty for a heading.
type Style func(action Action, line string) string

// String gives a readable listing, with secrets masked.
func (p *Plan) String() string {
	var b strings.Builder
	_ = p.Print(&b, nil) // a Builder does not fail
	return b.String()
}

// Print writes the listing, styled; a nil style writes it plain. What is unchanged is only counted.
func (p *Plan) Print(w io.Writer, style Style) error {
	if style == nil {
		style = func(_ Action, line string) string { return line }
	}
	var lines []string
	add := func(action Action, format string, args ...any) {
		lines = append(lines, style(action, fmt.Sprintf(format, args...)))
	}
	gate := Gate("")
	for _, wave := range p.Waves {
		heading := false
		for _, s := range wave.Steps {
			if s.Action == Unchanged && s.Reason == "" {
				continue
			}
			if !heading {
				if said := gate.wait(); said != "" && len(lines) > 0 {
					add("", "%s", said)
				}
				gate = ""
				add("", "%s:", wave.Name)
				heading = true
			}
			add(s.Action, "  %s %s", sign(s.Action), s.title())
			for _, d := range s.Diff {
				add(s.Action, "      %s", d.line(d.Who()))
			}
		}
		if wave.Gate == GatePropagated || wave.Gate != "" && heading {
			gate = wave.Gate
		}
	}
	for _, note := range p.Notes {
		add("", "note: %s", note)
	}
	add("", "%s", p.Counts())
	if p.Guard != nil {
		add("", "held by the guard (%s): %s", p.Guard.Reason, p.Guard.Message)
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// wait says what is waited for.
func (g Gate) wait() string {
	switch g {
	case GateEstablished:
		return "(wait until they can be built upon: CRDs established, namespaces active)"
	case GateReady:
		return "(wait until istiod is ready, and its injector and validator are armed)"
	case GatePropagated:
		return "(wait until the proxies have acknowledged what was written)"
	default:
		return ""
	}
}

func sign(a Action) string {
	switch a {
	case Create:
		return "+"
	case Update:
		return "~"
	case Replace:
		return "±"
	case Delete:
		return "-"
	case Unchanged:
		return "="
	default:
		return "·"
	}
}

func (s Step) title() string {
	title := s.ID.String()
	if s.Origin.File != "" {
		title += " (" + s.Origin.String() + ")"
	}
	if s.Reason != "" {
		title += ": " + s.Reason
	}
	return title
}

// String reads "/spec/replicas: 5 → 3 (set by kubectl-edit)".
func (d FieldDiff) String() string {
	if d.Manager == FieldManager {
		return d.line("")
	}
	return d.line(d.Manager)
}

func (d FieldDiff) line(who string) string {
	line := fmt.Sprintf("%s: %s → %s", d.Path, show(d.Live), show(d.Want))
	if who != "" {
		line += " (set by " + who + ")"
	}
	return line
}

// show writes a value as JSON on one line, and of a long one the beginning.
func show(value any) string {
	const long = 300
	if value == nil {
		return "(none)"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if runes := []rune(string(text)); len(runes) > long {
		return fmt.Sprintf("%s… (%d bytes)", string(runes[:long]), len(text))
	}
	return string(text)
}

// String reads "1 to create, 2 to update, 40 unchanged".
func (c Counts) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.Create, "to create"},
		{c.Update, "to update"},
		{c.Replace, "to replace"},
		{c.Delete, "to delete"},
		{c.Unchanged, "unchanged"},
		{c.Skip, "skipped"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	if len(parts) == 0 {
		return "no objects"
	}
	return strings.Join(parts, ", ")
}
