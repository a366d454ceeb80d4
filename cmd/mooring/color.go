package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// palette colours text, or leaves it as it is. The zero palette has no colours.
type palette struct{ on bool }

// The values of --color.
const (
	colorAuto   = "auto"
	colorAlways = "always"
	colorNever  = "never"
)

// paletteFor decides whether w gets colours: in the mode auto a terminal does, unless NO_COLOR is set to anything
// (https://no-color.org) or the terminal is a dumb one.
func paletteFor(mode string, w io.Writer, getenv func(string) string) palette {
	switch mode {
	case colorAlways:
		return palette{on: true}
	case colorNever:
		return palette{}
	}
	return palette{on: isTerminal(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"}
}

func (p palette) red(s string) string    { return p.paint("31", s) }
func (p palette) green(s string) string  { return p.paint("32", s) }
func (p palette) yellow(s string) string { return p.paint("33", s) }
func (p palette) bold(s string) string   { return p.paint("1", s) }
func (p palette) dim(s string) string    { return p.paint("2", s) }

func (p palette) paint(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// isTerminal is true for a file that a person looks at.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// widthOf a terminal in columns; 0 when w is none, which means that nothing has to be cut.
func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
