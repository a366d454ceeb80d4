package report_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

var (
	first  = repos.Revision{Ref: "main", Commit: repos.Commit(strings.Repeat("a", 40))}
	second = repos.Revision{Ref: "main", Commit: repos.Commit(strings.Repeat("b", 40))}
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	route  = render.ID{Group: "networking.istio.io", Kind: "VirtualService", Namespace: "shop", Name: "web"}
)

// applied is a pass that wrote what these steps say.
func applied(steps ...apply.Step) report.Outcome {
	r := &apply.Result{Objects: 4}
	for _, s := range steps {
		r.Steps = append(r.Steps, apply.StepResult{Step: s, State: apply.Done})
	}
	return report.Outcome{
		Generation: 1, Reason: v1alpha1.ReasonApplied, Newest: first, Applied: first, Digest: "sha256:1",
		Cause: report.CauseCommit, Plan: &apply.Plan{Unit: apply.Unit{ID: "applyset-x-v1"}}, Result: r, Finished: noon,
	}
}

// drifted is a pass that found drift and put it right, or did not for a reason.
func drifted(reason string, steps ...apply.Step) report.Outcome {
	out := applied(steps...)
	out.Cause = report.CauseDrift
	for _, s := range out.Result.Steps {
		for _, d := range report.DriftOf(s, reason) {
			d.Since, d.New = out.Finished, true
			out.Drift = append(out.Drift, d)
		}
	}
	return out
}

func refused(stage report.Stage, reason string, err error) report.Outcome {
	return report.Outcome{
		Generation: 1, Reason: reason, Stage: stage, Err: err, Newest: second, Applied: first, Digest: "sha256:1",
		Plan: &apply.Plan{Guard: &apply.Guard{Message: "2 of 4 objects would be deleted"}}, Finished: noon.Add(time.Minute),
	}
}

func condition(t *testing.T, s v1alpha1.MooringStatus, kind string) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		t.Fatalf("no condition %s in %v", kind, s.Conditions)
	}
	return *c
}

func after(m *v1alpha1.Mooring, out report.Outcome) *v1alpha1.Mooring {
	m = m.DeepCopy()
	m.Status = report.Status(m, out)
	return m
}

func TestStatusOfAnUnchangedPassIsTheSame(t *testing.T) {
	m := after(&v1alpha1.Mooring{}, applied(apply.Step{Action: apply.Create, ID: route}))
	again := applied()
	again.Cause, again.Finished = report.CauseDrift, noon.Add(time.Hour)
	if diff := cmp.Diff(m.Status, after(m, again).Status); diff != "" {
		t.Errorf("an hour later, with nothing done, the status differs:\n%s", diff)
	}
	broken := after(m, refused(report.StageFetch, v1alpha1.ReasonFetchFailed, errors.New("no route to host")))
	later := refused(report.StageFetch, v1alpha1.ReasonFetchFailed, errors.New("no route to host"))
	later.Finished = noon.Add(time.Hour)
	if diff := cmp.Diff(broken.Status, after(broken, later).Status); diff != "" {
		t.Errorf("a failure that goes on makes the status flap:\n%s", diff)
	}
}

func TestConditionsByReason(t *testing.T) {
	cases := []struct {
		reason  string
		stage   report.Stage
		ready   metav1.ConditionStatus
		also    string // Reconciling or Stalled
		message []string
	}{
		{v1alpha1.ReasonFetchFailed, report.StageFetch, metav1.ConditionFalse, v1alpha1.ConditionReconciling, []string{"the cause", "main@sha1:aaaa", "stays in force"}},
		{v1alpha1.ReasonRenderFailed, report.StageRender, metav1.ConditionFalse, v1alpha1.ConditionStalled, []string{"main@sha1:bbbb", "does not render", "the cause", "stays in force", "push"}},
		{v1alpha1.ReasonCheckFailed, report.StageCheck, metav1.ConditionFalse, v1alpha1.ConditionStalled, []string{"web.yaml:7", "MOOR001", "main@sha1:aaaa", "stays in force", "push"}},
		{v1alpha1.ReasonPruneGuarded, report.StageGuard, metav1.ConditionFalse, v1alpha1.ConditionStalled, []string{"main@sha1:bbbb", "2 of 4 objects", "stays in force"}},
		{v1alpha1.ReasonWindowClosed, report.StageWindow, metav1.ConditionFalse, v1alpha1.ConditionReconciling, []string{"main@sha1:bbbb", "waits: the cause", "main@sha1:aaaa", "stays in force"}},
		{v1alpha1.ReasonApplyFailed, report.StageApply, metav1.ConditionFalse, v1alpha1.ConditionReconciling, []string{"the cause", "tried again"}},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			out := refused(c.stage, c.reason, errors.New("the cause"))
			out.Findings = []check.Finding{{Code: "MOOR001", Level: check.Error, Origin: render.Origin{File: "web.yaml", Line: 7}, Message: "unknown field"}}
			s := after(after(&v1alpha1.Mooring{}, applied()), out).Status
			ready := condition(t, s, v1alpha1.ConditionReady)
			if ready.Status != c.ready || ready.Reason != c.reason {
				t.Errorf("Ready is %s %s", ready.Status, ready.Reason)
			}
			condition(t, s, c.also)
			if n := len(s.Conditions); n != 4 {
				t.Errorf("%d conditions: %v", n, s.Conditions)
			}
			for _, part := range c.message {
				if !strings.Contains(ready.Message, part) {
					t.Errorf("message %q lacks %q", ready.Message, part)
				}
			}
			if s.LastAppliedRevision != first.String() || s.LastAttemptedRevision != second.String() {
				t.Errorf("attempted %s, applied %s", s.LastAttemptedRevision, s.LastAppliedRevision)
			}
		})
	}
}

