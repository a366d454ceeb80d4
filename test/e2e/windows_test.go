package e2e_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// denied gives a Mooring a window that is on, until an instant; a zero one is never.
func denied(end time.Time) func(*mooring) {
	return func(m *mooring) {
		w := v1alpha1.Window{Kind: v1alpha1.WindowDeny, Schedule: "* * * * *", Duration: metav1.Duration{Duration: time.Hour}}
		if !end.IsZero() {
			start := time.Now().UTC().Add(-time.Minute).Truncate(time.Minute)
			w.Schedule = v1alpha1.CronExpression(fmt.Sprintf("%d %d * * *", start.Minute(), start.Hour()))
			w.Duration.Duration = end.Sub(start)
		}
		m.Spec.Windows = []v1alpha1.Window{w}
	}
}

// TestWindowHoldsACommit holds one, corrects drift meanwhile, and applies it once when a person says so.
func TestWindowHoldsACommit(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1"))
	u := s.mooring("prod", nil)
	good := s.head()
	u.inForce(good)
	u.edit(denied(time.Time{}))

	held := s.commit(some("a=2 c=2"))
	m := u.sync()
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonWindowClosed, held+" waits: spec.windows[0] (Deny, * * * * *, UTC) is on", good+" stays in force",
		"mooring sync prod -n "+s.ns+" --override-window REASON")
	condition(t, m, v1alpha1.ConditionStalled, "")
	u.event(v1alpha1.ReasonWindowClosed, held)
	s.tamper("a", "by-hand")
	s.becomes("a=1 b=1")

	// A confirmation is for a guard.
	u.edit(func(m *mooring) {
		m.Annotations[v1alpha1.ConfirmAnnotation] = held
		m.Annotations[v1alpha1.ReconcileAnnotation] = "confirmed"
	})
	u.until("the confirmation was seen", func(m *mooring) error {
		if m.Status.LastHandledReconcileAt != "confirmed" {
			return fmt.Errorf("the last pass answered %q", m.Status.LastHandledReconcileAt)
		}
		return world.HasReason(v1alpha1.ReasonWindowClosed)(m)
	})
	s.want("a=1 b=1")

	reason := "incident 4711: \"retries\" off\u200b\a" // what a person may write
	u.edit(func(m *mooring) { m.Annotations[v1alpha1.OverrideWindowAnnotation] = reason })
	m = u.inForce(held)
	s.want("a=2 b=1 c=2")
	if h := m.Status.History[0]; h.By != "override" || h.Reason != reason {
		t.Errorf("the history says by %q: %q", h.By, h.Reason)
	}
	u.event("WindowOverridden", held, "incident 4711")
	u.until("the word is taken away", func(m *mooring) error {
		if word, ok := m.Annotations[v1alpha1.OverrideWindowAnnotation]; ok {
			return fmt.Errorf("it is there: %q", word)
		}
		return nil
	})
	next := s.commit(some("a=3"))
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonWindowClosed, next, held+" stays in force")
	s.want("a=2 b=1 c=2")
}

// TestWindowOpensByItself holds a first commit too, and takes it up when the window is over, long before the interval is.
func TestWindowOpensByItself(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	end := time.Now().Add(15 * time.Second).Truncate(time.Second)
	u := s.mooring("prod", denied(end))
	m := u.until("it is held", world.HasReason(v1alpha1.ReasonWindowClosed))
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonWindowClosed, "it is open again at "+end.UTC().Format("2006-01-02 15:04 MST"))
	s.want("")
	m = u.inForce(s.head())
	if at := m.Status.History[0].AppliedAt.Time; at.Before(end) {
		t.Errorf("applied at %s, which is before the window is over at %s", at, end)
	}
}

// TestScheduleTakesUpAtItsSlot asks Git at a full minute, and not before.
func TestScheduleTakesUpAtItsSlot(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	u := s.mooring("prod", func(m *mooring) { m.Spec.Schedule, m.Spec.Interval.Duration = "* * * * *", time.Second })
	u.inForce(s.head())
	if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); left < 10*time.Second {
		// The commit is to be made in the middle of a minute.
		eventually(t, "the next minute has begun", func() error {
			if now := time.Now(); now.Second() < 2 || now.Second() > 45 {
				return fmt.Errorf("it is %s", now)
			}
			return nil
		})
	}
	slot := time.Now().Truncate(time.Minute).Add(time.Minute)
	second := s.commit(some("a=2"))
	m, err := u.w.Until(within(t, 2*patience), u.Key, "the commit is in force", world.InForce(second))
	if err != nil {
		t.Fatal(err)
	}
	if at := m.Status.History[0].AppliedAt.Time; at.Before(slot) || m.Status.LastScheduleTime == nil || m.Status.LastScheduleTime.Time.Before(slot) {
		t.Errorf("applied at %s for the slot %v, want it at %s", at, m.Status.LastScheduleTime, slot)
	}
}

// TestTimesThatNeverCome are a condition, which another spec mends. Drift is corrected meanwhile.
func TestTimesThatNeverCome(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	u := s.mooring("prod", nil)
	u.inForce(s.head())
	u.edit(func(m *mooring) { m.Spec.Schedule = "0 0 31 2 *" })
	m := u.until("the schedule is refused", world.HasReason(v1alpha1.ReasonCheckFailed))
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, `spec.schedule: read "0 0 31 2 *": it never comes`, "edit the Mooring")
	condition(t, m, v1alpha1.ConditionStalled, metav1.ConditionTrue)
	s.tamper("a", "by-hand")
	s.becomes("a=1")
	u.edit(func(m *mooring) { m.Spec.Schedule = "0 0 29 2 *" })
	ready(t, u.until("it is mended", world.HasReason(v1alpha1.ReasonApplied)), metav1.ConditionTrue, v1alpha1.ReasonApplied)
}
