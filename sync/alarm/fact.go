package alarm

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// aspect of a Mooring that is either fine or faulty. A Mooring has at most one fault in each.
type aspect string

const (
	aspectReady     aspect = "ready"
	aspectDrift     aspect = "drift"
	aspectFight     aspect = "fight"
	aspectUnmanaged aspect = "unmanaged"
	aspectPromotion aspect = "promotion"
)

// aspectOf an event that is a fault.
func aspectOf(e v1alpha1.AlarmEvent) aspect {
	switch e {
	case v1alpha1.AlarmDrift:
		return aspectDrift
	case v1alpha1.AlarmFight:
		return aspectFight
	case v1alpha1.AlarmUnmanaged:
		return aspectUnmanaged
	case v1alpha1.AlarmPromotion:
		return aspectPromotion
	}
	return aspectReady
}

// state of an aspect.
type state int

const (
	// unknown leaves everything as it was: a pass that is under way says nothing about the fault before it.
	unknown state = iota
	fine
	faulty
	// gone closes what is open without a word: nobody looks any longer, and nothing recovered.
	gone
)

// fault is what is wrong with one aspect.
type fault struct {
	event   v1alpha1.AlarmEvent
	reason  string
	message string
	since   time.Time
}

// same says whether two are one fault. Its words may change while it lasts.
func (f fault) same(other fault) bool { return f.event == other.event && f.reason == other.reason }

// level of one aspect.
type level struct {
	state state
	fault fault
}

// mooring is what is known of one Mooring.
type mooring struct {
	name   types.NamespacedName
	labels map[string]string
	levels map[aspect]level
}

// look reads the levels of a Mooring from its status.
func look(m *v1alpha1.Mooring) *mooring {
	return &mooring{
		name:   types.NamespacedName{Namespace: m.Namespace, Name: m.Name},
		labels: m.Labels,
		levels: levels(m),
	}
}

func levels(m *v1alpha1.Mooring) map[aspect]level {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	found := map[aspect]level{
		aspectReady: readiness(ready), aspectDrift: drift(m, ready), aspectFight: fight(m), aspectUnmanaged: unmanaged(m), aspectPromotion: promotion(m),
	}
	if ready != nil && ready.Reason == v1alpha1.ReasonSuspended {
		for a := range found {
			found[a] = level{state: gone}
		}
	}
	return found
}

func readiness(ready *metav1.Condition) level {
	switch {
	case ready == nil || ready.Status == metav1.ConditionUnknown:
		return level{}
	case ready.Status == metav1.ConditionTrue:
		return level{state: fine}
	}
	event := v1alpha1.AlarmFailed
	switch ready.Reason {
	case v1alpha1.ReasonPruneGuarded:
		event = v1alpha1.AlarmGuarded
	case v1alpha1.ReasonWindowClosed, v1alpha1.ReasonPromotionPending, v1alpha1.ReasonDependencyNotReady:
		return level{} // somebody wants it to wait
	}
	return level{faulty, fault{event: event, reason: ready.Reason, message: ready.Message, since: ready.LastTransitionTime.Time}}
}

// drift that stays. What a failed pass could not put right and what is fought over differ as well: each is one fault, told as failed and as
// a fight.
func drift(m *v1alpha1.Mooring, ready *metav1.Condition) level {
	drifted := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrifted)
	switch {
	case drifted == nil, drifted.Status == metav1.ConditionUnknown, drifted.Reason == v1alpha1.ReasonFight:
		return level{}
	case drifted.Status == metav1.ConditionFalse:
		return level{state: fine}
	case drifted.Reason == v1alpha1.ReasonNotCorrected && ready != nil && ready.Status == metav1.ConditionFalse:
		return level{}
	}
	return level{faulty, fault{event: v1alpha1.AlarmDrift, reason: drifted.Reason, message: driftText(m, drifted), since: drifted.LastTransitionTime.Time}}
}

