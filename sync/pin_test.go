package sync_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func (w *world) pin(digit, reason string) {
	w.m.Spec.Pin = &v1alpha1.Pin{Revision: rev(digit).String(), Reason: reason}
	w.m.Generation++
}

func (w *world) takeUp(t *testing.T, digits ...string) {
	t.Helper()
	for _, digit := range digits {
		w.head = rev(digit)
		want(t, w.pass(t), v1alpha1.ReasonApplied)
	}
}

func TestPinHoldsARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.takeUp(t, "a", "b")
		w.pin("a", "incident 4711")
		before := w.m.Status
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonApplied)
		w.inForce(t, "a")
		if e := w.m.Status.History[0]; e.By != "rollback" || e.Reason != "incident 4711" || e.Revision != rev("a").String() {
			t.Errorf("history says %+v", e)
		}
		if out.Cause != report.CauseRollback || !w.policies[len(w.policies)-1].Prune {
			t.Errorf("cause %s, policy %+v: want what b has made pruned", out.Cause, w.policies[len(w.policies)-1])
		}
		var told []string
		for _, e := range report.Events(before, w.m.Status, out) {
			told = append(told, e.Reason+": "+e.Note)
		}
		if !strings.Contains(strings.Join(told, "\n"), "Pinned: "+rev("a").String()+" is pinned (incident 4711); newer commits wait for mooring unpin") {
			t.Errorf("Events are %v", told)
		}
		asked := w.resolves
		w.head = rev("c")
		w.works(t, time.Now().Add(24*time.Hour).Format(time.RFC3339))
		w.inForce(t, "a") // new commits wait, and Git is not asked for them
		if w.resolves != asked {
			t.Errorf("Git was asked %d times", w.resolves-asked)
		}
		w.Syncer = w.restarted()
		want(t, w.pass(t), v1alpha1.ReasonApplied)
		w.inForce(t, "a")
		w.m.Spec.Pin = nil
		w.m.Generation++
		want(t, w.pass(t), v1alpha1.ReasonApplied)
		w.inForce(t, "c")
		if e := w.m.Status.History[0]; e.By != "commit" || e.Reason != "" {
			t.Errorf("history says %+v", e)
		}
	})
}

// A rollback is for the night in which the window is closed.
func TestPinIsNotHeldByWindowsOrDependencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.takeUp(t, "a", "b")
		w.m.Spec.Windows = []v1alpha1.Window{{Kind: v1alpha1.WindowDeny, Schedule: "@hourly", Duration: metav1.Duration{Duration: 2 * time.Hour}}}
		w.m.Spec.DependsOn = []v1alpha1.Dependency{{Name: "nobody"}}
		w.pin("a", "")
		want(t, w.pass(t), v1alpha1.ReasonApplied)
		w.inForce(t, "a")
	})
}

// rolling is a Mooring that goes back by itself, with a and b in force one after the other.
func rolling(t *testing.T) *world {
	t.Helper()
	w := newWorld()
	w.m.Spec.Wait, w.m.Spec.OnFailure = true, v1alpha1.OnFailureRollback
	w.takeUp(t, "a", "b")
	return w
}

func TestOnFailureGoesBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rolling(t)
		w.sickAt = "c"
		w.head = rev("c")
		want(t, w.pass(t), v1alpha1.ReasonProgressing)
		w.works(t, time.Now().Add(5*time.Minute+10*time.Second).Format(time.RFC3339))
		w.inForce(t, "b")
		s := w.m.Status
		if s.Rollback == nil || s.Rollback.Bad != rev("c").String() || s.Rollback.To != rev("b").String() || !strings.Contains(s.Rollback.Why, "crash loop") {
			t.Fatalf("rollback is %+v", s.Rollback)
		}
		if len(s.History) != 4 || s.History[0].By != "rollback" || s.History[1].Failed == "" || s.History[0].Failed != "" {
			t.Errorf("history is %+v", s.History)
		}
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonHealthTimeout)
		if got := report.Message(out); !strings.Contains(got, "was taken back; "+rev("b").String()+" is in force again") {
			t.Errorf("says %q", got)
		}
		w.Syncer = w.restarted()
		runs, renders := w.runs, w.renders
		before := w.m.Status
		w.works(t, time.Now().Add(24*time.Hour).Format(time.RFC3339))
		w.inForce(t, "b") // c is not tried again
		if len(w.m.Status.History) != len(before.History) || w.renders > renders+2 || w.runs == runs {
			t.Errorf("%d renders, %d runs, history %v", w.renders-renders, w.runs-runs, w.m.Status.History)
		}
		w.takeUp(t, "d")
		w.inForce(t, "d")
		if w.m.Status.Rollback != nil {
			t.Error("the rollback is still told of")
		}
	})
}

