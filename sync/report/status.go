package report

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/unmanaged"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// How much of a long list the status holds; the counts beside the lists are of all.
const (
	maxListed  = 20
	maxHistory = 10
	maxChanged = 10
)

// Status is the status of m after a pass with this outcome.
func Status(m *v1alpha1.Mooring, out Outcome) v1alpha1.MooringStatus {
	s := *m.Status.DeepCopy()
	s.ObservedGeneration = out.Generation
	if request := m.Annotations[v1alpha1.ReconcileAnnotation]; request != "" && out.Reason != v1alpha1.ReasonSuspended {
		s.LastHandledReconcileAt = request
	}
	setConditions(&s, out)
	s.LastScheduleTime = slot(s.LastScheduleTime, out)
	if out.Reason == v1alpha1.ReasonSuspended {
		return s
	}
	s.UnfinishedRevision = out.Unfinished
	if !out.Newest.IsZero() {
		s.LastAttemptedRevision = out.Newest.String()
		s.Accepted = out.Accepted
	}
	if !out.Newest.IsZero() && out.Standing == nil {
		s.Findings, s.FindingCount, s.BlockingCount = findings(out)
		s.NotChecked, s.NotCheckedCount = notChecked(out.NotChecked)
	}
	if out.LookedBeside {
		s.Unmanaged, s.UnmanagedCount = unmanagedObjects(out.Unmanaged)
	}
	if out.Result != nil {
		s.Drift, s.DriftCount = driftEntries(out)
		s.Corrections, s.Fights = corrections(s.Corrections, out), fightEntries(out)
		s.Inventory = &v1alpha1.Inventory{Objects: int32(out.Result.Objects), ID: out.Plan.Unit.ID}
	}
	if !out.Applied.IsZero() {
		s.LastAppliedRevision = out.Applied.String()
		s.History = history(s, out)
	}
	s.Rollback = out.Rollback
	if out.Promotion != nil {
		s.Promotion = promotion(s.Promotion, out)
	} else if !out.Follows {
		s.Promotion = nil
	}
	return s
}

func setConditions(s *v1alpha1.MooringStatus, out Outcome) {
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: clip(message),
			ObservedGeneration: out.Generation, LastTransitionTime: metav1.NewTime(out.Finished),
		})
	}
	ready, message := metav1.ConditionFalse, Message(out)
	switch out.Reason {
	case v1alpha1.ReasonApplied:
		ready = metav1.ConditionTrue
	case v1alpha1.ReasonProgressing, v1alpha1.ReasonSuspended:
		ready = metav1.ConditionUnknown
	}
	reconciling := out.Reason
	if out.Reason == v1alpha1.ReasonProgressing && faulty(s.Conditions) {
		reconciling = v1alpha1.ReasonRecovering
	}
	set(v1alpha1.ConditionReady, ready, out.Reason, message)

	// Reconciling and Stalled are there only while they are true, as kstatus wants them.
	while := func(holds bool, kind, reason string) {
		if holds {
			set(kind, metav1.ConditionTrue, reason, message)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
	while(out.Reason != v1alpha1.ReasonApplied && out.Reason != v1alpha1.ReasonSuspended && !stalls(out), v1alpha1.ConditionReconciling, reconciling)
	while(stalls(out), v1alpha1.ConditionStalled, out.Reason)
	if pin := out.Pin; pin != nil {
		set(v1alpha1.ConditionPinned, metav1.ConditionTrue, "Pinned", pinned(pin))
	} else {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionPinned)
	}
	if w := out.Promotion; w != nil {
		set(v1alpha1.ConditionPromoted, w.status(), w.Reason, w.Message)
	} else if !out.Follows {
		meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionPromoted)
	}
	if out.Result == nil {
		return // nothing was looked at: what was known of drift and health stays
	}
	status, why, what := drifted(out)
	set(v1alpha1.ConditionDrifted, status, why, what)
	if sick := out.Result.Unhealthy(); len(sick) > 0 {
		set(v1alpha1.ConditionHealthy, metav1.ConditionFalse, "Unhealthy", unhealthy(sick))
	} else {
		set(v1alpha1.ConditionHealthy, metav1.ConditionTrue, "Healthy", "every object is healthy")
	}
}

