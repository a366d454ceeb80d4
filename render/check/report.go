package check

import (
	"slices"
)

// Report is all that one check found.
type Report struct {
	// Findings sorted by file, line and code; those that do not block are among them.
	Findings []Finding
	// Gaps are what could not be checked, sorted. A report without findings and with gaps does not say that all is fine.
	Gaps []Gap
}

// Gap is a question that could not be answered.
type Gap struct {
	// Code of the rule that asked.
	Code string
	// About says what was not checked, and Why.
	About, Why string
}

// Blocking lists the findings that forbid that the set is applied, where those of the given level and worse do.
func (r *Report) Blocking(failOn Level) []Finding {
	var all []Finding
	for _, f := range r.Findings {
		if f.Blocks(failOn) {
			all = append(all, f)
		}
	}
	return all
}

// Blocks says whether a finding forbids that the set is applied: it is new with this commit, about an object of the commit, and nobody accepted it.
func (f Finding) Blocks(failOn Level) bool {
	return f.Level.AtLeast(failOn) && !f.Known && !f.Foreign && f.Suppressed == nil
}

// Blocks says whether one of the findings forbids that the set is applied, where those of level Error do.
func Blocks(fs []Finding) bool {
	return slices.ContainsFunc(fs, func(f Finding) bool { return f.Blocks(Error) })
}

// tidy sorts a report and drops what is said twice.
func (r *Report) tidy() {
	slices.SortStableFunc(r.Findings, compareFindings)
	r.Findings = slices.CompactFunc(r.Findings, func(a, b Finding) bool { return compareFindings(a, b) == 0 })
	slices.SortFunc(r.Gaps, compareGaps)
	r.Gaps = slices.Compact(r.Gaps)
}
