package sync_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// pushes is a chain whose prod has a branch of its own, at commit a.
func pushes(t *testing.T) *chain {
	t.Helper()
	c := follows(t, 10*time.Minute)
	c.prod.m.Spec.Promotion.Mode = v1alpha1.PromotionFastForward
	c.prod.m.Spec.Promotion.SecretRef = &v1alpha1.LocalReference{Name: "git-write"}
	c.prod.m.Spec.Source.Ref.Branch = "env/prod"
	c.prod.head = prodRev("a")
	c.commit(t, "a")
	want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
	return c
}

func prodRev(digit string) repos.Revision {
	return repos.Revision{Ref: "env/prod", Commit: rev(digit).Commit}
}

// prodAfter is after for a branch of its own.
func (c *chain) prodAfter(t *testing.T, d time.Duration, digit, reason string) {
	t.Helper()
	c.prod.works(t, time.Now().Add(d).Format(time.RFC3339Nano))
	promoted := meta.FindStatusCondition(c.prod.m.Status.Conditions, v1alpha1.ConditionPromoted)
	if got := c.prod.m.Status.LastAppliedRevision; got != prodRev(digit).String() || promoted.Reason != reason {
		t.Fatalf("%s is in force and Promoted is %+v, want %s and %s", got, promoted, prodRev(digit), reason)
	}
}

func TestFastForwardPushesWhatIsProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pushes(t)
		c.prodAfter(t, time.Hour, "a", v1alpha1.ReasonUpToDate)
		c.commit(t, "b")
		c.prodAfter(t, 9*time.Minute, "a", v1alpha1.ReasonSoaking)
		c.prodAfter(t, 2*time.Minute, "b", v1alpha1.ReasonUpToDate) // in the very pass that pushed it
		if diff := cmp.Diff([]string{"env/prod a to b"}, c.prod.pushed); diff != "" {
			t.Errorf("pushes:\n%s", diff)
		}
		if e := c.prod.m.Status.History[0]; e.By != "promotion" || c.prod.m.Status.Promotion.Revision != rev("b").String() {
			t.Errorf("history %+v, promotion %+v", e, c.prod.m.Status.Promotion)
		}
		before := c.prod.m.Status
		c.prodAfter(t, 5*time.Hour, "b", v1alpha1.ReasonUpToDate)
		if diff := cmp.Diff(before, c.prod.m.Status); diff != "" || len(c.prod.pushed) != 1 || c.prod.relates != 0 {
			t.Errorf("%d pushes, %d questions about commits, and the status has changed:\n%s", len(c.prod.pushed), c.prod.relates, diff)
		}
	})
}

// The agent was killed after the push and before it wrote anything down.
func TestFastForwardFindsItsOwnPushAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pushes(t)
		c.commit(t, "b")
		time.Sleep(11 * time.Minute)
		c.prod.Once(t.Context(), c.prod.m) // whose status is lost
		c.prod.Syncer = c.prod.restarted()
		c.prodAfter(t, time.Minute, "b", v1alpha1.ReasonUpToDate)
		if len(c.prod.pushed) != 1 || c.prod.m.Status.History[0].By != "promotion" {
			t.Errorf("pushes %v, by %s", c.prod.pushed, c.prod.m.Status.History[0].By)
		}
	})
}

func TestFastForwardLosesARace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pushes(t)
		c.commit(t, "b")
		time.Sleep(11 * time.Minute)
		c.prod.pushErr = &repos.Error{Kind: repos.KindMoved, Err: errors.New("the branch has moved")}
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		c.prod.pushErr = nil
		c.prod.head = prodRev("e") // a person's commit, upon b
		c.prodAfter(t, 2*time.Second, "e", v1alpha1.ReasonUpToDate)
		if len(c.prod.pushed) != 1 {
			t.Errorf("pushes %v", c.prod.pushed)
		}
	})
}

func TestFastForwardOfADivergedBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pushes(t)
		c.prod.head, c.prod.diverged = prodRev("f"), true
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		c.commit(t, "b")
		c.prod.pushErr = &repos.Error{Kind: repos.KindDiverged, Err: errors.New("diverged")}
		c.prodAfter(t, time.Hour, "f", v1alpha1.ReasonDiverged) // what the branch has is in force all the same
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		c.wants(t, "b Diverged, a Skipped")
		if got := meta.FindStatusCondition(c.prod.m.Status.Conditions, v1alpha1.ConditionPromoted).Message; !strings.Contains(got, "merge \"env/prod\" into the branch that Mooring mesh/staging follows") {
			t.Errorf("says %q", got)
		}
	})
}

func TestFastForwardMakesTheBranchOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 10*time.Minute)
		c.prod.m.Spec.Promotion.Mode = v1alpha1.PromotionFastForward
		c.prod.m.Spec.Promotion.SecretRef = &v1alpha1.LocalReference{Name: "git-write"}
		c.prod.m.Spec.Source.Ref.Branch = "env/prod"
		c.prod.resolveErr = &repos.Error{Kind: repos.KindRefNotFound, Err: repos.ErrRefNotFound}
		c.commit(t, "a")
		want(t, c.prod.pass(t), v1alpha1.ReasonFetchFailed)
		time.Sleep(11 * time.Minute)
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		if diff := cmp.Diff([]string{"env/prod none to a"}, c.prod.pushed); diff != "" {
			t.Errorf("pushes:\n%s", diff)
		}
		time.Sleep(time.Hour) // somebody has deleted the branch
		want(t, c.prod.pass(t), v1alpha1.ReasonFetchFailed)
		if len(c.prod.pushed) != 1 {
			t.Errorf("pushes %v", c.prod.pushed)
		}
	})
}

func TestWindowsHoldAPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pushes(t)
		c.prod.m.Spec.Windows = []v1alpha1.Window{{Kind: v1alpha1.WindowDeny, Schedule: "0 1 * * *", Duration: metav1.Duration{Duration: 12 * time.Hour}}}
		until(t, "2000-01-01T02:00:00Z")
		c.commit(t, "b")
		c.prodAfter(t, 10*time.Hour, "a", v1alpha1.ReasonAwaitingWindow)
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		c.prodAfter(t, 2*time.Hour, "b", v1alpha1.ReasonUpToDate)
	})
}

// From Friday 17:00 for 63 hours, over the weekend on which the clocks go forward: by the clock in Berlin it ends at nine on Monday, not at eight.
func TestWindowHoldsAPromotionOverAWeekendWithDaylightSaving(t *testing.T) {
	for _, mode := range []v1alpha1.PromotionMode{v1alpha1.PromotionFollow, v1alpha1.PromotionFastForward} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until(t, "2000-03-24T12:00:00Z")
				c, waits := pushes(t), v1alpha1.ReasonAwaitingWindow
				take, full := c.prodAfter, prodRev
				if mode == v1alpha1.PromotionFollow {
					c, waits = follows(t, 10*time.Minute), v1alpha1.ReasonWindowClosed
					take, full = c.after, rev
					c.commit(t, "a")
					c.after(t, 11*time.Minute, "a", v1alpha1.ReasonUpToDate)
				}
				c.prod.m.Spec.Windows = []v1alpha1.Window{{
					Kind: v1alpha1.WindowDeny, Schedule: "0 17 * * FRI", Duration: metav1.Duration{Duration: 63 * time.Hour}, TimeZone: "Europe/Berlin",
				}}
				until(t, "2000-03-24T15:55:00Z")
				c.commit(t, "b") // proven five minutes after the window has begun
				end := time.Date(2000, 3, 27, 7, 0, 0, 0, time.UTC)
				take(t, time.Until(end)-time.Second, "a", waits)
				take(t, 2*time.Second, "b", v1alpha1.ReasonUpToDate)
				if got := c.prod.m.Status.History[0]; got.AppliedAt.Time.Before(end) || got.Revision != full("b").String() {
					t.Errorf("history says %+v", got)
				}
			})
		})
	}
}
