package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Drift is one field of a live object, or an object as a whole, that somebody made other than the applied revision wants it.
type Drift struct {
	ID render.ID
	// FieldDiff says what differs and who wrote it. An object as a whole has no path.
	apply.FieldDiff
	// Reason why it is not put right, one of v1alpha1's; empty when it was.
	Reason string
	// Since when it is known that the field has this live value, and whether this pass was the first to see it. For what was put right neither is told.
	Since time.Time
	New   bool
}

// What an object as a whole is and should be.
const (
	present = "present"
	absent  = "absent"
)

// DriftOf a step that is about drift: its fields, or the object as a whole.
func DriftOf(step apply.StepResult, reason string) []Drift {
	fields := step.Diff
	switch step.Drift {
	case apply.DriftDeleted:
		fields = []apply.FieldDiff{{Want: present, Live: absent}}
	case apply.DriftExtra:
		fields = []apply.FieldDiff{{Want: absent, Live: present}}
	}
	var all []Drift
	for _, d := range fields {
		all = append(all, Drift{ID: step.ID, FieldDiff: d, Reason: reason})
	}
	return all
}

// String reads "/spec/replicas of Deployment/shop/web, by kubectl-edit (Update, 2026-01-02T03:04:05Z)".
func (d Drift) String() string {
	s := d.ID.String() + " as a whole"
	if d.Path != "" {
		s = d.Path + " of " + d.ID.String()
	}
	if who := d.Who(); who != "" {
		s += ", by " + who
	}
	return s
}

// Fight is one field that Mooring and somebody else set by turns.
type Fight struct {
	ID             render.ID
	Field, Manager string
	// Corrections since the fight began.
	Corrections int
	// Since the first correction; the next one does not come before Next.
	Since, Next time.Time
}

// Same is true for a fight over the same field with the same manager.
func (f Fight) Same(other Fight) bool {
	return f.ID == other.ID && f.Field == other.Field && f.Manager == other.Manager
}

// With whom; also where nobody has left a name.
func (f Fight) With() string {
	if f.Manager == "" {
		return "somebody who leaves no name"
	}
	return f.Manager
}

// What is fought over, inside the object.
func (f Fight) What() string {
	if f.Field == "" {
		return "the whole object"
	}
	return f.Field
}

func (f Fight) String() string {
	return fmt.Sprintf("%s and %s undo each other at %s of %s", apply.FieldManager, f.With(), f.What(), f.ID)
}

// Drifting is what differs after the pass.
func (o Outcome) Drifting() []Drift {
	return slices.DeleteFunc(slices.Clone(o.Drift), func(d Drift) bool { return d.Reason == "" })
}

// Corrected is what the pass put right.
func (o Outcome) Corrected() []Drift {
	return slices.DeleteFunc(slices.Clone(o.Drift), func(d Drift) bool { return d.Reason != "" })
}

// objectsOf counts the objects that something is about.
func objectsOf(all []Drift) int {
	seen := map[render.ID]bool{}
	for _, d := range all {
		seen[d.ID] = true
	}
	return len(seen)
}

// drifted is the condition Drifted: what differs, at first sight. It holds no time and no live value, so that it does not flap while somebody writes.
func drifted(out Outcome) (status metav1.ConditionStatus, reason, message string) {
	if len(out.Fights) > 0 {
		var all []string
		for _, f := range out.Fights {
			all = append(all, f.String())
		}
		return metav1.ConditionTrue, v1alpha1.ReasonFight, few(all, "fields") + ". It is put back ever more slowly, until nobody has undone it for ten minutes. " +
			"Stop the other one, or leave the field to it: out of Git, or in spec.drift.ignore"
	}
	all := out.Drifting()
	if len(all) == 0 {
		return metav1.ConditionFalse, "InSync", "every object is as the applied revision wants it"
	}
	d := all[0]
	what := fmt.Sprintf("%s of %s differs from the applied revision", d.Path, d.ID)
	switch {
	case d.Path == "" && d.Live == absent:
		what = fmt.Sprintf("%s was deleted", d.ID)
	case d.Path == "":
		what = fmt.Sprintf("%s is there, and neither Git nor the applied revision has it", d.ID)
	}
	if d.Manager != "" && d.Who() != "" {
		what += ", written by " + d.Manager
	}
	if more := len(all) - 1; more > 0 {
		what += fmt.Sprintf("; %d fields of %d objects in all", len(all), objectsOf(all))
	}
	for _, d := range all {
		if d.Reason == v1alpha1.ReasonNotCorrected {
			return metav1.ConditionTrue, d.Reason, what + ". It could not be put right; the condition Ready says why"
		}
	}
	return metav1.ConditionTrue, d.Reason, what + ". It is left as it is, because spec.drift.mode is Alarm; status.drift has the values"
}

func driftEntries(out Outcome) (listed []v1alpha1.DriftEntry, count int32) {
	all := out.Drifting()
	for _, d := range all[:min(len(all), maxListed)] {
		since := metav1.NewTime(d.Since.Truncate(time.Second))
		listed = append(listed, v1alpha1.DriftEntry{
			Object: d.ID.String(), Field: d.Path, Want: Text(d.Want), Live: Text(d.Live),
			Manager: d.Manager, Operation: d.Operation, ChangedAt: timeOf(d.ChangedAt), Since: &since, Reason: d.Reason,
		})
	}
	return listed, int32(len(all))
}

// corrections puts what was put right first.
func corrections(known []v1alpha1.CorrectionEntry, out Outcome) []v1alpha1.CorrectionEntry {
	var all []v1alpha1.CorrectionEntry
	for _, d := range out.Corrected() {
		all = append(all, v1alpha1.CorrectionEntry{
			Object: d.ID.String(), Field: d.Path, Want: Text(d.Want), Live: Text(d.Live),
			Manager: d.Manager, Operation: d.Operation, ChangedAt: timeOf(d.ChangedAt),
			CorrectedAt: metav1.NewTime(out.Finished.Truncate(time.Second)),
		})
	}
	all = append(all, known...)
	return all[:min(len(all), maxListed)]
}

func fightEntries(out Outcome) []v1alpha1.FightEntry {
	var all []v1alpha1.FightEntry
	for _, f := range out.Fights[:min(len(out.Fights), maxListed)] {
		all = append(all, v1alpha1.FightEntry{
			Object: f.ID.String(), Group: f.ID.Group, Field: f.Field, Manager: f.Manager, Corrections: int32(f.Corrections),
			Since: metav1.NewTime(f.Since.Truncate(time.Second)), Next: metav1.NewTime(f.Next.Truncate(time.Second)),
		})
	}
	return all
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t)
	return &at
}

// Text writes a value on one line, and of a long one the beginning. It is how the status knows a value again.
func Text(v any) string {
	const long = 200
	var s string
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		s = v
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		s = string(text)
	}
	if len(s) > long {
		s = strings.ToValidUTF8(s[:long], "") + "…"
	}
	return s
}
