package sync_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// missing is a finding that another object in the cluster would cure.
func missing() []check.Finding {
	return []check.Finding{{Code: "IST0101", Level: check.Error, Message: "the host reviews does not exist"}}
}

// events of a pass, which is taken into the status.
func (w *world) events(t *testing.T) (report.Outcome, []report.Event) {
	t.Helper()
	before := *w.m.Status.DeepCopy()
	out := w.pass(t)
	return out, report.Events(before, w.m.Status, out)
}

func TestRefusalForWhatLivesIsLookedAtAgain(t *testing.T) {
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.head = rev("b")
	w.findings[rev("b").Commit] = missing()
	out, events := w.events(t)
	want(t, out, v1alpha1.ReasonCheckFailed)
	if len(events) != 1 || w.lastPlanned() != "a" {
		t.Errorf("events %v, planned %v: want one, and what is in force kept", events, w.planned)
	}
	if got := report.Message(out); !strings.Contains(got, "the host reviews does not exist") || !strings.Contains(got, "looked at again at each interval") {
		t.Errorf("the message is %q", got)
	}
	if d := w.Next(w.m, out); d < 5*time.Minute {
		t.Errorf("looks again after %s, want the interval", d)
	}
	for range 3 {
		out, events := w.events(t)
		want(t, out, v1alpha1.ReasonCheckFailed)
		if len(events) != 0 {
			t.Errorf("it is told again: %v", events)
		}
	}
	if w.renders != 2 || len(w.requests) != 5 {
		t.Errorf("%d renders and %d checks, want 2 and 5", w.renders, len(w.requests))
	}
	delete(w.findings, rev("b").Commit) // somebody made the Service
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if w.renders != 2 || len(w.requests) != 6 || w.m.Status.LastAppliedRevision != rev("b").String() {
		t.Errorf("%d renders, %d checks, applied %s", w.renders, len(w.requests), w.m.Status.LastAppliedRevision)
	}
}

func TestRefusalByStructureWaitsForAnotherCommit(t *testing.T) {
	w := newWorld()
	w.findings[rev("a").Commit] = append(missing(), blocked()...)
	for range 3 {
		want(t, w.pass(t), v1alpha1.ReasonCheckFailed)
	}
	if len(w.requests) != 1 {
		t.Errorf("%d checks, want 1", len(w.requests))
	}
}

// A cluster that cannot be read says nothing about the commit: tried again soon, and nothing of it is remembered but the render.
func TestCheckThatCannotBeMadeIsTriedAgain(t *testing.T) {
	for name, fail := range map[string]func(w *world, err error){
		"reading": func(w *world, err error) { w.surveyErr = err },
		"library": func(w *world, err error) { w.checkErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			want(t, w.pass(t), v1alpha1.ReasonApplied)
			w.head = rev("b")
			fail(w, errors.New("the API server is away"))
			var out report.Outcome
			for range 2 {
				out = w.pass(t)
				want(t, out, v1alpha1.ReasonCheckFailed)
			}
			if d := w.Next(w.m, out); d > 6*time.Second {
				t.Errorf("tried again after %s", d)
			}
			if got := report.Message(out); !strings.Contains(got, "could not be checked: the API server is away") || !strings.Contains(got, "tried again by itself") {
				t.Errorf("the message is %q", got)
			}
			if meta.FindStatusCondition(w.m.Status.Conditions, v1alpha1.ConditionStalled) != nil {
				t.Error("it is said that only a person can help")
			}
			if w.lastPlanned() != "a" {
				t.Errorf("planned %v: want what is in force kept", w.planned)
			}
			fail(w, nil)
			want(t, w.pass(t), v1alpha1.ReasonApplied)
			if w.renders != 2 {
				t.Errorf("%d renders, want 2", w.renders)
			}
		})
	}
}

// Law 5 and law 7: what was accepted is not checked again, and what is kept is not checked at all.
func TestUnchangedPassChecksNothing(t *testing.T) {
	w := newWorld()
	for range 4 {
		want(t, w.pass(t), v1alpha1.ReasonApplied)
	}
	w.head = rev("b")
	w.renderErr[rev("b").Commit] = errors.New("bad")
	for range 3 {
		want(t, w.pass(t), v1alpha1.ReasonRenderFailed)
	}
	if len(w.requests) != 1 {
		t.Errorf("%d checks, want 1", len(w.requests))
	}
	w.Syncer = w.restarted() // renders what is in force again, to keep it
	want(t, w.pass(t), v1alpha1.ReasonRenderFailed)
	if len(w.requests) != 1 {
		t.Errorf("%d checks after a restart, want 1", len(w.requests))
	}
	w.head = rev("a") // which was never checked by this agent
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if len(w.requests) != 2 {
		t.Errorf("%d checks, want 2", len(w.requests))
	}
}

