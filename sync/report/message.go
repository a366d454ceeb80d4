package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// maxMessage is how long a condition's message and an Event's note may be. events.k8s.io refuses a note of more
// than 1024 bytes.
const maxMessage = 1000

// Message of the Ready condition: what happened, to which object or file, what stays in force, how to mend it.
func Message(out Outcome) string {
	switch out.Reason {
	case v1alpha1.ReasonSuspended:
		return "suspended: nothing is fetched, applied or corrected until spec.suspend is false (mooring resume)"
	case v1alpha1.ReasonApplied:
		what := fmt.Sprintf("%s is in force: %d objects", out.Applied, out.Result.Objects)
		if out.Result.Objects == 1 {
			what = fmt.Sprintf("%s is in force: 1 object", out.Applied)
		}
		if out.Pin != nil {
			what += ". It is pinned; newer commits wait for mooring unpin"
		}
		return what
	case v1alpha1.ReasonProgressing:
		switch gaveWay := out.GaveWay(); {
		case gaveWay != nil && out.Result == nil:
			return fmt.Sprintf("%s waits for the next pass: %v", out.Newest, gaveWay)
		case gaveWay != nil:
			return fmt.Sprintf("%s is applied in part; the wait for the rest was ended: %v", out.Newest, gaveWay)
		}
		return fmt.Sprintf("%s is applied; waiting for %s", out.Applied, unhealthy(out.Result.Unhealthy()))
	case v1alpha1.ReasonHealthTimeout:
		if out.Rollback != nil {
			return rolledBack(out)
		}
		return fmt.Sprintf("%s is applied, but not healthy in time: %s. Look at these objects; a commit that mends them is taken up as usual",
			out.Applied, unhealthy(out.Result.Unhealthy()))
	}
	what := failure(out)
	if h := hint(out.Err); h != "" {
		what += "; " + h
	}
	parts := []string{sentence(what)}
	if out.KeepErr != nil {
		parts = append(parts, sentence(fmt.Sprintf("drift could not be corrected to %s: %v", out.Applied, first(out.KeepErr))))
	} else if !out.Applied.IsZero() && out.Applied != out.Newest && out.Stage != StageApply {
		parts = append(parts, fmt.Sprintf("%s stays in force.", out.Applied))
	}
	if mend := mend(out); mend != "" {
		parts = append(parts, sentence(mend))
	}
	return strings.Join(parts, " ")
}

// rolledBack says what was taken back, what is in force instead and how that fares.
func rolledBack(out Outcome) string {
	rb := out.Rollback
	switch sick := out.Result.Unhealthy(); {
	case out.RolledBack() == nil:
		return fmt.Sprintf("%s is applied, but not healthy in time: %s. %s comes back", rb.Bad, sentence(rb.Why), rb.To)
	case len(sick) > 0:
		return fmt.Sprintf("%s was not healthy in time (%s), and %s, which is in force again, is not either: %s. Nothing is taken back a second time: push a commit that mends it",
			rb.Bad, rb.Why, rb.To, unhealthy(sick))
	}
	return fmt.Sprintf("%s was not healthy in time (%s) and was taken back; %s is in force again. It is not tried again: push a commit that mends it", rb.Bad, rb.Why, rb.To)
}

func failure(out Outcome) string {
	switch out.Reason {
	case v1alpha1.ReasonCheckFailed:
		switch {
		case out.Again == AgainSoon:
			return fmt.Sprintf("%s could not be checked: %v", out.Newest, first(out.Err))
		case slices.ContainsFunc(out.Findings, out.blocks):
			return fmt.Sprintf("%s is refused: %s", out.Newest, blocking(out))
		}
		return fmt.Sprintf("%s is refused: %v", out.Newest, first(out.Err))
	case v1alpha1.ReasonPruneGuarded:
		return fmt.Sprintf("%s is held: %s", out.Newest, out.Plan.Guard.Message)
	case v1alpha1.ReasonPromotionPending:
		return first(out.Err)
	case v1alpha1.ReasonWindowClosed, v1alpha1.ReasonDependencyNotReady:
		return fmt.Sprintf("%s waits: %v", out.Newest, first(out.Err))
	case v1alpha1.ReasonRenderFailed:
		return fmt.Sprintf("%s does not render: %v", out.Newest, first(out.Err))
	}
	return first(out.Err)
}

