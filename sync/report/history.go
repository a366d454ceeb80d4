package report

import (
	"slices"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// history after a pass: a newly applied revision comes first, and the first one is told how it fares. A pass that found what was in force as it was
// changes nothing, so that nothing is written at rest.
func history(s v1alpha1.MooringStatus, out Outcome) []v1alpha1.HistoryEntry {
	known := slices.Clone(s.History)
	now := metav1.NewTime(out.Finished.Truncate(time.Second))
	inForce := len(known) > 0 && known[0].Revision == out.Applied.String() && known[0].Digest == out.Digest
	if !inForce && out.Err == nil {
		if len(known) > 0 && known[0].ReplacedAt == nil {
			known[0].ReplacedAt = &now
		}
		known = slices.Insert(known, 0, entry(out, now))
		known = known[:min(len(known), maxHistory)]
		inForce = true
	}
	if inForce && (out.Result != nil || out.Unfinished != "") {
		fares(&known[0], s, out, now)
	}
	return known
}

// fares notes since when the revision in force has been well. What was begun and broken off has begun to take its place.
func fares(e *v1alpha1.HistoryEntry, s v1alpha1.MooringStatus, out Outcome, now metav1.Time) {
	if out.Unfinished != "" {
		if e.ReplacedAt == nil {
			e.ReplacedAt = &now
		}
		return
	}
	if e.ReplacedAt != nil { // it is whole again, from now on
		e.ReplacedAt, e.HealthySince = nil, nil
	}
	switch well := well(s, out); {
	case !well:
		e.HealthySince = nil
	case e.HealthySince == nil:
		e.HealthySince = &now
	}
	if out.Reason == v1alpha1.ReasonHealthTimeout && out.RolledBack() == nil && e.Failed == "" {
		e.Failed = clip(unhealthy(out.Result.Unhealthy()))
	}
}

// well says whether what is in force has nothing against it: no object that is not healthy, no drift that was left standing, and no finding of level Error about an object
// of its own that nobody accepted, also when the mesh had the fault before. Findings about another revision, the newest, do not count.
func well(s v1alpha1.MooringStatus, out Outcome) bool {
	if len(out.Result.Unhealthy()) > 0 || s.DriftCount > 0 {
		return false
	}
	if out.Newest != out.Applied {
		return true
	}
	return !slices.ContainsFunc(s.Findings, func(f v1alpha1.FindingEntry) bool {
		return f.Level == string(check.Error) && !f.Foreign && f.Suppressed == ""
	})
}

func entry(out Outcome, now metav1.Time) v1alpha1.HistoryEntry {
	counts := out.Result.Counts()
	e := v1alpha1.HistoryEntry{
		Revision: out.Applied.String(), AppliedAt: now, Digest: out.Digest,
		Created: int32(counts.Create), Configured: int32(counts.Update + counts.Replace), Deleted: int32(counts.Delete), By: string(out.Cause),
		Reason: clip(out.Because), Author: line(out.Author), Subject: line(out.Subject), SignedBy: short(out.SignedBy, maxSigners),
	}
	for stage, took := range out.Took {
		if took = took.Round(time.Millisecond); took > 0 {
			if e.Took == nil {
				e.Took = make(map[string]metav1.Duration)
			}
			e.Took[string(stage)] = metav1.Duration{Duration: took}
		}
	}
	for _, step := range out.Result.Steps {
		if step.State == apply.Done && !step.Again() && step.Drift == "" && changes(step.Action) && len(e.Changed) < maxChanged {
			e.Changed = append(e.Changed, did1(step.Action)+" "+step.ID.String())
		}
	}
	return e
}

func changes(a apply.Action) bool {
	return slices.Contains([]apply.Action{apply.Create, apply.Update, apply.Replace, apply.Delete}, a)
}

// did1 is what was done to one object.
func did1(a apply.Action) string {
	if a == apply.Update {
		return "configured"
	}
	return string(a) + "d"
}

// How long what comes from a commit may be, in characters: a line of it, and the names and keys of those who signed commit and tag.
const (
	maxLine    = 120
	maxSigners = 400
)

// line is the first line of a text that somebody wrote into a commit, safe to print.
func line(text string) string { return short(text, maxLine) }

func short(text string, most int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return strings.TrimSpace(text)
}
