package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a part of a line, in bytes.
type span struct{ from, to int }

// locate finds what a field's path means in the line that the field is written in: the key of its last step, or of the nearest step before it that the line has. The
// last resort is the first character that is not blank.
func locate(line string, path []string) span {
	for i := len(path) - 1; i >= 0; i-- {
		if isNumber(path[i]) {
			continue
		}
		if found := keysIn(line, path[i]); len(found) > 0 {
			return found[choose(path[:i], len(found))]
		}
	}
	from := len(line) - len(strings.TrimLeftFunc(line, unicode.IsSpace))
	if from == len(line) {
		return span{}
	}
	_, size := utf8.DecodeRuneInString(line[from:])
	return span{from, from + size}
}

// choose says which of several equal keys in one line is meant: in {weight: 1}, {weight: 2} the item of the list tells.
func choose(before []string, n int) int {
	if len(before) == 0 {
		return 0
	}
	i, err := strconv.Atoi(before[len(before)-1])
	if err != nil || i < 0 || i >= n {
		return 0
	}
	return i
}

// keysIn finds a word where it is the key of a YAML or JSON mapping.
func keysIn(line, key string) []span {
	var found []span
	for at := 0; key != ""; {
		i := strings.Index(line[at:], key)
		if i < 0 {
			break
		}
		s := span{at + i, at + i + len(key)}
		if beginsKey(line[:s.from]) && endsKey(line[s.to:]) {
			found = append(found, s)
		}
		at = s.to
	}
	return found
}

func beginsKey(before string) bool {
	before = strings.TrimRight(before, `"'`)
	return before == "" || strings.ContainsAny(before[len(before)-1:], " \t{[,")
}

func endsKey(after string) bool {
	after = strings.TrimLeft(strings.TrimLeft(after, `"'`), " \t")
	return strings.HasPrefix(after, ":")
}

// columnOf is where a span begins, in characters counted from 1.
func columnOf(line string, s span) int {
	return utf8.RuneCountInString(line[:s.from]) + 1
}

// excerpt is a line as it is shown, and the columns of the terminal to underline.
type excerpt struct {
	text         string
	start, width int
}

// tabStop is how wide a tab is shown at most. YAML forbids tabs where lines begin, so the width says nothing.
const tabStop = 4

// slot is one character as it is shown.
type slot struct {
	text  string
	width int
	inner bool // in the span
}

// excerptOf shows a line in at most so many columns, with what is meant in sight; 0 cuts nothing.
func excerptOf(line string, meant span, columns int) excerpt {
	slots := slotsOf(line, meant)
	if columns > 0 {
		slots = window(slots, columns)
	}
	e := excerpt{start: -1}
	var text strings.Builder
	column := 0
	for _, s := range slots {
		text.WriteString(s.text)
		if s.inner {
			if e.start < 0 {
				e.start = column
			}
			e.width = column + s.width - e.start
		}
		column += s.width
	}
	e.text, e.start = strings.TrimRight(text.String(), " "), max(e.start, 0)
	return e
}

func slotsOf(line string, meant span) []slot {
	var slots []slot
	column := 0
	for i, r := range line {
		s := slot{text: string(r), width: widthOfRune(r), inner: i >= meant.from && i < meant.to}
		switch {
		case r == '\t':
			s.width = tabStop - column%tabStop
			s.text = strings.Repeat(" ", s.width)
		case unprintable(r):
			s.text, s.width = "·", 1
		}
		slots = append(slots, s)
		column += s.width
	}
	return slots
}

// window cuts a line at one or both ends. A third of it is what comes before the span, so that one sees what the span is in.
func window(slots []slot, columns int) []slot {
	const mark = "…"
	if widthOfSlots(slots) <= columns || columns < 3 {
		return slots
	}
	first := 0
	for first < len(slots) && !slots[first].inner {
		first++
	}
	if first == len(slots) {
		first = 0
	}
	begin := first
	for before := 0; begin > 0 && before+slots[begin-1].width <= columns/3; begin-- {
		before += slots[begin-1].width
	}
	// What is left over at the end is better used at the beginning.
	for begin > 0 && widthOfSlots(slots[begin-1:]) <= columns-1 {
		begin--
	}
	room := columns
	var out []slot
	if begin > 0 {
		out, room = append(out, slot{text: mark, width: 1}), room-1
	}
	rest := slots[begin:]
	if widthOfSlots(rest) <= room {
		return append(out, rest...)
	}
	room--
	for _, s := range rest {
		if room -= s.width; room < 0 {
			break
		}
		out = append(out, s)
	}
	return append(out, slot{text: mark, width: 1})
}

func widthOfSlots(slots []slot) int {
	n := 0
	for _, s := range slots {
		n += s.width
	}
	return n
}

// unprintable characters would do something to a terminal rather than be seen on it. The ones that change the direction of a text hide what it says.
func unprintable(r rune) bool {
	return !unicode.IsGraphic(r) || r == utf8.RuneError || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
}

// visible makes a text of one line, with nothing in it that a terminal obeys.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '·'
		}
		return r
	}, oneLine(s))
}

// wide is what terminals show in two columns: the scripts of East Asia, and emoji (https://www.unicode.org/reports/tr11/).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0x33ff, Stride: 1},
		{Lo: 0x3400, Hi: 0x4dbf, Stride: 1},
		{Lo: 0x4e00, Hi: 0x9fff, Stride: 1},
		{Lo: 0xa000, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// widthOfRune in columns.
func widthOfRune(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
