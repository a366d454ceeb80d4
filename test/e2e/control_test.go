package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

func TestSuspendAndResume(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1"))
	u := s.mooring("prod", every(time.Second))
	first := s.head()
	u.inForce(first)

	s.mustShell("mooring suspend prod -n NS", "suspended at main@"+first[:7])
	m := u.until("it is suspended", world.HasReason(v1alpha1.ReasonSuspended))
	ready(t, m, metav1.ConditionUnknown, v1alpha1.ReasonSuspended, "mooring resume")
	second := s.commit(some("a=2"))
	s.tamper("b", "by-hand")
	other := s.mooring("other", func(m *mooring) { every(time.Second)(m); m.Spec.Path = "nowhere" })
	passes(t, w.agent, 3, other) // time goes by
	s.want("a=1 b=by-hand")
	if got := scrape(t, w.agent).Get("mooring_suspended", u.series()...); got != 1 {
		t.Errorf("mooring_suspended is %v, want 1", got)
	}

	s.mustShell("mooring resume prod -n NS", "resumed")
	u.inForce(second)
	s.want("a=2 b=1")
}

func TestReconcileAnnotationAsksForAPassNow(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	u := s.mooring("prod", nil) // comes by once an hour
	u.inForce(s.head())

	second := s.commit(some("a=2"))
	s.mustShell("kubectl annotate mooring prod -n NS --overwrite mooring.dev/reconcile=$(date +%s)", "annotated")
	u.inForce(second)
	s.want("a=2")

	s.tamper("a", "by-hand")
	s.mustShell("mooring sync prod -n NS", "Ready=True Applied", second)
	s.want("a=2")
	e := u.event("DriftCorrected", "ConfigMap/"+s.ns+"/a", "/data/value", "by somebody")
	if !strings.Contains(e.Note, second) {
		t.Errorf("the Event does not say what it was corrected to: %s", e.Note)
	}
}

func TestEveryCorrectionIsTold(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1"))
	u := s.mooring("prod", every(time.Second))
	u.inForce(s.head())
	s.tamper("a", "by-hand")
	u.event("DriftCorrected", "ConfigMap/"+s.ns+"/a")
	s.becomes("a=1 b=1")
	s.tamper("b", "by-hand")
	u.event("DriftCorrected", "ConfigMap/"+s.ns+"/b")
	s.becomes("a=1 b=1")
	if got := scrape(t, w.agent).Get("mooring_drift_corrections_total", u.series()...); got != 2 {
		t.Errorf("mooring_drift_corrections_total is %v, want 2", got)
	}
}

func TestGuardedPruneWaitsForAWord(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1 c=1 d=1"))
	u := s.mooring("prod", nil) // 25 percent, the default: one of four may go
	u.inForce(s.head())
	s.commit(files{"d.yaml": ""})
	ready(t, u.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)
	s.want("a=1 b=1 c=1")

	good := s.head()
	guarded := s.commit(files{"a.yaml": configMap("a", "2"), "b.yaml": "", "c.yaml": ""})
	m := u.sync()
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonPruneGuarded, guarded, "2 of 3", good+" stays in force", "mooring.dev/confirm=main@sha1:"+guarded+",deletes=2")
	s.want("a=1 b=1 c=1")
	out := s.shell("mooring diff prod -n NS", 1)
	if missing := lacks(out, []string{"ConfigMap/" + s.ns + "/b", "ConfigMap/" + s.ns + "/c"}); missing != "" {
		t.Errorf("mooring diff lacks %q:\n%s", missing, out)
	}

	// A word for another revision is none.
	s.mustShell("kubectl annotate mooring prod -n NS mooring.dev/confirm="+good, "annotated")
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonPruneGuarded)
	s.want("a=1 b=1 c=1")

	s.mustShell("mooring sync prod -n NS --confirm "+guarded[:10], "Ready=True Applied")
	m = u.inForce(guarded)
	s.want("a=2")
	if h := m.Status.History[0]; h.By != "confirm" || h.Deleted != 2 {
		t.Errorf("the history says %+v, want two deleted by confirm", h)
	}

	// The word is used up: the agent took it away, and another plan for the same revision is held again.
	eventually(t, "the word is taken away", func() error {
		m, err := w.Mooring(t.Context(), u.Key)
		if word := m.Annotations[v1alpha1.ConfirmAnnotation]; err != nil || word != "" {
			return fmt.Errorf("it is %q, %v", word, err)
		}
		return nil
	})
	s.commit(some("a=2 e=1 f=1"))
	ready(t, u.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)
	s.commit(files{"e.yaml": "", "f.yaml": ""})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonPruneGuarded)
	s.want("a=2 e=1 f=1")
}

// TestWordDoesNotCountForAPlanThatGrew confirms what was told, and changes the path before the agent comes to it.
func TestWordDoesNotCountForAPlanThatGrew(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, under("left", some("a=1 b=1 c=1 d=1")))
	u := s.mooring("prod", at("left"))
	u.inForce(s.head())
	guarded := s.commit(all(files{"left/c.yaml": "", "left/d.yaml": ""}, under("right", some("x=1"))))
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonPruneGuarded, ",deletes=2")
	u.edit(func(m *mooring) {
		m.Spec.Path = "right"
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.ConfirmAnnotation, guarded+",deletes=2")
	})
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonPruneGuarded, "4 objects would be deleted by now, and the word was for 2")
	s.want("a=1 b=1 c=1 d=1")
	s.mustShell("mooring sync prod -n NS --confirm "+guarded[:10]+",deletes=4", "Ready=True Applied")
	s.want("x=1")
}

func TestPruneDisabledKeepsWhatGitDropped(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1 c=1 d=1"))
	u := s.mooring("prod", func(m *mooring) { m.Spec.Prune.Enabled = new(false) })
	u.inForce(s.head())
	s.commit(files{"c.yaml": "", "d.yaml": ""})
	ready(t, u.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)
	s.want("a=1 b=1 c=1 d=1")
	for name, o := range s.list(configMaps) {
		if partOf(o) != u.part() {
			t.Errorf("ConfigMap %s is no longer the Mooring's", name)
		}
	}
	u.edit(func(m *mooring) { m.Spec.Prune = v1alpha1.Prune{Enabled: new(true), MaxPercent: new(int32(100))} })
	s.becomes("a=1 b=1")
}

// TestOneFaultIsOneEvent asks for many passes at once: what the agent has just written may not have come back to it
// when the next pass begins, and still nothing is told twice.
func TestOneFaultIsOneEvent(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	u := s.mooring("prod", nil)
	u.inForce(s.head())
	for _, turn := range []struct{ branch, reason string }{{"nosuch", v1alpha1.ReasonFetchFailed}, {"main", v1alpha1.ReasonApplied}} {
		u.edit(func(m *mooring) { m.Spec.Source.Ref.Branch = turn.branch })
		for range 20 {
			if _, err := w.Ask(t.Context(), u.Key); err != nil {
				t.Fatal(err)
			}
		}
		if got := world.Ready(u.sync()); got.Reason != turn.reason {
			t.Fatalf("Ready is %s, want %s: %s", got.Reason, turn.reason, got.Message)
		}
	}
	u.event(v1alpha1.ReasonFetchFailed)
	u.event("Recovered")
}
