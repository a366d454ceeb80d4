package sync_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// ring is a world in which somebody edits objects. Each has one field; what is in edits is how it lives, by the manager that wrote it.
type ring struct {
	*world
	edits map[string]string // object name: manager

	corrected map[string][]time.Time
}

func newRing() *ring {
	r := &ring{world: newWorld(), edits: map[string]string{}, corrected: map[string][]time.Time{}}
	r.Syncer = r.restarted()
	return r
}

func (r *ring) restarted() *sync.Syncer {
	return sync.NewWith(sync.Stages{Source: r, Renderer: r, Checker: r, Surveyor: r, Applier: r, Reader: r})
}

func called(name string) render.ID {
	return render.ID{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: name}
}

// Plan gives a step for each edit, held back as the policy says.
func (r *ring) Plan(ctx context.Context, u apply.Unit, set *render.Set, p apply.Policy) (*apply.Plan, error) {
	if _, err := r.world.Plan(ctx, u, set, p); err != nil {
		return nil, err
	}
	var steps []apply.Step
	for _, name := range slices.Sorted(maps.Keys(r.edits)) {
		s := apply.Step{Action: apply.Update, ID: called(name), Drift: apply.DriftChanged, Diff: []apply.FieldDiff{{Path: "/spec", Live: "x", Manager: r.edits[name]}}}
		s.Reason = p.Drift.Hold[s.ID]
		if p.Drift.InForce == nil {
			s.Drift = ""
		} else if p.Drift.Alarm || s.Reason != "" {
			s.Action = apply.Skip
		}
		steps = append(steps, s)
	}
	return &apply.Plan{Unit: u, Waves: []apply.Wave{{Steps: steps}}}, nil
}

func (r *ring) Run(_ context.Context, p *apply.Plan) (*apply.Result, error) {
	result := &apply.Result{Objects: 1}
	for s := range p.Steps() {
		if s.Action == apply.Update {
			delete(r.edits, s.ID.Name)
			r.corrected[s.ID.Name] = append(r.corrected[s.ID.Name], time.Now())
		}
		result.Steps = append(result.Steps, apply.StepResult{Step: s, State: apply.Done})
	}
	return result, r.runErr
}

// TestFightBacksOff drives a controller that undoes each correction at once, and a watch that wakes a pass as soon.
func TestFightBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing()
		r.pass(t)
		began := time.Now()
		var begun, over []report.Fight
		passes := func(until time.Duration, enemy bool) (out report.Outcome) {
			for time.Since(began) < until {
				if enemy {
					r.edits["web"] = "operator"
				}
				if time.Since(began)%(10*time.Minute) == 0 {
					r.edits["other"] = "kubectl-edit"
				}
				out = r.pass(t)
				begun, over = append(begun, out.FightsBegun...), append(over, out.FightsOver...)
				time.Sleep(100 * time.Millisecond)
			}
			return out
		}
		out := passes(time.Hour, true)
		var pauses []time.Duration
		for i, at := range r.corrected["web"][1:] {
			pauses = append(pauses, at.Sub(r.corrected["web"][i]).Round(time.Second))
		}
		want := []time.Duration{
			0, 0, 0, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute,
			10 * time.Minute, 10 * time.Minute, 10 * time.Minute, 10 * time.Minute,
		}
		if diff := cmp.Diff(want, pauses); diff != "" {
			t.Errorf("pauses between corrections (-want +got):\n%s", diff)
		}
		if n := len(r.corrected["other"]); n != 6 {
			t.Errorf("the other object was put back %d times, want 6, each at once", n)
		}
		if len(out.Fights) != 1 || out.Fights[0].Manager != "operator" || out.Fights[0].Field != "/spec" || len(begun) != 1 || len(over) != 0 {
			t.Fatalf("fights %v, begun %v, over %v", out.Fights, begun, over)
		}
		if d := out.Drifting(); len(d) != 1 || d[0].Reason != v1alpha1.ReasonFight || !strings.Contains(r.policies[len(r.policies)-1].Drift.Hold[called("web")], "a fight with operator over /spec: put back ") {
			t.Errorf("drifting %v, held %v", d, r.policies[len(r.policies)-1].Drift.Hold)
		}

		// A restart does not begin it anew.
		r.Syncer = r.restarted()
		n := len(r.corrected["web"])
		if out := r.pass(t); len(out.Fights) != 1 || len(r.corrected["web"]) > n {
			t.Errorf("after a restart: %d corrections at once, fights %v", len(r.corrected["web"])-n, out.Fights)
		}

		// The other one stops: it is over by itself, and an edit is put back at once again.
		out = passes(time.Hour+25*time.Minute, false)
		if len(out.Fights) != 0 || len(over) != 1 || len(r.edits) != 0 {
			t.Fatalf("fights %v, over %v, edits %v", out.Fights, over, r.edits)
		}
		r.edits["web"] = "operator"
		if out := r.pass(t); len(out.Drifting()) != 0 || len(out.Corrected()) != 1 {
			t.Errorf("the first edit after a fight is not put back at once: %v", out.Drift)
		}
	})
}

