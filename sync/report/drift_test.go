package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// An edit of a route, as a plan that holds it back tells it.
func edit() apply.Step {
	return apply.Step{Action: apply.Skip, Drift: apply.DriftChanged, ID: route, Diff: []apply.FieldDiff{{
		Path: "/spec/http/0/timeout", Want: "5s", Live: "1s", Manager: "kubectl-edit", Operation: "Update", ChangedAt: noon.Add(-time.Minute),
	}}}
}

func put(s apply.Step) apply.Step {
	s.Action = apply.Update
	return s
}

func TestDriftIsTold(t *testing.T) {
	dropped := apply.Step{Action: apply.Skip, Drift: apply.DriftDeleted, ID: virtual(1)}
	extra := apply.Step{Action: apply.Skip, Drift: apply.DriftExtra, ID: virtual(2)}
	when := metav1.NewTime(noon.Add(-time.Minute))
	since := metav1.NewTime(noon)
	fight := report.Fight{ID: route, Field: "/spec/http/0/timeout", Manager: "other-operator", Corrections: 4, Since: noon, Next: noon.Add(time.Minute)}
	fought := drifted(v1alpha1.ReasonFight, edit())
	fought.Fights, fought.FightsBegun = []report.Fight{fight}, []report.Fight{fight}
	over := applied()
	over.FightsOver = []report.Fight{fight}
	denied := drifted(v1alpha1.ReasonNotCorrected, put(edit()))
	denied.Result.Steps[0].State = apply.Failed
	for _, c := range []struct {
		name      string
		out       report.Outcome
		condition string
		says      []string
		drift     []v1alpha1.DriftEntry
		events    []string
	}{
		{
			"only told of", drifted(v1alpha1.ReasonAlarm, edit(), dropped, extra), "True Alarm",
			[]string{"/spec/http/0/timeout of VirtualService/shop/web", "kubectl-edit", "3 fields of 3 objects", "spec.drift.mode"},
			[]v1alpha1.DriftEntry{
				{
					Object: "VirtualService/shop/web", Field: "/spec/http/0/timeout", Want: "5s", Live: "1s", Manager: "kubectl-edit", Operation: "Update",
					ChangedAt: &when, Since: &since, Reason: "Alarm",
				},
				{Object: "VirtualService/shop/r1", Want: "present", Live: "absent", Since: &since, Reason: "Alarm"},
				{Object: "VirtualService/shop/r2", Want: "absent", Live: "present", Since: &since, Reason: "Alarm"},
			},
			[]string{"Warning DriftDetected: /spec/http/0/timeout of VirtualService/shop/web, by kubectl-edit (Update, 2026-03-01T11:59:00Z): is 1s, Git wants 5s; " +
				"VirtualService/shop/r1 as a whole: is absent, Git wants present; VirtualService/shop/r2 as a whole: is present, Git wants absent. " +
				"It is left as it is, because spec.drift.mode is Alarm"},
		},
		{"deleted", drifted(v1alpha1.ReasonAlarm, dropped), "True Alarm", []string{"VirtualService/shop/r1 was deleted"}, nil, nil},
		{"extra", drifted(v1alpha1.ReasonAlarm, extra), "True Alarm", []string{"VirtualService/shop/r2 is there, and neither Git"}, nil, nil},
		{
			"put right", drifted("", put(edit())), "False InSync",
			[]string{"every object"},
			[]v1alpha1.DriftEntry{},
			[]string{"Normal DriftCorrected: corrected to main@sha1:" + strings.Repeat("a", 40) + ": 0 created, 1 configured, 0 deleted: " +
				"configured VirtualService/shop/web (/spec/http/0/timeout by kubectl-edit (Update, 2026-03-01T11:59:00Z))"},
		},
		{"denied", denied, "True NotCorrected", []string{"could not be put right"}, nil, []string{}},
		{
			"fought over", fought, "True Fight",
			[]string{"mooring and other-operator undo each other at /spec/http/0/timeout of VirtualService/shop/web", "spec.drift.ignore"},
			nil,
			[]string{"Warning Fight: mooring and other-operator undo each other at /spec/http/0/timeout of VirtualService/shop/web: put back 4 times; from now on ever more slowly"},
		},
		{
			"over", over, "False InSync", nil, nil,
			[]string{"Normal FightOver: nobody has undone it for a while: /spec/http/0/timeout of VirtualService/shop/web, which other-operator had changed"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := report.Status(&v1alpha1.Mooring{}, c.out)
			d := condition(t, s, v1alpha1.ConditionDrifted)
			if got := string(d.Status) + " " + d.Reason; got != c.condition {
				t.Errorf("Drifted is %s, want %s: %s", got, c.condition, d.Message)
			}
			for _, part := range c.says {
				if !strings.Contains(d.Message, part) {
					t.Errorf("the message lacks %q: %s", part, d.Message)
				}
			}
			if diff := cmp.Diff(c.drift, append([]v1alpha1.DriftEntry{}, s.Drift...)); c.drift != nil && diff != "" {
				t.Errorf("status.drift (-want +got):\n%s", diff)
			}
			var events []string
			for _, e := range report.Events(v1alpha1.MooringStatus{Conditions: s.Conditions}, s, c.out) {
				events = append(events, e.Type+" "+e.Reason+": "+e.Note)
			}
			if diff := cmp.Diff(c.events, append([]string{}, events...)); c.events != nil && diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCorrectionsStayVisible puts right more than the status holds.
func TestCorrectionsStayVisible(t *testing.T) {
	m := &v1alpha1.Mooring{}
	for i := range 25 {
		s := put(edit())
		s.ID = virtual(i)
		out := drifted("", s)
		out.Finished = noon.Add(time.Duration(i) * time.Second)
		m = after(m, out)
	}
	m = after(m, applied()) // and one with nothing to do
	all := m.Status.Corrections
	if len(all) != 20 || all[0].Object != "VirtualService/shop/r24" || all[19].Object != "VirtualService/shop/r5" {
		t.Fatalf("want r24 … r5, got %d: %+v", len(all), all)
	}
	want := v1alpha1.CorrectionEntry{
		Object: "VirtualService/shop/r24", Field: "/spec/http/0/timeout", Want: "5s", Live: "1s", Manager: "kubectl-edit", Operation: "Update",
		ChangedAt: new(metav1.NewTime(noon.Add(-time.Minute))), CorrectedAt: metav1.NewTime(noon.Add(24 * time.Second)),
	}
	if diff := cmp.Diff(want, all[0]); diff != "" {
		t.Errorf("the newest (-want +got):\n%s", diff)
	}
	if m.Status.DriftCount != 0 || len(m.Status.Drift) != 0 {
		t.Errorf("drift %+v", m.Status.Drift)
	}
}

// TestDriftIsCountedInFull has more of it than the status lists.
func TestDriftIsCountedInFull(t *testing.T) {
	var steps []apply.Step
	for i := range 30 {
		s := edit()
		s.ID, s.Diff = virtual(i), append(s.Diff, apply.FieldDiff{Path: "/spec/hosts", Live: []any{"a", "b"}})
		steps = append(steps, s)
	}
	out := drifted(v1alpha1.ReasonAlarm, steps...)
	m := after(&v1alpha1.Mooring{}, out)
	for range 2 { // the second pass could not look: what was known stays
		if m.Status.DriftCount != 60 || len(m.Status.Drift) != 20 || m.Status.Drift[1].Live != `["a","b"]` {
			t.Errorf("%d of %d: %+v", len(m.Status.Drift), m.Status.DriftCount, m.Status.Drift)
		}
		m = after(m, refused(report.StageFetch, v1alpha1.ReasonFetchFailed, fmt.Errorf("no route")))
	}
	reg := prometheus.NewRegistry()
	metrics := report.NewMetrics(reg)
	metrics.Observe("mesh", "prod", out)
	corrected := drifted("", put(steps[0]), put(steps[1]))
	corrected.Fights = []report.Fight{{ID: route}}
	metrics.Observe("mesh", "other", corrected)
	got := map[string]float64{}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, s := range f.Metric {
			got[f.GetName()+" "+s.Label[0].GetValue()] = s.GetGauge().GetValue() + s.GetCounter().GetValue()
		}
	}
	for series, want := range map[string]float64{
		"mooring_drifted_objects prod": 30, "mooring_drift_corrections_total prod": 0, "mooring_fights prod": 0,
		"mooring_drifted_objects other": 0, "mooring_drift_corrections_total other": 2, "mooring_fights other": 1,
	} {
		if got[series] != want {
			t.Errorf("%s is %v, want %v", series, got[series], want)
		}
	}
}
