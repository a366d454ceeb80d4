package report

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// EventDriftCorrected is the reason of an Event: what somebody changed was put back.
const EventDriftCorrected = "DriftCorrected"

// Event is one thing that happened, worth a Kubernetes Event on the Mooring.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is a Ready reason, or DriftCorrected, DriftDetected, Fight, FightOver, ProxiesNotAsked, Recovered, WindowOverridden,
	// Pinned, Unpinned, RolledBack, Promoted, or a reason of the condition Promoted.
	Reason string
	// Action says what Mooring did: Apply, Correct, Refuse, Wait, Alarm, Promote.
	Action string
	Note   string
}

// Events of a pass, from the status before and after it. Most passes have none.
func Events(before, after v1alpha1.MooringStatus, out Outcome) []Event {
	events := append(writes(out), drifts(out)...)
	events = append(events, promotions(before, after, out)...)
	if pin := out.Pin; pin != nil && (meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionPinned) == nil || message(before, v1alpha1.ConditionPinned) != pinned(pin)) {
		events = append(events, Event{corev1.EventTypeNormal, "Pinned", "Apply", pinned(pin)})
	} else if pin == nil && meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionPinned) != nil {
		events = append(events, Event{corev1.EventTypeNormal, "Unpinned", "Apply", "newer commits are taken up again"})
	}
	if rb := out.Rollback; rb != nil && before.Rollback == nil {
		events = append(events, Event{corev1.EventTypeWarning, "RolledBack", "Apply", fmt.Sprintf("%s was not healthy in time, so that %s comes back: %s", rb.Bad, rb.To, rb.Why)})
	}
	if out.Cause == CauseOverride && out.OverrideUsed { // told once, and not of a plan that something else held
		events = append(events, Event{corev1.EventTypeNormal, "WindowOverridden", "Apply", out.Newest.String() + " is applied although a window is closed: " + out.Override})
	}
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	if is == nil || (was != nil && was.Reason == is.Reason && was.Message == is.Message) {
		return events
	}
	switch {
	case waiting(is.Reason):
		events = append(events, Event{corev1.EventTypeNormal, is.Reason, "Wait", is.Message})
	case is.Status == metav1.ConditionFalse:
		events = append(events, Event{corev1.EventTypeWarning, is.Reason, "Refuse", is.Message})
	case is.Status == metav1.ConditionTrue && faulty(before.Conditions):
		events = append(events, Event{corev1.EventTypeNormal, "Recovered", "Apply", is.Message})
	}
	return events
}

// message of a condition; empty where there is none.
func message(s v1alpha1.MooringStatus, kind string) string {
	if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

// writes tells what a run wrote: what was put back, and what a commit changed.
func writes(out Outcome) []Event {
	if out.Result == nil {
		return nil
	}
	var events []Event
	corrected := func(s apply.StepResult) bool { return s.Drift != "" }
	if note := did(out.Result, corrected); note != "" {
		events = append(events, Event{corev1.EventTypeNormal, EventDriftCorrected, "Correct", "corrected to " + out.Applied.String() + ": " + note})
	}
	note := did(out.Result, func(s apply.StepResult) bool { return !corrected(s) })
	if note != "" {
		events = append(events, Event{corev1.EventTypeNormal, v1alpha1.ReasonApplied, "Apply", revision(out) + ": " + note})
	}
	if len(events) > 0 && out.Unasked != "" {
		events = append(events, Event{corev1.EventTypeNormal, "ProxiesNotAsked", "Apply", "a pause had to do between two waves: " + out.Unasked})
	}
	return events
}

// drifts tells of drift that is left as it is, when it is new, and of fights when they begin and when they are over.
func drifts(out Outcome) []Event {
	var events []Event
	var found []string
	for _, d := range out.Drift {
		if d.New && d.Reason == v1alpha1.ReasonAlarm {
			found = append(found, fmt.Sprintf("%s: is %s, Git wants %s", d, orNone(d.Live), orNone(d.Want)))
		}
	}
	if len(found) > 0 {
		events = append(events, Event{
			corev1.EventTypeWarning, "DriftDetected", "Alarm",
			few(found, "fields") + ". It is left as it is, because spec.drift.mode is Alarm",
		})
	}
	for _, f := range out.FightsBegun {
		events = append(events, Event{
			corev1.EventTypeWarning, v1alpha1.ReasonFight, "Correct",
			fmt.Sprintf("%s: put back %d times; from now on ever more slowly", f, f.Corrections),
		})
	}
	for _, f := range out.FightsOver {
		events = append(events, Event{
			corev1.EventTypeNormal, "FightOver", "Correct",
			fmt.Sprintf("nobody has undone it for a while: %s of %s, which %s had changed", f.What(), f.ID, f.With()),
		})
	}
	return events
}

func orNone(v any) string {
	if v == nil {
		return "absent"
	}
	return Text(v)
}

func revision(out Outcome) string {
	if out.Err != nil && !out.Newest.IsZero() && out.Cause != CauseDrift {
		return out.Newest.String() + " in part"
	}
	return out.Applied.String()
}

// did says what a run changed of these: the counts, then the first objects, each with the first field that was put right
// and the manager that had written it. Empty when it changed nothing of them.
func did(r *apply.Result, which func(apply.StepResult) bool) string {
	of := &apply.Result{}
	for _, step := range r.Steps {
		if step.State == apply.Done && !step.Again() && changes(step.Action) && which(step) {
			of.Steps = append(of.Steps, step)
		}
	}
	c := of.Counts()
	if c.Changes() == 0 {
		return ""
	}
	var objects []string
	for _, step := range of.Steps {
		switch step.Action {
		case apply.Create, apply.Delete, apply.Replace:
			objects = append(objects, fmt.Sprintf("%sd %s", step.Action, step.ID))
		case apply.Update:
			objects = append(objects, "configured "+step.ID.String()+fields(step.Diff))
		}
	}
	return fmt.Sprintf("%d created, %d configured, %d deleted: %s", c.Create, c.Update+c.Replace, c.Delete, few(objects, "objects"))
}

func fields(diff []apply.FieldDiff) string {
	if len(diff) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, " (%s", diff[0].Path)
	if who := diff[0].Who(); who != "" {
		fmt.Fprintf(&b, " by %s", who)
	}
	if len(diff) > 1 {
		fmt.Fprintf(&b, " and %d more fields", len(diff)-1)
	}
	b.WriteString(")")
	return b.String()
}
