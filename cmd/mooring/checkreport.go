package main

import (
	"cmp"
	"errors"
	"io"
	"slices"

	"github.com/mooring-dev/mooring/render/check"
)

// What text and annotations list.
const (
	// showNew is what the commit is to blame for.
	showNew = "new"
	showAll = "all"
)

// checkWriter writes what a check found, in one form.
type checkWriter interface {
	write(w io.Writer, r *checked) error
}

// The forms of check that no other command has.
const (
	outputSARIF  = "sarif"
	outputJUnit  = "junit"
	outputGitHub = "github"
)

// checkForms are the values of -o.
func checkForms() []string {
	return []string{outputText, outputJSON, outputSARIF, outputJUnit, outputGitHub}
}

func (c *cli) checkWriter(form string) checkWriter {
	switch form {
	case outputJSON:
		return checkJSON{}
	case outputSARIF:
		return checkSARIF{}
	case outputJUnit:
		return checkJUnit{}
	case outputGitHub:
		return checkGitHub{}
	}
	return checkText{color: paletteFor(c.color, c.out, c.getenv), width: widthOf(c.out)}
}

// checked is all that one run found, over all that it was asked about.
type checked struct {
	version string
	failOn  check.Level
	showAll bool
	// house are the names of the policies of the house, by code.
	house map[string]string
	// cluster that was read; empty when none was.
	cluster string

	inputs   []*checkInput
	objects  int
	files    []string // from the roots of their repositories, sorted
	findings []foundIn
	gaps     []check.Gap
	failures []failure
	// fixes are what --fix did; nil without it.
	fixes *fixes
}

// failure is why an input could not be checked. The input is nil when it could not even be opened.
type failure struct {
	in  *checkInput
	err error
}

// foundIn is a finding and the input that it is about.
type foundIn struct {
	check.Finding
	in *checkInput
}

// line is the text of the finding's line, false when there is none that may be shown.
func (f foundIn) line() (string, bool) {
	if f.Object.Group == "" && f.Object.Kind == "Secret" {
		return "", false
	}
	return f.in.line(f.Origin)
}

// file of the finding, from the root of its repository. One about an object that was written nowhere is put to the first file of the input, because reports of machines have
// no place for a finding without a file.
func (f foundIn) file() string {
	if f.Origin.File == "" && len(f.in.set.Files) > 0 {
		return f.in.fromRoot(f.in.set.Files[0].Path)
	}
	return f.in.fromRoot(f.Origin.File)
}

// column of the finding, counted from 1; 0 when it is not known.
func (f foundIn) column() int {
	line, ok := f.line()
	if !ok {
		return 0
	}
	return columnOf(line, locate(line, f.Path()))
}

func (r *checked) open(in *checkInput, err error) {
	if err != nil {
		r.failures = append(r.failures, failure{nil, err})
		return
	}
	r.inputs = append(r.inputs, in)
}

func (r *checked) close() {
	for _, in := range r.inputs {
		in.close()
	}
}

func (r *checked) add(in *checkInput, found *check.Report) {
	r.objects += len(in.set.Objects)
	for _, f := range in.set.Files {
		r.files = append(r.files, in.fromRoot(f.Path))
	}
	for _, f := range found.Findings {
		r.findings = append(r.findings, foundIn{f, in})
	}
	r.gaps = append(r.gaps, found.Gaps...)
}

// err is why something could not be checked, nil when all was.
func (r *checked) err() error {
	var errs []error
	for _, f := range r.failures {
		errs = append(errs, f.err)
	}
	return errors.Join(errs...)
}

// nothing is true when no input could be checked.
func (r *checked) nothing() bool {
	return len(r.failures) > 0 && !slices.ContainsFunc(r.inputs, func(in *checkInput) bool { return in.set != nil })
}

// sort orders what came from several inputs as if it came from one, and drops what two of them have in common, such as the faults of a base.
func (r *checked) sort() {
	slices.Sort(r.files)
	r.files = slices.Compact(r.files)
	slices.SortStableFunc(r.findings, compareFound)
	r.findings = slices.CompactFunc(r.findings, func(a, b foundIn) bool { return compareFound(a, b) == 0 })
	slices.SortFunc(r.gaps, func(a, b check.Gap) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.About, b.About), cmp.Compare(a.Why, b.Why))
	})
	r.gaps = slices.Compact(r.gaps)
}

func compareFound(a, b foundIn) int {
	return cmp.Or(
		cmp.Compare(a.in.fromRoot(a.Origin.File), b.in.fromRoot(b.Origin.File)),
		cmp.Compare(a.Origin.Line, b.Origin.Line),
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Subject(), b.Subject()),
		cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Message, b.Message),
		cmp.Compare(a.status(), b.status()),
	)
}

// status is what is true of a finding beside what it says: empty when the commit is to blame for it.
func (f foundIn) status() string {
	switch {
	case f.Suppressed != nil:
		return "accepted"
	case f.Foreign:
		return "in the cluster"
	case f.Known:
		return "known"
	}
	return ""
}

// shown lists what text and annotations say.
func (r *checked) shown() []foundIn {
	if r.showAll {
		return r.findings
	}
	var all []foundIn
	for _, f := range r.findings {
		if f.status() == "" {
			all = append(all, f)
		}
	}
	return all
}

// counted is how many findings there are of what. The levels count what the commit is to blame for.
type counted struct {
	Error      int `json:"error"`
	Warning    int `json:"warning"`
	Info       int `json:"info"`
	Blocking   int `json:"blocking"`
	Known      int `json:"known"`
	Foreign    int `json:"foreign"`
	Suppressed int `json:"suppressed"`
	NotChecked int `json:"notChecked"`
}

func (r *checked) counts() counted {
	n := counted{NotChecked: len(r.gaps)}
	for _, f := range r.findings {
		if f.Blocks(r.failOn) {
			n.Blocking++
		}
		switch f.status() {
		case "accepted":
			n.Suppressed++
		case "in the cluster":
			n.Foreign++
		case "known":
			n.Known++
		default:
			n.level(f.Level)
		}
	}
	return n
}

func (n *counted) level(l check.Level) {
	switch l {
	case check.Info:
		n.Info++
	case check.Warning:
		n.Warning++
	default:
		n.Error++
	}
}
