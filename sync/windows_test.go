package sync_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// windowed is a world with commit a in force, and windows since then.
func windowed(t *testing.T, windows ...v1alpha1.Window) *world {
	t.Helper()
	w := newWorld()
	w.m.Spec.TimeZone = "Europe/Berlin"
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.m.Spec.Windows, w.m.Generation = windows, 2
	return w
}

func window(kind v1alpha1.WindowKind, expression v1alpha1.CronExpression, d time.Duration) v1alpha1.Window {
	return v1alpha1.Window{Kind: kind, Schedule: expression, Duration: metav1.Duration{Duration: d}}
}

func TestWindowHoldsCommitsAndNotDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := windowed(t, window(v1alpha1.WindowDeny, "0 0 * * SAT", 60*time.Hour))
		w.head, w.changes = rev("b"), 1
		until(t, "2000-01-01T12:00:00Z")
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonWindowClosed)
		if w.lastPlanned() != "a" || w.runs != 2 || out.Cause != report.CauseDrift || out.KeepErr != nil {
			t.Errorf("planned %v, %d runs, cause %s", w.planned, w.runs, out.Cause)
		}
		message := report.Message(out)
		for _, part := range []string{
			rev("b").String() + " waits: spec.windows[0] (Deny, 0 0 * * SAT, Europe/Berlin) is on; it is open again at 2000-01-03 12:00 CET",
			"mooring sync prod -n mesh --override-window REASON", rev("a").String() + " stays in force",
		} {
			if !strings.Contains(message, part) {
				t.Errorf("the message lacks %q: %s", part, message)
			}
		}
		before := w.m.Status
		w.annotate(v1alpha1.ConfirmAnnotation, rev("b").String()) // which is for a guard
		w.works(t, "2000-01-03T10:59:00Z")
		w.inForce(t, "a")
		if ready := w.m.Status.Conditions[0]; ready.Message != before.Conditions[0].Message || ready.LastTransitionTime != before.Conditions[0].LastTransitionTime {
			t.Errorf("the condition flaps: %s", ready.Message)
		}
		if w.renders != 2 {
			t.Errorf("%d renders while it waited", w.renders)
		}
		w.works(t, "2000-01-03T11:00:01Z") // twelve in Berlin, exactly
		w.inForce(t, "b")
	})
}

func TestFirstCommitIsHeldToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.m.Spec.Windows = []v1alpha1.Window{window(v1alpha1.WindowAllow, "0 8 * * *", 10*time.Hour)}
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonWindowClosed)
		if message := report.Message(out); w.runs != 0 || !strings.Contains(message, "no Allow is on; it is open again at 2000-01-01 08:00 UTC") {
			t.Errorf("%d runs: %s", w.runs, message)
		}
		w.works(t, "2000-01-01T08:00:01Z")
		w.inForce(t, "a")
	})
}

// A commit that changes nothing of what is kept need not wait.
func TestCommitWithoutAChangeIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := windowed(t, window(v1alpha1.WindowDeny, "* * * * *", time.Hour))
		w.same = true
		w.head = rev("b")
		want(t, w.pass(t), v1alpha1.ReasonApplied)
		w.inForce(t, "b")
	})
}

func TestOverrideCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := windowed(t, window(v1alpha1.WindowDeny, "* * * * *", time.Hour))
		w.head, w.changes = rev("b"), 1
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonWindowClosed)
		if message := report.Message(out); !strings.Contains(message, "there is no end of that in sight") {
			t.Errorf("message: %s", message)
		}

		// Git is away: nobody knows yet what the word is for.
		w.annotate(v1alpha1.OverrideWindowAnnotation, "incident 42")
		w.resolveErr = errors.New("no route to host")
		if out = w.pass(t); out.OverrideUsed {
			t.Error("the word was used up without a commit")
		}
		w.resolveErr = nil
		// The cluster cannot be looked at: the commit was found and not yet tried.
		for name, fault := range map[string]*error{"check": &w.checkErr, "plan": &w.planErr} {
			*fault = errors.New("the server is away")
			w.Syncer = w.restarted()
			if out = w.pass(t); out.OverrideUsed {
				t.Errorf("the word was used up by a %s that could not be made", name)
			}
			*fault = nil
		}
		before := w.m.Status
		out = w.Once(t.Context(), w.m)
		want(t, out, v1alpha1.ReasonApplied)
		w.m.Status = report.Status(w.m, out)
		w.inForce(t, "b")
		if h := w.m.Status.History[0]; !out.OverrideUsed || h.By != "override" || h.Reason != "incident 42" {
			t.Errorf("used %v, history %+v", out.OverrideUsed, h)
		}
		told := false
		for _, e := range report.Events(before, w.m.Status, out) {
			told = told || e.Reason == "WindowOverridden" && strings.Contains(e.Note, "incident 42")
		}
		if !told {
			t.Error("no Event tells of it")
		}
		delete(w.m.Annotations, v1alpha1.OverrideWindowAnnotation)
		w.head = rev("c")
		want(t, w.pass(t), v1alpha1.ReasonWindowClosed)
	})
}

