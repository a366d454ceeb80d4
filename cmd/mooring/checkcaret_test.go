package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mark shows a line and, below, what is underlined.
func mark(line string, path []string, columns int) []string {
	e := excerptOf(line, locate(line, path), columns)
	return []string{e.text, strings.Repeat(" ", e.start) + strings.Repeat("^", e.width)}
}

func TestCaret(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		path []string
		want []string
	}{
		"a key":                          {"  weighting: 100", []string{"spec", "weighting"}, []string{"  weighting: 100", "  ^^^^^^^^^"}},
		"a key in a flow":                {"- {host: web, port: 1}", []string{"0", "port"}, []string{"- {host: web, port: 1}", "              ^^^^"}},
		"a key in quotes":                {`{"host": "host"}`, []string{"host"}, []string{`{"host": "host"}`, "  ^^^^"}},
		"a key at the dash":              {"  - name: http", []string{"ports", "0", "name"}, []string{"  - name: http", "    ^^^^"}},
		"not where it is a value":        {"  a: weight", []string{"weight"}, []string{"  a: weight", "  ^"}},
		"not where it ends another key":  {"{maxweight: 1, weight: 2}", []string{"weight"}, []string{"{maxweight: 1, weight: 2}", "               ^^^^^^"}},
		"a space before the colon":       {"weight : 2", []string{"weight"}, []string{"weight : 2", "^^^^^^"}},
		"the item of a list decides":     {"[{weight: 1}, {weight: 2}]", []string{"route", "1", "weight"}, []string{"[{weight: 1}, {weight: 2}]", "               ^^^^^^"}},
		"an item that is not here":       {"- {weight: 2}", []string{"route", "7", "weight"}, []string{"- {weight: 2}", "   ^^^^^^"}},
		"what is around a missing field": {"spec: {}", []string{"spec", "host"}, []string{"spec: {}", "^^^^"}},
		"an item of a list":              {"  - shop.example.com", []string{"hosts", "0"}, []string{"  - shop.example.com", "  ^"}},
		"a list in one line":             {"hosts: [a, b]", []string{"hosts", "1"}, []string{"hosts: [a, b]", "^^^^^"}},
		"no field at all":                {"  kind: Gateway", nil, []string{"  kind: Gateway", "  ^"}},
		"a key with a slash":             {"  istio.io/rev: 1.7", []string{"labels", "istio.io/rev"}, []string{"  istio.io/rev: 1.7", "  ^^^^^^^^^^^^"}},
		"tabs":                           {"a:\tb\t# c\tweight: 1", []string{"weight"}, []string{"a:  b   # c weight: 1", "            ^^^^^^"}},
		"wide characters":                {"{名: 東京, weight: 1}", []string{"weight"}, []string{"{名: 東京, weight: 1}", "           ^^^^^^"}},
		"characters upon others":         {"{e\u0301: 1, weight: 1}", []string{"weight"}, []string{"{e\u0301: 1, weight: 1}", "       ^^^^^^"}},
		"what a terminal would obey":     {"a: \x1b[2J # \u202e weight", nil, []string{"a: ·[2J # · weight", "^"}},
		"bytes that are no text":         {"a: \xff", []string{"a"}, []string{"a: ·", "^"}},
		"blanks":                         {"   ", []string{"a"}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, mark(c.line, c.path, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWideLinesAreCut(t *testing.T) {
	line := "{" + strings.Repeat("before: 1, ", 10) + "weight: 2" + strings.Repeat(", after: 3", 10) + "}"
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"at both ends":     {line, []string{"…, before: 1, weight: 2, after: 3, afte…", "              ^^^^^^"}},
		"at the end":       {line[110:], []string{" weight: 2, after: 3, after: 3, after: …", " ^^^^^^"}},
		"at the beginning": {line[:strings.Index(line, "weight")+9], []string{"…1, before: 1, before: 1, weight: 2", ""}},
		"nowhere":          {"weight: 2", []string{"weight: 2", "^^^^^^"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := mark(c.line, []string{"weight"}, 40)
			if n := len([]rune(got[0])); n > 40 {
				t.Errorf("%d columns, want 40 at most: %q", n, got[0])
			}
			from := strings.Index(got[1], "^")
			if from < 0 || string([]rune(got[0])[from:from+6]) != "weight" {
				t.Errorf("the caret is not under weight:\n%s", strings.Join(got, "\n"))
			}
			if name == "at the beginning" {
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnnotation(t *testing.T) {
	got := annotation("error", "a,b:c/100%.yaml", 7, 3, "MOOR002 VirtualService/shop/web: a, b", "100% of a:\r\nb, c")
	want := "::error file=a%2Cb%3Ac/100%25.yaml,line=7,col=3,title=MOOR002 VirtualService/shop/web%3A a%2C b::100%25 of a:%0D%0Ab, c\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := annotation("notice", "", 7, 3, "t", "m"); got != "::notice title=t::m\n" {
		t.Errorf("without a file: %q", got)
	}
}

func TestFingerprints(t *testing.T) {
	in := &checkInput{}
	one := foundIn{in: in}
	one.Code, one.Field, one.Message, one.Origin.File, one.Origin.Line = "MOOR002", "spec.http[0].weighting", "unknown field", "route.yaml", 8
	moved := one
	moved.Field, moved.Origin.Line = "spec.http[3].weighting", 80
	other := one
	other.Field = "spec.http[0].wait"
	print := func(f foundIn) string { return fingerprint(f, map[string]int{}) }
	if print(one) != print(moved) {
		t.Error("a fault that moved is another")
	}
	if print(one) == print(other) {
		t.Error("two faults are one")
	}
	if seen := map[string]int{}; fingerprint(one, seen) == fingerprint(moved, seen) {
		t.Error("two faults that differ in their place have one fingerprint")
	}
}

// FuzzExcerpt makes sure that any line can be shown, that it is never wider than asked for, and that the caret is under something.
func FuzzExcerpt(f *testing.F) {
	f.Add("  - route: [{destination: {host: web}, weighting: 100}]", "weighting", 20)
	f.Add("\t名: \x1b[2J\xff", "名", 3)
	f.Add("", "", 0)
	f.Fuzz(func(t *testing.T, line, key string, columns int) {
		line = strings.ReplaceAll(line, "\n", " ")
		columns = max(columns%200, 0)
		e := excerptOf(line, locate(line, []string{"spec", "0", key}), columns)
		width := 0
		for _, r := range e.text {
			if unprintable(r) && r != '·' {
				t.Errorf("%q is shown", r)
			}
			width += widthOfRune(r)
		}
		if columns >= 4 && width > columns {
			t.Errorf("%d columns, want %d at most", width, columns)
		}
		if e.start < 0 || e.width < 0 || e.width > 0 && columns >= 4 && e.start+e.width > columns {
			t.Errorf("the caret is at %d+%d of %d", e.start, e.width, columns)
		}
	})
}