func TestEventsOnlyWhenSomethingHappened(t *testing.T) {
	m := &v1alpha1.Mooring{}
	step := func(out report.Outcome) []report.Event {
		next := after(m, out)
		events := report.Events(m.Status, next.Status, out)
		m = next
		return events
	}
	reasons := func(events []report.Event) string {
		var names []string
		for _, e := range events {
			names = append(names, e.Type+" "+e.Reason)
		}
		return strings.Join(names, ", ")
	}
	edited := drifted("", apply.Step{Action: apply.Update, Drift: apply.DriftChanged, ID: route, Diff: []apply.FieldDiff{
		{Path: "/spec/http/0/timeout", Manager: "kubectl-edit"}, {Path: "/spec/hosts"},
	}})
	broken := refused(report.StageRender, v1alpha1.ReasonRenderFailed, errors.New("web.yaml:3: bad"))
	waits, late, idle := applied(), applied(), applied()
	waits.Reason, late.Reason, idle.Reason = v1alpha1.ReasonProgressing, v1alpha1.ReasonHealthTimeout, v1alpha1.ReasonSuspended
	held := refused(report.StageWindow, v1alpha1.ReasonWindowClosed, errors.New("spec.windows[0] is on"))
	overridden := applied()
	overridden.Cause, overridden.Override, overridden.OverrideUsed = report.CauseOverride, "incident 42", true
	for _, c := range []struct {
		name string
		out  report.Outcome
		want string
	}{
		{"first apply", applied(apply.Step{Action: apply.Create, ID: route}), "Normal Applied"},
		{"rest", applied(), ""},
		{"drift", edited, "Normal DriftCorrected"},
		{"broken", broken, "Warning RenderFailed"},
		{"still broken", broken, ""},
		{"mended", applied(), "Normal Recovered"},
		{"waits", waits, ""},
		{"healthy", applied(), ""},
		{"waits again", waits, ""},
		{"in vain", late, "Warning HealthTimeout"},
		{"the next commit waits", waits, ""},
		{"still", waits, ""},
		{"and is healthy", applied(), "Normal Recovered"},
		{"once", applied(), ""},
		{"broken again", broken, "Warning RenderFailed"},
		{"suspended", idle, ""},
		{"resumed: nobody knows what became of it", waits, ""},
		{"healthy after that", applied(), ""},
		{"a window holds the next", held, "Normal WindowClosed"},
		{"still closed", held, ""},
		{"open, which is no recovery", applied(), ""},
		{"a person's word", overridden, "Normal WindowOverridden"},
	} {
		events := step(c.out)
		if got := reasons(events); got != c.want {
			t.Errorf("%s: events %q, want %q", c.name, got, c.want)
		}
		if c.name == "drift" {
			for _, part := range []string{route.String(), "/spec/http/0/timeout", "kubectl-edit", "1 more"} {
				if !strings.Contains(events[0].Note, part) {
					t.Errorf("note %q lacks %q", events[0].Note, part)
				}
			}
		}
	}
}

