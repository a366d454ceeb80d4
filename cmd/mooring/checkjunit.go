package main

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
)

// checkJUnit is the report in the form that build servers show as tests: a file is a suite, and a finding a case of it. A finding that blocks is a failure, one that is
// accepted is skipped, any other passes and says what it is. A file without findings has one case that passes.
type checkJUnit struct{}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitProblem `xml:"failure"`
	Error   *junitProblem `xml:"error"`
	Skipped *junitProblem `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitProblem struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (checkJUnit) write(w io.Writer, r *checked) error {
	all := junitSuites{Name: "mooring check", Suites: append(junitFiles(r), junitRest(r)...)}
	for i := range all.Suites {
		all.Suites[i].count()
		all.Tests += all.Suites[i].Tests
		all.Failures += all.Suites[i].Failures
		all.Errors += all.Suites[i].Errors
		all.Skipped += all.Suites[i].Skipped
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return fmt.Errorf("print as JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// junitFiles are the suites of the files that were read.
func junitFiles(r *checked) []junitSuite {
	cases := map[string][]junitCase{}
	names := slices.Clone(r.files)
	for _, f := range r.findings {
		file := f.file()
		names = append(names, file)
		cases[file] = append(cases[file], junitOf(r, f, file))
	}
	slices.Sort(names)
	var suites []junitSuite
	for _, name := range slices.Compact(names) {
		s := junitSuite{Name: name, Cases: cases[name]}
		if len(s.Cases) == 0 {
			s.Cases = []junitCase{{Class: name, Name: "no finding", File: name}}
		}
		suites = append(suites, s)
	}
	return suites
}

func junitOf(r *checked, f foundIn, file string) junitCase {
	c := junitCase{Class: file, Name: oneLine(f.Code + " " + f.Subject() + " " + f.Field), File: file, Line: f.Origin.Line}
	text := f.Finding
	text.Origin.File = file
	switch {
	case f.Blocks(r.failOn):
		c.Failure = &junitProblem{Type: string(f.Level), Message: oneLine(f.Message), Text: text.String()}
	case f.Suppressed != nil:
		c.Skipped = &junitProblem{Message: oneLine(cmp.Or(f.Suppressed.Reason, "accepted by "+f.Suppressed.By))}
	default:
		c.Out = text.String() + note(f.Finding)
	}
	return c
}

// junitRest is what belongs to no file that was read: what could not be rendered is an error, what could not be checked is skipped.
func junitRest(r *checked) []junitSuite {
	var suites []junitSuite
	for _, e := range r.errorsForJSON(true) {
		name := cmp.Or(e.File, "mooring check")
		problem := &junitProblem{Type: "Error", Message: oneLine(e.Message), Text: e.text()}
		suites = append(suites, junitSuite{Name: name, Cases: []junitCase{{Class: name, Name: "render", File: e.File, Line: e.Line, Error: problem}}})
	}
	if len(r.gaps) > 0 {
		s := junitSuite{Name: "not checked"}
		for _, g := range r.gaps {
			s.Cases = append(s.Cases, junitCase{Class: "not checked", Name: oneLine(g.Code + " " + g.About), Skipped: &junitProblem{Message: oneLine(g.Why)}})
		}
		suites = append(suites, s)
	}
	return suites
}

func (s *junitSuite) count() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

// text is an error as a compiler writes it.
func (e jsonError) text() string {
	text := e.Message
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	switch {
	case e.File != "" && e.Line > 0:
		text = fmt.Sprintf("%s:%d: %s", e.File, e.Line, text)
	case e.File != "":
		text = e.File + ": " + text
	}
	return strings.TrimSpace(oneLine(text))
}
