package main

import (
	"io"
	"strings"
	"unicode/utf8"
)

// cell is one field of a table. Its colour does not count for its width, which is why text/tabwriter is no help.
type cell struct {
	text  string
	paint func(string) string
}

func plain(text string) cell { return cell{text: text} }

// table is rows in columns, as kubectl prints them.
type table struct {
	head []string
	rows [][]cell
	// width cuts the last column so that a line fits; 0 cuts nothing.
	width int
}

const columnGap = 3

// minLastColumn is what is left of the last column in a narrow terminal: better a line that wraps than no message.
const minLastColumn = 20

func (t *table) add(cells ...cell) {
	t.rows = append(t.rows, cells)
}

// write prints the table. There are no spaces at the ends of lines.
func (t *table) write(w io.Writer) error {
	head := make([]cell, len(t.head))
	for i, h := range t.head {
		head[i] = plain(h)
	}
	all := append([][]cell{head}, t.rows...)
	widths := make([]int, len(t.head))
	for _, row := range all {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	last := len(widths) - 1
	if t.width > 0 {
		used := 0
		for _, w := range widths[:last] {
			used += w + columnGap
		}
		widths[last] = min(widths[last], max(t.width-used, minLastColumn))
	}
	var b strings.Builder
	for _, row := range all {
		line := 0
		for i, c := range row {
			text := cut(c.text, widths[i])
			if text == "" {
				continue
			}
			start := 0
			for _, w := range widths[:i] {
				start += w + columnGap
			}
			b.WriteString(strings.Repeat(" ", start-line))
			line = start + utf8.RuneCountInString(text)
			if c.paint != nil {
				text = c.paint(text)
			}
			b.WriteString(text)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cut shortens a text to a width, with an ellipsis where something is missing.
func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