func TestLongListsAreCutAndCounted(t *testing.T) {
	out := refused(report.StageCheck, v1alpha1.ReasonCheckFailed, errors.New("blocked"))
	for i := range 50 {
		out.Findings = append(out.Findings, check.Finding{Code: "MOOR001", Level: check.Error, Message: strings.Repeat("é", 600), Origin: render.Origin{File: fmt.Sprintf("f%d.yaml", i)}})
	}
	s := after(&v1alpha1.Mooring{}, out).Status
	if len(s.Findings) != 20 || s.FindingCount != 50 {
		t.Errorf("%d findings of %d", len(s.Findings), s.FindingCount)
	}
	if m := condition(t, s, v1alpha1.ConditionReady).Message; len(m) > 1003 {
		t.Errorf("message of %d bytes", len(m))
	}
	m := &v1alpha1.Mooring{}
	for i := range 15 {
		out := applied()
		out.Applied.Commit = repos.Commit(fmt.Sprintf("%040d", i))
		m = after(m, out)
	}
	if h := m.Status.History; len(h) != 10 || !strings.HasSuffix(h[0].Revision, "14") {
		t.Errorf("history %v", h)
	}
}

func TestUnhealthyIsNamed(t *testing.T) {
	out := applied()
	out.Reason, out.Stage = v1alpha1.ReasonHealthTimeout, report.StageHealth
	out.Result.Health = []apply.Health{{ID: render.ID{Kind: "Deployment", Namespace: "shop", Name: "web"}, Status: status.InProgressStatus, Message: "Available: 0/1"}}
	s := after(&v1alpha1.Mooring{}, out).Status
	if c := condition(t, s, v1alpha1.ConditionReady); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "Deployment/shop/web (InProgress: Available: 0/1)") {
		t.Errorf("Ready is %v", c)
	}
	if c := condition(t, s, v1alpha1.ConditionHealthy); c.Status != metav1.ConditionFalse {
		t.Errorf("Healthy is %v", c)
	}
}

func TestMetricsGoWithTheMooring(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := report.NewMetrics(reg)
	out := applied(apply.Step{Action: apply.Create, ID: route})
	out.Took = map[report.Stage]time.Duration{report.StageRender: time.Second}
	m.Observe("mesh", "prod", out)
	m.Observe("mesh", "prod", refused(report.StageFetch, v1alpha1.ReasonFetchFailed, errors.New("x")))
	m.Observe("mesh", "dev", out)
	series := func() []string {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range families {
			for _, s := range f.Metric {
				line := f.GetName()
				for _, l := range s.Label {
					line += " " + l.GetValue()
				}
				all = append(all, line)
			}
		}
		return all
	}
	ready := slices.DeleteFunc(series(), func(s string) bool { return !strings.HasPrefix(s, "mooring_ready ") || !strings.Contains(s, "prod") })
	if len(ready) != 1 || !strings.Contains(ready[0], v1alpha1.ReasonFetchFailed) {
		t.Errorf("series of mooring_ready: %v, want the last reason alone", ready)
	}
	m.Forget("mesh", "prod")
	for _, s := range series() {
		if strings.Contains(s, "prod") {
			t.Errorf("left behind: %s", s)
		}
	}
	if len(series()) == 0 {
		t.Error("the other Mooring's series went too")
	}
}

// A window's gauge goes with the windows, and lastScheduleTime with the schedule; a status at rest stays as it is.
func TestWhatTheCalendarLeavesBehind(t *testing.T) {
	reg := prometheus.NewRegistry()
	metrics := report.NewMetrics(reg)
	open := func() string {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "mooring_window_open" {
				return fmt.Sprint(f.GetMetric()[0].GetGauge().GetValue())
			}
		}
		return "none"
	}
	out := applied()
	for _, c := range []struct {
		window *bool
		want   string
	}{{new(true), "1"}, {new(false), "0"}, {nil, "none"}} {
		out.Window = c.window
		metrics.Observe("mesh", "prod", out)
		if got := open(); got != c.want {
			t.Errorf("mooring_window_open is %s, want %s", got, c.want)
		}
	}

	out.Scheduled, out.Slot = true, noon
	m := after(&v1alpha1.Mooring{}, out)
	if got := m.Status.LastScheduleTime; got == nil || !got.Time.Equal(noon) {
		t.Fatalf("lastScheduleTime is %v", got)
	}
	unknown, idle, without := out, out, out
	unknown.Slot, idle.Reason, without.Scheduled = time.Time{}, v1alpha1.ReasonSuspended, false
	for name, out := range map[string]report.Outcome{"a pass that did not find out": unknown, "suspended": idle} {
		if got := after(m, out).Status.LastScheduleTime; got == nil || !got.Time.Equal(noon) {
			t.Errorf("%s: lastScheduleTime is %v", name, got)
		}
	}
	if got := after(m, without).Status.LastScheduleTime; got != nil {
		t.Errorf("without a schedule lastScheduleTime is %v", got)
	}
}