// faulty is true from a fault until a commit is in force: while the commit that mends it becomes healthy, Ready is Unknown and has forgotten it.
func faulty(conditions []metav1.Condition) bool {
	ready, reconciling := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady), meta.FindStatusCondition(conditions, v1alpha1.ConditionReconciling)
	return ready != nil && ready.Status == metav1.ConditionFalse && !waiting(ready.Reason) ||
		reconciling != nil && reconciling.Reason == v1alpha1.ReasonRecovering
}

// waiting is true for the reasons that are no faults: somebody wants the commit to wait.
func waiting(reason string) bool {
	return reason == v1alpha1.ReasonWindowClosed || reason == v1alpha1.ReasonDependencyNotReady || reason == v1alpha1.ReasonPromotionPending
}

// slot of a schedule up to which Git was asked. Suspended, nobody asks.
func slot(known *metav1.Time, out Outcome) *metav1.Time {
	switch {
	case out.Reason == v1alpha1.ReasonSuspended || out.Scheduled && out.Slot.IsZero():
		return known
	case !out.Scheduled:
		return nil
	case known != nil && known.Equal(new(metav1.NewTime(out.Slot))):
		return known
	}
	return new(metav1.NewTime(out.Slot))
}

// stalls is true for the reasons that no retry cures: another commit, spec or confirmation is needed.
func stalls(out Outcome) bool {
	switch out.Reason {
	case v1alpha1.ReasonRenderFailed, v1alpha1.ReasonCheckFailed, v1alpha1.ReasonPruneGuarded, v1alpha1.ReasonVerificationFailed:
		return out.Again != AgainSoon
	}
	return out.Reason == v1alpha1.ReasonHealthTimeout && out.Rollback != nil // it waits for another commit
}

func findings(out Outcome) (listed []v1alpha1.FindingEntry, count, blocking int32) {
	for _, f := range out.Findings[:min(len(out.Findings), maxListed)] {
		listed = append(listed, v1alpha1.FindingEntry{
			Code: f.Code, Level: string(f.Level), Object: f.Subject(), File: f.Origin.String(), Message: clip(f.Text()),
			Known: f.Known, Foreign: f.Foreign, Suppressed: accepted(f.Suppressed),
		})
	}
	for _, f := range out.Findings {
		if out.blocks(f) {
			blocking++
		}
	}
	return listed, int32(len(out.Findings)), blocking
}

// accepted says who accepted a finding, and why.
func accepted(s *check.Suppressed) string {
	switch {
	case s == nil:
		return ""
	case s.Reason == "":
		return s.By
	}
	return clip(s.By + ": " + s.Reason)
}

func notChecked(gaps []check.Gap) (listed []v1alpha1.NotCheckedEntry, count int32) {
	for _, g := range gaps[:min(len(gaps), maxListed)] {
		listed = append(listed, v1alpha1.NotCheckedEntry{Code: g.Code, About: clip(g.About), Why: clip(g.Why)})
	}
	return listed, int32(len(gaps))
}

func unmanagedObjects(found []unmanaged.Finding) (listed []v1alpha1.UnmanagedEntry, count int32) {
	for _, f := range found[:min(len(found), maxListed)] {
		entry := v1alpha1.UnmanagedEntry{Object: f.Object.String(), BearsOn: clip(BearsOn(f)), Why: clip(f.Why)}
		if !f.Created.IsZero() {
			entry.Created = new(metav1.NewTime(f.Created))
		}
		for _, w := range f.Writers {
			if !slices.Contains(entry.Managers, w.Manager) && len(entry.Managers) < maxManagers {
				entry.Managers = append(entry.Managers, w.Manager)
			}
		}
		listed = append(listed, entry)
	}
	return listed, int32(len(found))
}

// maxManagers of an object that the status names, and maxBorne hosts or workloads.
const (
	maxManagers = 5
	maxBorne    = 3
)

// BearsOn names what an object that nobody manages bears on: a host and those that are with it, or workloads where there are some.
func BearsOn(f unmanaged.Finding) string {
	all := f.Workloads
	if len(all) == 0 {
		all = f.Hosts
	}
	text := strings.Join(all[:min(len(all), maxBorne)], ", ")
	if more := len(all) - maxBorne; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(f.Workloads) > 0 && len(f.Hosts) > 0 {
		hosts := f.Hosts[0]
		if more := len(f.Hosts) - 1; more > 0 {
			hosts += fmt.Sprintf(" and %d more", more)
		}
		text += " (" + hosts + ")"
	}
	return text
}