// What comes back is not healthy either: nothing is taken back in its turn.
func TestOnFailureDoesNotGoBackTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rolling(t)
		w.head, w.unhealthy = rev("c"), sick()
		w.works(t, time.Now().Add(24*time.Hour).Format(time.RFC3339))
		w.inForce(t, "b")
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonHealthTimeout)
		if got := report.Message(out); !strings.Contains(got, "is not either") || len(w.m.Status.History) != 4 {
			t.Errorf("says %q; history %v", got, w.m.Status.History)
		}
		if w.m.Status.History[0].Failed != "" {
			t.Error("what came back is marked as failed, so that nobody can go back to it")
		}
	})
}

func TestOnFailureNeedsSomethingToGoBackTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.m.Spec.Wait, w.m.Spec.OnFailure = true, v1alpha1.OnFailureRollback
		w.unhealthy = sick()
		w.works(t, time.Now().Add(time.Hour).Format(time.RFC3339))
		w.inForce(t, "a")
		want(t, w.pass(t), v1alpha1.ReasonHealthTimeout)
		w.takeUpSick(t, "b") // a was never healthy
		w.inForce(t, "b")
		if w.m.Status.Rollback != nil {
			t.Errorf("rollback is %+v", w.m.Status.Rollback)
		}
	})
}

func (w *world) takeUpSick(t *testing.T, digit string) {
	t.Helper()
	w.head = rev(digit)
	w.works(t, time.Now().Add(time.Hour).Format(time.RFC3339))
}

// A person who pins the bad commit wants it.
func TestPinGoesBeforeRollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rolling(t)
		w.sickAt = "c"
		w.takeUpSick(t, "c")
		w.inForce(t, "b")
		w.pin("c", "to look at it")
		w.works(t, time.Now().Add(time.Hour).Format(time.RFC3339))
		w.inForce(t, "c")
		if w.m.Status.Rollback != nil {
			t.Errorf("rollback is %+v", w.m.Status.Rollback)
		}
	})
}

// A person edits the Mooring while the agent finds that it has to go back, and the cache has not heard of it: theirs counts.
func TestEditGoesBeforeRollback(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.Mooring){
		"pin": func(m *v1alpha1.Mooring) {
			m.Spec.Pin = &v1alpha1.Pin{Revision: rev("c").String(), Reason: "to look at it"}
		},
		"keep": func(m *v1alpha1.Mooring) { m.Spec.OnFailure = v1alpha1.OnFailureKeep },
		"":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := rolling(t)
				w.head, w.sickAt = rev("c"), "c"
				for w.m.Status.Rollback == nil {
					time.Sleep(w.Next(w.m, w.pass(t)))
				}
				w.inForce(t, "c")
				edited := w.m.DeepCopy()
				if edit != nil {
					edit(edited)
					edited.Generation++
				}
				w.others = map[string]*v1alpha1.Mooring{w.m.Name: edited}
				out := w.Once(t.Context(), w.AsEdited(t.Context(), w.m))
				if in, back := out.Applied.Commit, edit == nil; back != (in == rev("b").Commit) || !back && (in != rev("c").Commit || out.Rollback != nil) {
					t.Errorf("%s is in force, rollback %+v", in, out.Rollback)
				}
			})
		})
	}
}

// Where the Mooring cannot be read at that moment, what is known counts, and one that was made anew is another one.
func TestRollbackWithoutAWordFromTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := rolling(t)
		w.head, w.sickAt = rev("c"), "c"
		for w.m.Status.Rollback == nil {
			time.Sleep(w.Next(w.m, w.pass(t)))
		}
		if got := w.AsEdited(t.Context(), w.m); got != w.m {
			t.Errorf("it is %+v", got)
		}
		other := w.m.DeepCopy()
		other.UID, other.Generation = "another", 7
		w.others = map[string]*v1alpha1.Mooring{w.m.Name: other}
		if got := w.AsEdited(t.Context(), w.m); got != w.m {
			t.Errorf("it is %+v", got)
		}
	})
}