func TestSpecCheckDecidesWhatBlocks(t *testing.T) {
	w := newWorld()
	w.findings[rev("a").Commit] = []check.Finding{{Code: "MOOR020", Level: check.Warning, Message: "probably not meant", Inherent: true}}
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if s := w.m.Status; s.FindingCount != 1 || s.BlockingCount != 0 {
		t.Errorf("%d findings, of which %d block", s.FindingCount, s.BlockingCount)
	}
	w.m.Spec.Check = &v1alpha1.Check{
		FailOn: v1alpha1.CheckWarning, Ignore: []v1alpha1.CheckCode{"IST0102"},
		Suppress: []v1alpha1.Suppression{{Code: "IST0118", Resource: "Service/apps/*"}},
	}
	w.m.Generation = 2
	out := w.pass(t) // the same commit, looked at again and not rendered again
	want(t, out, v1alpha1.ReasonCheckFailed)
	if s := w.m.Status; s.BlockingCount != 1 || w.renders != 1 || len(w.requests) != 2 {
		t.Errorf("%d block, %d renders, %d checks", s.BlockingCount, w.renders, len(w.requests))
	}
	if got := report.Message(out); !strings.Contains(got, "probably not meant") {
		t.Errorf("the message is %q", got)
	}
	if w.lastPlanned() != "a" || w.runs != 2 {
		t.Errorf("planned %v, %d runs: what is in force stays so", w.planned, w.runs)
	}
	q := w.requests[1]
	if len(q.Ignore) != 1 || q.Ignore[0] != "IST0102" || len(q.Suppress) != 1 || q.Suppress[0] != (check.Suppression{Code: "IST0118", Resource: "Service/apps/*"}) {
		t.Errorf("the checker is asked with %v and %v", q.Ignore, q.Suppress)
	}
	w.m.Spec.Check, w.m.Generation = nil, 3
	want(t, w.pass(t), v1alpha1.ReasonApplied)
}

func TestUnitIsNamedOnlyWhereItPrunes(t *testing.T) {
	w := newWorld()
	w.pass(t)
	w.m.Spec.Prune.Enabled = new(false)
	w.Syncer = w.restarted()
	w.pass(t)
	if got := w.requests[0].Cluster.Unit; got != sync.ID(w.m) {
		t.Errorf("the cluster's unit is %q", got)
	}
	if got := w.requests[1].Cluster.Unit; got != "" {
		t.Errorf("without pruning, the cluster's unit is %q", got)
	}
}

// Findings that do not block are told all the same, but for what others have already.
func TestFindingsOfOthers(t *testing.T) {
	w := newWorld()
	other := render.ID{Kind: "Service", Namespace: "bank", Name: "pay"}
	w.findings[rev("a").Commit] = []check.Finding{
		{Code: "IST0101", Level: check.Error, Object: other, Foreign: true, Known: true, Message: "old"},
		{Code: "IST0102", Level: check.Error, Object: other, Foreign: true, Message: "this commit takes away what it needs"},
		{Code: "IST0103", Level: check.Error, Known: true, Message: "as before"},
		{Code: "IST0104", Level: check.Error, Suppressed: &check.Suppressed{By: check.SuppressAnnotation, Reason: "the old clients go in May"}, Message: "accepted"},
	}
	w.gaps = []check.Gap{{Code: "IST0105", About: "the Secrets of gateways", Why: "secrets is forbidden"}}
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	s := w.m.Status
	if len(s.Findings) != 3 || s.FindingCount != 3 || s.BlockingCount != 0 {
		t.Fatalf("status has %+v", s.Findings)
	}
	if f := s.Findings; !f[0].Foreign || f[0].Known || !f[1].Known || f[2].Suppressed != "mooring.dev/suppress: the old clients go in May" {
		t.Errorf("status has %+v", f)
	}
	if s.NotCheckedCount != 1 || len(s.NotChecked) != 1 || s.NotChecked[0].Why != "secrets is forbidden" {
		t.Errorf("not checked: %+v", s.NotChecked)
	}
	w.findings[rev("b").Commit] = append(w.findings[rev("a").Commit], missing()...)
	w.head = rev("b")
	want(t, w.pass(t), v1alpha1.ReasonCheckFailed)
	if f := w.m.Status.Findings; len(f) != 4 || f[0].Code != "IST0101" || f[0].Known || w.m.Status.BlockingCount != 1 {
		t.Errorf("what blocks does not come first: %+v", f)
	}
}