// A word for a commit that is refused is not there for the next one, and opens no guard.
func TestOverrideIsUsedUpByARefusedCommit(t *testing.T) {
	for reason, refuse := range map[string]func(w *world){
		v1alpha1.ReasonRenderFailed: func(w *world) { w.renderErr[rev("b").Commit] = errors.New("bad") },
		v1alpha1.ReasonCheckFailed:  func(w *world) { w.findings[rev("b").Commit] = blocked() },
		v1alpha1.ReasonPruneGuarded: func(w *world) { w.guard = &apply.Guard{Message: "too much"} },
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := windowed(t, window(v1alpha1.WindowDeny, "* * * * *", time.Hour))
				w.head = rev("b")
				refuse(w)
				w.annotate(v1alpha1.OverrideWindowAnnotation, "incident 42")
				before := w.m.Status
				out := w.pass(t)
				want(t, out, reason)
				w.inForce(t, "a")
				if !out.OverrideUsed {
					t.Error("the word is still there")
				}
				for _, e := range report.Events(before, w.m.Status, out) {
					if e.Reason == "WindowOverridden" {
						t.Errorf("an Event tells of what was not done: %s", e.Note)
					}
				}
			})
		})
	}
}

// What fails half-way is finished, though the window closes or the word is used; also by another agent.
func TestWhatWasBegunIsFinished(t *testing.T) {
	for name, begin := range map[string]func(w *world){
		"before the window closed": func(*world) { time.Sleep(time.Until(time.Date(2000, 1, 1, 10, 59, 50, 0, time.UTC))) },
		"by a person's word":       func(w *world) { w.annotate(v1alpha1.OverrideWindowAnnotation, "incident 42") },
	} {
		for _, restarted := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				t.Logf("%s, restarted: %v", name, restarted)
				w := windowed(t, window(v1alpha1.WindowAllow, "0 10 * * *", 2*time.Hour))
				w.head, w.changes = rev("b"), 1
				begin(w)
				w.runErr = errors.New("apply ConfigMap/apps/b: denied")
				want(t, w.pass(t), v1alpha1.ReasonApplyFailed)
				word := w.m.Annotations[v1alpha1.OverrideWindowAnnotation]
				w.m.Annotations = nil
				w.works(t, "2000-01-01T13:00:00Z")
				if restarted {
					w.Syncer, word = w.restarted(), "" // which nobody remembers; an Event has told it
				}
				w.runErr = nil
				want(t, w.pass(t), v1alpha1.ReasonApplied)
				w.inForce(t, "b")
				if got := w.m.Status.History[0].Reason; got != word {
					t.Errorf("the history says %q, want %q", got, word)
				}
				w.head = rev("c")
				want(t, w.pass(t), v1alpha1.ReasonWindowClosed)
			})
		}
	}
}

// A window that closes while a pass waits at a gate does not end the wait, and no newer commit does.
func TestWindowThatClosesInTheMiddleEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.m.Spec.Timeout.Duration, g.m.Spec.Interval.Duration = time.Hour, time.Minute
		g.m.Spec.Windows = []v1alpha1.Window{window(v1alpha1.WindowAllow, "0 0 * * *", 10*time.Minute)}
		g.after(15*time.Minute, func() { g.head = rev("b") })
		time.AfterFunc(30*time.Minute, func() { close(g.open) })
		out := g.pass(t)
		want(t, out, v1alpha1.ReasonApplied)
		if time.Now().Minute() != 30 || out.Applied != rev("a") {
			t.Errorf("at %s, applied %s", time.Now().UTC(), out.Applied)
		}
		want(t, g.pass(t), v1alpha1.ReasonWindowClosed)
		if g.resolves != 12 && (g.resolves < 8 || g.resolves > 12) {
			t.Errorf("Git was asked %d times, want none while it was closed", g.resolves)
		}
	})
}

