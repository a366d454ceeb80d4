package main

import (
	"io"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// checkJSON is the report as JSON. It has everything, whatever --show says.
type checkJSON struct{}

// checkReport is the answer of check as JSON. Its names are a promise to the scripts that read it.
type checkReport struct {
	Objects int `json:"objects"`
	Files   int `json:"files"`
	// Cluster that the objects were laid over; empty when none was asked.
	Cluster  string        `json:"cluster,omitempty"`
	FailOn   check.Level   `json:"failOn"`
	Counts   counted       `json:"counts"`
	Findings []jsonFinding `json:"findings"`
	// NotChecked are the questions that could not be answered.
	NotChecked []jsonGap `json:"notChecked"`
	// Fixed are the files that --fix rewrote.
	Fixed []string `json:"fixed,omitempty"`
	// Errors are why something could not be checked at all.
	Errors []jsonError `json:"errors,omitempty"`
}

type jsonFinding struct {
	Code   string `json:"code"`
	Level  string `json:"level"`
	Object jsonID `json:"object"`
	// From is what the object was made of, where nobody wrote it.
	From   *jsonID `json:"from,omitempty"`
	File   string  `json:"file,omitempty"`
	Line   int     `json:"line,omitempty"`
	Column int     `json:"column,omitempty"`
	Field  string  `json:"field,omitempty"`
	// Message says what is wrong, Mend what to do about it.
	Message string `json:"message"`
	Mend    string `json:"mend,omitempty"`
	// Known is true of what the mesh has already, Foreign of what is about an object that only the cluster has.
	Known      bool            `json:"known,omitempty"`
	Foreign    bool            `json:"foreign,omitempty"`
	Suppressed *jsonSuppressed `json:"suppressed,omitempty"`
	Fix        *jsonFix        `json:"fix,omitempty"`
}

type jsonSuppressed struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// jsonFix is what takes the place of an object whose kind is gone.
type jsonFix struct {
	YAML  string `json:"yaml"`
	Exact bool   `json:"exact"`
	Why   string `json:"why,omitempty"`
}

type jsonID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

type jsonGap struct {
	Code  string `json:"code"`
	About string `json:"about"`
	Why   string `json:"why"`
}

type jsonError struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (checkJSON) write(w io.Writer, r *checked) error {
	out := checkReport{
		Objects: r.objects, Files: len(r.files), Cluster: r.cluster, FailOn: r.failOn, Counts: r.counts(),
		Findings: make([]jsonFinding, len(r.findings)), NotChecked: make([]jsonGap, len(r.gaps)), Errors: r.errorsForJSON(false),
	}
	if r.fixes != nil {
		out.Fixed = r.fixes.files
	}
	for i, f := range r.findings {
		out.Findings[i] = findingForJSON(f.Finding)
		out.Findings[i].Column = f.column()
	}
	for i, g := range r.gaps {
		out.NotChecked[i] = jsonGap(g)
	}
	return writeJSON(w, out)
}

// findingsForJSON gives a list that is never null.
func findingsForJSON(findings []check.Finding) []jsonFinding {
	all := make([]jsonFinding, len(findings))
	for i, f := range findings {
		all[i] = findingForJSON(f)
	}
	return all
}

func findingForJSON(f check.Finding) jsonFinding {
	j := jsonFinding{
		Code: f.Code, Level: string(f.Level), Object: jsonID(f.Object), File: f.Origin.File, Line: f.Origin.Line,
		Field: f.Field, Message: f.Message, Mend: f.Mend, Known: f.Known, Foreign: f.Foreign,
	}
	if f.From != (render.ID{}) {
		from := jsonID(f.From)
		j.From = &from
	}
	if f.Suppressed != nil {
		j.Suppressed = &jsonSuppressed{By: f.Suppressed.By, Reason: f.Suppressed.Reason}
	}
	if f.Fix != nil {
		j.Fix = &jsonFix{YAML: f.Fix.YAML, Exact: f.Fix.Exact, Why: f.Fix.Why}
	}
	return j
}

// errorsForJSON gives the faults in files one by one, and every other error as it is. Files are named as findings name them, or from the root of the repository.
func (r *checked) errorsForJSON(fromRoot bool) []jsonError {
	var all []jsonError
	for _, failure := range r.failures {
		faults := render.Errors(failure.err)
		for _, f := range faults {
			file := f.File
			if fromRoot && failure.in != nil {
				file = failure.in.fromRoot(file)
			}
			all = append(all, jsonError{File: file, Line: f.Line, Message: f.Err.Error(), Hint: f.Hint})
		}
		if len(faults) == 0 {
			all = append(all, jsonError{Message: failure.err.Error(), Hint: hintOf(failure.err)})
		}
	}
	return all
}
