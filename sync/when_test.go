package sync_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// until lets the bubble's clock, which starts at midnight of Saturday 2000-01-01 UTC, come to an instant.
func until(t *testing.T, text string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Until(at); d > 0 {
		time.Sleep(d)
	}
}

// works makes passes as the controller does, each when the one before said, up to an instant. It gives the number of passes.
func (w *world) works(t *testing.T, text string) (passes int) {
	t.Helper()
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	for {
		pause := w.Next(w.m, w.pass(t))
		passes++
		if pause <= 0 {
			t.Fatalf("the next pass comes after %s", pause)
		}
		if time.Until(end) < pause {
			time.Sleep(time.Until(end))
			return passes
		}
		time.Sleep(pause)
	}
}

func (w *world) annotate(name, value string) {
	if w.m.Annotations == nil {
		w.m.Annotations = map[string]string{}
	}
	w.m.Annotations[name] = value
}

// scheduled is a world with commit a in force and a schedule.
func scheduled(t *testing.T, expression, zone string) *world {
	t.Helper()
	w := newWorld()
	w.m.Spec.Schedule, w.m.Spec.TimeZone = v1alpha1.CronExpression(expression), v1alpha1.TimeZone(zone)
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	return w
}

func (w *world) inForce(t *testing.T, digit string) {
	t.Helper()
	if got := w.m.Status.LastAppliedRevision; got != rev(digit).String() {
		t.Fatalf("at %s, %s is in force, want %s", time.Now().UTC(), got, rev(digit))
	}
}

func TestScheduleTakesCommitsUpAtItsSlotsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := scheduled(t, "30 2 * * *", "")
		w.inForce(t, "a") // the first commit did not wait
		w.head, w.changes = rev("b"), 1
		passes := w.works(t, "2000-01-01T02:29:59Z")
		w.inForce(t, "a")
		if w.resolves != 1 || w.runs != passes+1 || passes < 25 || passes > 31 {
			t.Errorf("%d questions to Git and %d runs in %d passes: want one question, and drift corrected at each interval", w.resolves, w.runs, passes)
		}
		w.works(t, "2000-01-01T02:30:01Z") // exactly then, not at the interval
		w.inForce(t, "b")
		if w.resolves != 2 {
			t.Errorf("%d questions to Git", w.resolves)
		}
		if got := w.m.Status.LastScheduleTime; got == nil || !got.Time.Equal(time.Date(2000, 1, 1, 2, 30, 0, 0, time.UTC)) {
			t.Errorf("lastScheduleTime is %v", got)
		}
	})
}

func TestScheduleAtRestWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := scheduled(t, "0 3 * * *", "")
		before := w.m.Status
		w.works(t, "2000-01-01T02:59:00Z")
		if diff := cmp.Diff(before, w.m.Status); diff != "" || w.renders != 1 {
			t.Errorf("%d renders; the status has changed:\n%s", w.renders, diff)
		}
	})
}

// 02:30 in the hour that daylight saving skips, and in the one that it repeats.
func TestSlotsInTheNightsOfDaylightSavingAreOneEach(t *testing.T) {
	for name, c := range map[string]struct{ from, at, to string }{
		"skipped":  {"2000-03-25T12:00:00Z", "2000-03-26T01:00:00Z", "2000-03-26T12:00:00Z"},
		"repeated": {"2000-10-28T12:00:00Z", "2000-10-29T00:30:00Z", "2000-10-29T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until(t, c.from)
				w := scheduled(t, "30 2 * * *", "Europe/Berlin")
				w.head = rev("b")
				at, _ := time.Parse(time.RFC3339, c.at)
				w.works(t, at.Add(-time.Second).Format(time.RFC3339))
				w.inForce(t, "a")
				w.works(t, at.Add(time.Second).Format(time.RFC3339))
				w.inForce(t, "b")
				w.head = rev("c")
				w.works(t, c.to)
				w.inForce(t, "b")
				if w.resolves != 2 {
					t.Errorf("Git was asked %d times, want once for the first commit and once for the slot", w.resolves)
				}
			})
		})
	}
}

func TestSlotsThatWereMissedAreMadeUpForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := scheduled(t, "30 2 * * *", "")
		w.works(t, "2000-01-01T12:00:00Z")
		w.head = rev("b")
		w.Syncer = w.restarted() // between two slots that is no reason to ask
		w.works(t, "2000-01-01T13:00:00Z")
		w.inForce(t, "a")
		asked := w.resolves
		until(t, "2000-01-04T12:00:00Z") // the agent is down for three slots
		w.Syncer = w.restarted()
		w.works(t, "2000-01-04T12:00:01Z")
		w.inForce(t, "b")
		w.head = rev("c")
		w.works(t, "2000-01-05T02:00:00Z")
		w.inForce(t, "b")
		if w.resolves != asked+1 {
			t.Errorf("Git was asked %d times for three slots", w.resolves-asked)
		}
		w.works(t, "2000-01-05T02:30:01Z")
		w.inForce(t, "c")
	})
}

func TestSlotAtWhichGitIsAwayIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := scheduled(t, "30 2 * * *", "")
		w.head, w.resolveErr = rev("b"), errors.New("no route to host")
		w.works(t, "2000-01-01T02:31:00Z")
		if got := w.m.Status.Conditions[0].Reason; got != v1alpha1.ReasonFetchFailed {
			t.Errorf("Ready is %s", got)
		}
		w.resolveErr = nil
		w.works(t, "2000-01-01T02:40:00Z")
		w.inForce(t, "b")
	})
}

func TestPersonNeedNotWaitForASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := scheduled(t, "30 2 * * *", "")
		w.head = rev("b")
		w.annotate(v1alpha1.ReconcileAnnotation, "now")
		want(t, w.pass(t), v1alpha1.ReasonApplied)
		w.inForce(t, "b")
		w.head = rev("c")
		w.works(t, "2000-01-01T01:00:00Z")
		w.inForce(t, "b") // asked once
		w.Syncer = w.restarted()
		w.works(t, "2000-01-01T01:10:00Z")
		w.inForce(t, "b") // and not again by another agent
		w.m.Spec.Timeout.Duration, w.m.Generation = time.Minute, 2
		w.works(t, "2000-01-01T01:20:00Z")
		w.inForce(t, "b") // another spec is no wish for another commit
		w.m.Spec.Source.Ref.Branch, w.m.Generation = "env/prod", 3
		w.works(t, "2000-01-01T01:30:00Z")
		w.inForce(t, "c") // another branch is
	})
}

// A schedule that is written in the afternoon has nothing to make up for.
func TestNewScheduleBeginsNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := scheduled(t, "30 2 * * *", "")
		w.works(t, "2000-01-01T15:00:00Z")
		w.head = rev("b")
		w.m.Spec.Schedule, w.m.Generation = "0 12 * * *", 2
		w.works(t, "2000-01-02T11:59:00Z")
		w.inForce(t, "a")
		w.works(t, "2000-01-02T12:00:01Z")
		w.inForce(t, "b")
		w.m.Spec.Schedule, w.m.Generation, w.head = "", 3, rev("c")
		want(t, w.pass(t), v1alpha1.ReasonApplied)
		w.inForce(t, "c")
		if w.m.Status.LastScheduleTime != nil {
			t.Error("a Mooring without a schedule has a lastScheduleTime")
		}
	})
}