// With a schedule a newer commit ends the wait at a slot, not before.
func TestScheduleHoldsForAWaitAtAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.m.Spec.Timeout.Duration, g.m.Spec.Interval.Duration = 2*time.Hour, time.Minute
		g.m.Spec.Schedule = "0 * * * *"
		g.after(time.Minute, func() { g.head = rev("b") })
		out := g.pass(t)
		want(t, out, v1alpha1.ReasonProgressing)
		if now := time.Now(); now.Hour() != 1 || now.Minute() != 0 || g.resolves != 2 || out.GaveWay() == nil {
			t.Errorf("at %s after %d questions it gave way: %v", now.UTC(), g.resolves, out.GaveWay())
		}
		close(g.open)
		want(t, g.pass(t), v1alpha1.ReasonApplied)
		g.inForce(t, "b")
	})
}

// A window that closes while the pass waits for a place or plans is looked at once more before anything is written.
func TestWindowThatClosesBeforeTheFirstWriteHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := windowed(t, window(v1alpha1.WindowAllow, "0 1 * * *", time.Minute))
		w.head, w.changes = rev("b"), 1
		until(t, "2000-01-01T00:00:30Z")
		w.beforePlan = func() { time.Sleep(time.Minute) }
		want(t, w.pass(t), v1alpha1.ReasonWindowClosed)
		if w.lastPlanned() != "a" {
			t.Errorf("planned %v", w.planned)
		}
		w.inForce(t, "a")
	})
}

func TestPreviewSaysThatAWindowHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := windowed(t, window(v1alpha1.WindowDeny, "0 0 * * SAT", 48*time.Hour))
		w.head = rev("b")
		w.annotate(v1alpha1.OverrideWindowAnnotation, "incident 42")
		out := w.Preview(t.Context(), w.m)
		if out.Err != nil || out.Plan == nil || w.lastPlanned() != "b" || out.Held == nil || !strings.Contains(out.Held.Error(), "spec.windows[0]") || out.OverrideUsed {
			t.Errorf("planned %v, held %v, err %v", w.planned, out.Held, out.Err)
		}
	})
}

func TestWrongTimesAreACondition(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.MooringSpec)
		want   string
	}{
		"a bare zone":  {func(s *v1alpha1.MooringSpec) { s.Schedule = "TZ=Europe/Rome" }, `read spec.schedule: read "TZ=Europe/Rome": the time zone`},
		"no such day":  {func(s *v1alpha1.MooringSpec) { s.Schedule = "0 0 31 2 *" }, `spec.schedule: read "0 0 31 2 *": it never comes`},
		"no such zone": {func(s *v1alpha1.MooringSpec) { s.Schedule, s.TimeZone = "@daily", "Mars/Olympus" }, `time zone "Mars/Olympus" is not known`},
		"a wrong window": {func(s *v1alpha1.MooringSpec) {
			s.Windows = []v1alpha1.Window{window(v1alpha1.WindowDeny, "0 0 * * 7", time.Hour)}
		}, `read spec.windows[0]: read "0 0 * * 7": day of week "7": a Sunday is 0 or SUN`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				want(t, w.pass(t), v1alpha1.ReasonApplied)
				c.change(&w.m.Spec)
				w.m.Generation, w.head, w.changes = 2, rev("b"), 1
				out := w.pass(t)
				want(t, out, v1alpha1.ReasonCheckFailed)
				if message := report.Message(out); !strings.Contains(message, c.want) || !strings.Contains(message, "edit the Mooring") {
					t.Errorf("message: %s", message)
				}
				if w.lastPlanned() != "a" || w.Next(w.m, out) < time.Minute {
					t.Errorf("planned %v, next pass after %s", w.planned, w.Next(w.m, out))
				}
				stalled := false
				for _, condition := range w.m.Status.Conditions {
					stalled = stalled || condition.Type == v1alpha1.ConditionStalled
				}
				if !stalled {
					t.Error("it is not Stalled")
				}
			})
		})
	}
}