// fight that goes on.
func fight(m *v1alpha1.Mooring) level {
	if len(m.Status.Fights) == 0 {
		return level{state: fine}
	}
	var text []string
	for _, f := range m.Status.Fights {
		text = append(text, fmt.Sprintf("%s of %s, which %s writes as well: put back %d times", orNothing(f.Field), f.Object, orNothing(f.Manager), f.Corrections))
	}
	message := few(text, len(text), "fields")
	if drifted := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrifted); drifted != nil && drifted.Reason == v1alpha1.ReasonFight {
		message = drifted.Message // with the way out
	}
	return level{faulty, fault{event: v1alpha1.AlarmFight, reason: v1alpha1.ReasonFight, message: message, since: m.Status.Fights[0].Since.Time}}
}

// unmanaged objects that bear on the Mooring's.
func unmanaged(m *v1alpha1.Mooring) level {
	entries := m.Status.Unmanaged
	if len(entries) == 0 {
		return level{state: fine}
	}
	since := entries[0].Created
	var text []string
	for _, e := range entries {
		line := fmt.Sprintf("%s bears on %s: %s", e.Object, e.BearsOn, e.Why)
		if len(e.Managers) > 0 {
			line += " (written by " + strings.Join(e.Managers, ", ") + ")"
		}
		text = append(text, line)
		if e.Created != nil && (since == nil || since.Before(e.Created)) {
			since = e.Created // the newest: since then it is as it is now
		}
	}
	f := fault{event: v1alpha1.AlarmUnmanaged, reason: "Unmanaged", message: few(text, int(m.Status.UnmanagedCount), "objects")}
	if since != nil {
		f.since = since.Time
	}
	return level{faulty, f}
}

// promotion that does not go on without a person. What soaks, or waits for a window, goes on by itself.
func promotion(m *v1alpha1.Mooring) level {
	promoted := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionPromoted)
	if promoted == nil {
		return level{state: fine}
	}
	switch promoted.Reason {
	case v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingMerge, v1alpha1.ReasonGateClosed, v1alpha1.ReasonDiverged, v1alpha1.ReasonPromotionFailed:
		return level{faulty, fault{event: v1alpha1.AlarmPromotion, reason: promoted.Reason, message: promoted.Message, since: promoted.LastTransitionTime.Time}}
	}
	return level{state: fine}
}

// shown is how many of a list a message names in full.
const shown = 3

// driftText is the condition's message and the first fields with their values.
func driftText(m *v1alpha1.Mooring, drifted *metav1.Condition) string {
	var fields []string
	for _, e := range m.Status.Drift {
		by := ""
		if e.Manager != "" {
			by = ", by " + e.Manager
		}
		if e.ChangedAt != nil {
			by += " at " + e.ChangedAt.UTC().Format(time.RFC3339)
		}
		fields = append(fields, fmt.Sprintf("%s %s: Git has %s, the cluster %s%s", e.Object, e.Field, orNothing(e.Want), orNothing(e.Live), by))
	}
	if len(fields) == 0 {
		return drifted.Message
	}
	return drifted.Message + "\n" + few(fields, int(m.Status.DriftCount), "fields")
}

// few of a list, a line each, and the number of the rest.
func few(list []string, count int, what string) string {
	text := strings.Join(list[:min(shown, len(list))], "\n")
	if more := count - shown; more > 0 {
		text += fmt.Sprintf("\nand %d more %s", more, what)
	}
	return text
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// note is something that happened and has no end.
type note struct {
	mooring types.NamespacedName
	event   v1alpha1.AlarmEvent
	message string
	at      time.Time
}

// notes of a pass, from its Events.
func notes(name types.NamespacedName, out report.Outcome, events []report.Event, now time.Time) []note {
	var found []note
	for _, e := range events {
		switch {
		case e.Reason == report.EventDriftCorrected:
			found = append(found, note{name, v1alpha1.AlarmDriftCorrected, e.Note, now})
		case e.Reason == v1alpha1.ReasonApplied && out.Err == nil:
			found = append(found, note{name, v1alpha1.AlarmApplied, e.Note, now})
		}
	}
	return found
}