// TestFightWakesItsMooring finds the pause before the next pass, when no watch tells anything.
func TestFightWakesItsMooring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing()
		r.m.Spec.Interval.Duration = time.Hour
		var out report.Outcome
		for range 6 {
			out = r.pass(t)
			r.edits["web"] = "operator"
		}
		next := r.Next(r.m, out)
		if next > 16*time.Second {
			t.Fatalf("the next pass is in %s, want it when the object may be put back", next)
		}
		time.Sleep(next)
		if out = r.pass(t); len(out.Corrected()) != 1 {
			t.Errorf("not put back: %v", out.Drift)
		}
		time.Sleep(r.Next(r.m, out)) // until the next turn, at which there is nothing to do
		for range 3 {
			out = r.pass(t)
			if next = r.Next(r.m, out); next < time.Second {
				t.Fatalf("it spins: the next pass is in %s", next)
			}
			time.Sleep(next)
		}
		if out = r.pass(t); len(out.Fights) != 0 {
			t.Errorf("the fight is not over: %v", out.Fights)
		}
	})
}

// TestSlowRoundsAreNoFight puts back what somebody does by hand now and then.
func TestSlowRoundsAreNoFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing()
		r.pass(t)
		for i := range 20 {
			r.edits["web"] = "kubectl-edit"
			if i%2 == 0 { // two in a row, by two people
				r.edits["web"] = "kubectl-patch"
			}
			if out := r.pass(t); len(out.Fights) > 0 || len(out.Corrected()) != 1 {
				t.Fatalf("round %d: fights %v, drift %v", i, out.Fights, out.Drift)
			}
			time.Sleep(110 * time.Second)
		}
	})
}

func TestAlarmKnowsWhatIsInForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRing()
		r.m.Spec.Drift.Mode = v1alpha1.DriftAlarm
		r.edits["web"] = "kubectl-create"
		want(t, r.pass(t), v1alpha1.ReasonApplied)
		if p := r.policies[0].Drift; p.InForce != nil || len(r.corrected["web"]) != 1 {
			t.Fatalf("a first apply is never drift: %+v", p)
		}
		r.edits["web"] = "kubectl-edit"
		out := r.pass(t)
		since := out.Finished
		inForce := func(name string) {
			t.Helper()
			p := r.policies[len(r.policies)-1].Drift
			if p.InForce == nil || p.InForce.Objects[0].GetName() != name || !p.Alarm || p.Unfinished {
				t.Errorf("want %s in force: %+v", name, p)
			}
		}
		inForce("a")
		if len(out.Drifting()) != 1 || !out.Drift[0].New || out.Drift[0].Reason != v1alpha1.ReasonAlarm {
			t.Fatalf("drift %+v", out.Drift)
		}
		time.Sleep(time.Minute)
		if out = r.pass(t); out.Drift[0].New || !out.Drift[0].Since.Equal(since) {
			t.Errorf("drift %+v, want it since %s", out.Drift, since)
		}
		// A restart, with the same commit.
		r.Syncer = r.restarted()
		if out = r.pass(t); out.Drift[0].New || !out.Drift[0].Since.Equal(since.Truncate(time.Second)) {
			t.Errorf("after a restart: drift %+v, want it since %s", out.Drift, since)
		}
		inForce("a")
		// A restart, and a new commit: what was in force is rendered once more.
		r.Syncer, r.head = r.restarted(), rev("b")
		out = r.pass(t)
		want(t, out, v1alpha1.ReasonApplied)
		inForce("a")
		if r.lastPlanned() != "b" || out.Applied != rev("b") || len(out.Drifting()) != 1 {
			t.Errorf("planned for %s, applied %s, drift %v", r.lastPlanned(), out.Applied, out.Drift)
		}
		// What was in force cannot be had any more: the new commit decides.
		r.Syncer, r.head = r.restarted(), rev("c")
		r.m.Spec.Path = "other"
		r.pass(t)
		if p := r.policies[len(r.policies)-1].Drift; p.InForce != nil {
			t.Errorf("in force is %v", p.InForce)
		}
	})
}

// TestUnfinishedApplyIsRemembered breaks the apply of a commit off, and takes the commit back.
func TestUnfinishedApplyIsRemembered(t *testing.T) {
	r := newRing()
	r.pass(t)
	r.head, r.edits["web"], r.runErr = rev("b"), "mooring", errors.New("denied")
	r.pass(t)
	for _, name := range []string{"the same agent", "another agent"} {
		r.head = rev("a")
		if name == "another agent" {
			r.Syncer = r.restarted()
		}
		r.edits["web"] = "mooring"
		r.pass(t)
		if p := r.policies[len(r.policies)-1].Drift; !p.Unfinished || p.InForce == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	r.runErr = nil
	r.pass(t)
	r.pass(t)
	if p := r.policies[len(r.policies)-1].Drift; p.Unfinished {
		t.Errorf("after it was in force again: %+v", p)
	}
}
