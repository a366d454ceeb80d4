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

// Event is one thing that happened, worth a Kubernetes Event on the Mooring.
type Event struct {
	// Type is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Type string
	// Reason is a Ready reason, or DriftCorrected, ProxiesNotAsked or Recovered.
	Reason string
	// Action says what Mooring did: Apply, Correct, Refuse.
	Action string
	Note   string
}

// Events of a pass, from the status before and after it. Most passes have none.
func Events(before, after v1alpha1.MooringStatus, out Outcome) []Event {
	var events []Event
	changed := 0
	if out.Result != nil {
		changed = out.Result.Counts().Changes()
	}
	switch {
	case changed > 0 && out.Cause == CauseDrift:
		events = append(events, Event{corev1.EventTypeNormal, "DriftCorrected", "Correct", "corrected to " + out.Applied.String() + ": " + did(out.Result)})
	case changed > 0:
		events = append(events, Event{corev1.EventTypeNormal, v1alpha1.ReasonApplied, "Apply", revision(out) + ": " + did(out.Result)})
	}
	if changed > 0 && out.Unasked != "" {
		events = append(events, Event{corev1.EventTypeNormal, "ProxiesNotAsked", "Apply", "a pause had to do between two waves: " + out.Unasked})
	}
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionReady)
	if is == nil || (was != nil && was.Reason == is.Reason && was.Message == is.Message) {
		return events
	}
	switch {
	case is.Status == metav1.ConditionFalse:
		events = append(events, Event{corev1.EventTypeWarning, is.Reason, "Refuse", is.Message})
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		events = append(events, Event{corev1.EventTypeNormal, "Recovered", "Apply", is.Message})
	}
	return events
}

func revision(out Outcome) string {
	if out.Err != nil && !out.Newest.IsZero() {
		return out.Newest.String() + " in part"
	}
	return out.Applied.String()
}

// did says what a run changed: the counts, then the first objects, each with the first field that was put right
// and the manager that had written it.
func did(r *apply.Result) string {
	c := r.Counts()
	var objects []string
	for _, step := range r.Steps {
		if step.State != apply.Done || step.Again() {
			continue
		}
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
	if diff[0].Manager != "" && diff[0].Manager != apply.FieldManager {
		fmt.Fprintf(&b, " by %s", diff[0].Manager)
	}
	if len(diff) > 1 {
		fmt.Fprintf(&b, " and %d more fields", len(diff)-1)
	}
	b.WriteString(")")
	return b.String()
}