// blocking names the first findings that block, and counts the rest.
func blocking(out Outcome) string {
	var errs []string
	for _, f := range out.Findings {
		if out.blocks(f) {
			errs = append(errs, f.String())
		}
	}
	return few(errs, "findings")
}

// Words of an error for people: what happened, and how to mend it.
func Words(err error) string {
	if h := hint(err); h != "" {
		return first(err) + "; " + h
	}
	return first(err)
}

// Unhealthy names the objects of a run that are not healthy, and why; empty when all are.
func Unhealthy(r *apply.Result) string { return unhealthy(r.Unhealthy()) }

// unhealthy objects, those that say the same together.
func unhealthy(all []apply.Health) string {
	var found []told
	for _, h := range all {
		why := fmt.Sprintf("%s: %s", h.Status, strings.TrimSuffix(h.Message, "."))
		found = append(found, told{whose: h.ID.String(), why: why, plain: why})
	}
	var sentences []string
	rest := len(all)
	groups := grouped(found)
	for _, g := range groups[:min(shown, len(groups))] {
		sentences = append(sentences, fmt.Sprintf("%s (%s)", g.names(), g.why))
		rest -= len(g.whose)
	}
	return and(sentences, rest, "objects")
}

// first gives the faults of a joined error, those of one cause together, the first three causes in full and the number of the rest.
func first(err error) string {
	return few(faults(flat(err)), "faults")
}

// flat takes joined errors apart, also below wrapping that adds no words of its own.
func flat(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flat(e)...)
		}
		return all
	}
	switch err.(type) {
	case *apply.ObjectError, interface{ Mend() string }:
		return []error{err}
	}
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == err.Error() {
		return flat(inner)
	}
	return []error{err}
}

func few(all []string, what string) string {
	return and(all[:min(shown, len(all))], len(all)-shown, what)
}

func and(all []string, more int, what string) string {
	s := strings.Join(all, "; ")
	if more > 0 {
		s += fmt.Sprintf("; and %d more %s", more, what)
	}
	return s
}

// mend is the next step for a person that goes with the reason.
func mend(out Outcome) string {
	switch out.Reason {
	case v1alpha1.ReasonCheckFailed:
		switch out.Again {
		case AgainSoon:
			return "It is tried again by itself"
		case AgainAtInterval:
			return "It is looked at again at each interval: push a commit that mends it, or put right in the cluster what it lacks"
		}
		return "It is not tried again: push a commit that mends it, or correct the spec"
	case v1alpha1.ReasonRenderFailed:
		return "It is not tried again: push a commit that mends it, or correct the spec"
	case v1alpha1.ReasonPruneGuarded:
		if out.Plan.Guard.Reason != apply.GuardEmpty {
			return fmt.Sprintf("To confirm: kubectl annotate mooring %s --overwrite mooring.dev/confirm=%s,deletes=%d",
				strings.ReplaceAll("-n "+out.Plan.Unit.Name, "/", " "), out.Newest, len(out.Plan.Deletes()))
		}
	case v1alpha1.ReasonVerificationFailed:
		if out.Again == AgainSoon {
			return "It is tried again by itself"
		}
		return "It is looked at again when the keys have changed, or there is another commit or tag"
	case v1alpha1.ReasonApplyFailed:
		return "It is tried again by itself"
	}
	return ""
}

// hint of the first fault that keeps one beside its text.
func hint(err error) string {
	for _, fault := range flat(err) {
		if h := repos.HintOf(fault); h != "" {
			return h
		}
		if e, ok := errors.AsType[interface {
			error
			Mend() string
		}](fault); ok {
			return e.Mend()
		}
	}
	return ""
}

// sentence ends with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?") {
		return s
	}
	return s + "."
}

func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-3], "") + "…"
}
