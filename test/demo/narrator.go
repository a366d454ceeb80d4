package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// narrator prints for a person at a terminal. Colours are for terminals only.
type narrator struct {
	out   *os.File
	color bool
	width int // of a line
}

func newNarrator(out *os.File, getenv func(string) string) *narrator {
	width, _, err := term.GetSize(int(out.Fd()))
	if err != nil || width < 60 {
		width = 120
	}
	return &narrator{out: out, width: width, color: term.IsTerminal(int(out.Fd())) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func (n *narrator) paint(code, text string) string {
	if !n.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// title begins a part.
func (n *narrator) title(text string) {
	_, _ = fmt.Fprintf(n.out, "\n%s\n", n.paint("1", text))
}

// Say explains what comes next.
func (n *narrator) Say(text string) {
	_, _ = fmt.Fprintf(n.out, "\n%s\n", wrap(text, min(n.width, 100)))
}

// Show gives a line that was typed and what it printed. Long lines of the answer are broken, with what follows indented.
func (n *narrator) Show(line, output string) {
	_, _ = fmt.Fprintf(n.out, "\n  %s %s\n", n.paint("36", "$"), n.paint("36", line))
	if output == "" {
		return
	}
	for line := range strings.SplitSeq(output, "\n") {
		text := strings.TrimLeft(line, " ")
		indent := strings.Repeat(" ", 2+len(line)-len(text))
		if len([]rune(indent+line)) <= n.width { // as it is: the columns of a table are not to move
			_, _ = fmt.Fprintln(n.out, strings.TrimRight(indent+text, " "))
			continue
		}
		_, _ = fmt.Fprintln(n.out, indent+strings.Join(fold(text, n.width-len(indent)-2), "\n"+indent+"  "))
	}
}

// lines to copy.
func (n *narrator) lines(all ...string) {
	_, _ = fmt.Fprintln(n.out)
	for _, line := range all {
		_, _ = fmt.Fprintf(n.out, "  %s\n", n.paint("36", line))
	}
}

func (n *narrator) done(format string, args ...any) {
	_, _ = fmt.Fprintf(n.out, "  %s %s\n", n.paint("32", "✓"), fmt.Sprintf(format, args...))
}

func (n *narrator) wrong(format string, args ...any) {
	_, _ = fmt.Fprintf(n.out, "\n%s\n", n.paint("31", fmt.Sprintf(format, args...)))
}

// wrap breaks a text between words into lines of at most width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
		switch length := len([]rune(word)); {
		case used == 0:
			used = length
		case used+1+length > width:
			b.WriteByte('\n')
			used = length
		default:
			b.WriteByte(' ')
			used += 1 + length
		}
		b.WriteString(word)
	}
	return b.String()
}

// fold breaks a line at spaces into pieces of at most width characters, where that can be done. Spaces between columns stay.
func fold(line string, width int) []string {
	var pieces []string
	rest := []rune(strings.TrimRight(line, " "))
	for len(rest) > width {
		at := width
		for at > 0 && rest[at] != ' ' {
			at--
		}
		if at == 0 { // one long word
			at = width
		}
		pieces = append(pieces, strings.TrimRight(string(rest[:at]), " "))
		rest = []rune(strings.TrimLeft(string(rest[at:]), " "))
	}
	return append(pieces, string(rest))
}