func TestMissingConfigMapIsNotTheCommitsFault(t *testing.T) {
	w := newWorld()
	w.m.Spec.Check = &v1alpha1.Check{Policies: []v1alpha1.PolicySource{{ConfigMapRef: &v1alpha1.ConfigMapReference{Name: "house", Key: "mesh.yaml"}}}}
	for what, data := range map[string]map[string]map[string]string{
		"ConfigMap mesh/house: it does not exist":       nil,
		"ConfigMap mesh/house: it has no key mesh.yaml": {"house": {"other.yaml": ""}},
	} {
		w.configMaps = data
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonCheckFailed)
		if got := report.Message(out); !strings.Contains(got, what) || !strings.Contains(got, "tried again by itself") {
			t.Errorf("the message is %q, want it to say %q", got, what)
		}
		if d := w.Next(w.m, out); d > 12*time.Second {
			t.Errorf("tried again after %s", d)
		}
	}
	if len(w.requests) != 0 || w.renders != 1 {
		t.Errorf("%d checks and %d renders", len(w.requests), w.renders)
	}
}

func TestChangedPoliciesAreTakenUpWithoutACommit(t *testing.T) {
	w := newWorld()
	w.m.Spec.Check = &v1alpha1.Check{Policies: []v1alpha1.PolicySource{{ConfigMapRef: &v1alpha1.ConfigMapReference{Name: "house"}}}}
	w.configMaps = map[string]map[string]string{"house": {"a.yaml": housePolicy("HOUSE1", "true")}}
	for range 2 {
		want(t, w.pass(t), v1alpha1.ReasonApplied)
	}
	w.configMaps["house"]["a.yaml"] = housePolicy("HOUSE2", "true")
	for range 2 {
		want(t, w.pass(t), v1alpha1.ReasonApplied)
	}
	if len(w.requests) != 2 || w.renders != 1 {
		t.Fatalf("%d checks and %d renders, want 2 and 1", len(w.requests), w.renders)
	}
	if got := w.requests[1]; len(got.Policies) != 1 || got.Policies[0].Code != "HOUSE2" || got.Mooring["name"] != "prod" || got.Mooring["revision"] != string(w.head.Commit) {
		t.Errorf("the checker is asked with %+v of %v", got.Policies, got.Mooring)
	}
	w.configMaps["house"]["a.yaml"] = housePolicy("HOUSE2", "object.spec.(")
	for range 2 {
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonCheckFailed)
		if got := report.Message(out); !strings.Contains(got, "ConfigMap/mesh/house[a.yaml]") || out.Again != report.AgainNever {
			t.Errorf("the message is %q", got)
		}
	}
	if len(w.requests) != 2 {
		t.Errorf("%d checks, want none by policies that do not compile", len(w.requests)-2)
	}
	w.configMaps["house"]["a.yaml"] = housePolicy("HOUSE2", "true")
	want(t, w.pass(t), v1alpha1.ReasonApplied)
}

func housePolicy(code, expression string) string {
	return fmt.Sprintf("apiVersion: mooring.dev/v1alpha1\nkind: CheckPolicy\nmetadata: {name: house}\nspec: {code: %s, validations: [{expression: %q}]}\n", code, expression)
}

// An agent that starts takes the word of the one before it for what is in force, findings included, as long as all that it was checked by is the same.
func TestWhatWasAcceptedStands(t *testing.T) {
	warning := check.Finding{Code: "IST0118", Level: check.Warning, Message: "port name"}
	for _, tt := range []struct {
		name   string
		change func(*world)
		checks int
	}{
		{"nothing changed", func(*world) {}, 0},
		{"another commit", func(w *world) { w.head = rev("b") }, 1},
		{"another spec.check", func(w *world) { w.m.Spec.Check = &v1alpha1.Check{FailOn: "Warning"} }, 1},
		{"another path", func(w *world) { w.m.Spec.Path = "prod" }, 1},
		{"more findings than the status has", func(w *world) { w.m.Status.FindingCount = 21 }, 1},
		{"not the agent's own words", func(w *world) { w.m.Status.Accepted = "" }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.findings[rev("a").Commit] = []check.Finding{warning}
			w.gaps = []check.Gap{{Code: "IST0101", About: "the host reviews", Why: "no right to list Services"}}
			want(t, w.pass(t), v1alpha1.ReasonApplied)
			before := w.m.Status
			w.Syncer, w.requests = w.restarted(), nil
			tt.change(w)
			out := w.pass(t)
			if len(w.requests) != tt.checks {
				t.Errorf("%d checks after the start, want %d", len(w.requests), tt.checks)
			}
			if tt.checks > 0 {
				return
			}
			want(t, out, v1alpha1.ReasonApplied)
			if diff := cmp.Diff(before, w.m.Status); diff != "" {
				t.Errorf("a start writes another status (-before +now):\n%s", diff)
			}
			w.head = rev("b")
			w.pass(t)
			if len(w.requests) != 1 || w.m.Status.Accepted == before.Accepted {
				t.Errorf("%d checks of the next commit; accepted %q", len(w.requests), w.m.Status.Accepted)
			}
		})
	}
}
