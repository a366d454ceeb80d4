package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/prometheus"
	"github.com/mooring-dev/mooring/test/world"
)

// follows lets a Mooring take up what another one has proven.
func follows(from string, soak time.Duration) func(*mooring) {
	return func(m *mooring) {
		m.Spec.Promotion = &v1alpha1.Promotion{From: v1alpha1.PromotionFrom{Name: from}, Soak: metav1.Duration{Duration: soak}}
	}
}

// these changes of a Mooring one after the other.
func these(changes ...func(*mooring)) func(*mooring) {
	return func(m *mooring) {
		for _, change := range changes {
			change(m)
		}
	}
}

// overlays of three environments, whose objects are dev, staging and prod.
func overlays(value string) files {
	content := files{}
	for _, env := range []string{"dev", "staging", "prod"} {
		content = all(content, under("overlays/"+env, some(env+"="+value)))
	}
	return content
}

// promoted says whether the condition Promoted has a reason, and a message with these parts.
func promoted(reason string, parts ...string) func(*mooring) error {
	return func(m *mooring) error {
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionPromoted)
		switch {
		case c == nil || c.Reason != reason:
			return fmt.Errorf("the condition Promoted is %+v, want %s", c, reason)
		case lacks(c.Message, parts) != "":
			return fmt.Errorf("the condition Promoted lacks %q: %s", lacks(c.Message, parts), c.Message)
		}
		return nil
	}
}

// onMain is a commit as the status writes it.
func onMain(commit string) string { return "main@sha1:" + commit }

// candidates of a Mooring, each with what it waits for, newest first.
func candidates(m *mooring) string {
	var all []string
	if m.Status.Promotion != nil {
		for _, c := range m.Status.Promotion.Candidates {
			all = append(all, c.Revision+" "+c.State)
		}
	}
	return strings.Join(all, ", ")
}

// TestFollowFromDevToProd takes one commit through three environments of one branch: as fast as each has proven it, and without anybody asking.
func TestFollowFromDevToProd(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, overlays("1"))
	const soak = 3 * time.Second
	dev := s.mooring("dev", at("overlays/dev"))
	staging := s.mooring("staging", these(at("overlays/staging"), follows("dev", soak)))
	prod := s.mooring("prod", these(at("overlays/prod"), follows("staging", soak)))
	first := s.head()
	m := prod.inForce(first)
	s.want("dev=1 prod=1 staging=1")
	in := func(u *unit) time.Time {
		m := u.until("history has something", func(m *mooring) error {
			if len(m.Status.History) == 0 {
				return fmt.Errorf("it has nothing")
			}
			return nil
		})
		return m.Status.History[len(m.Status.History)-1].HealthySince.Time
	}
	if h := m.Status.History[0]; h.By != "promotion" || h.Author == "" || h.Subject == "" || h.AppliedAt.Time.Before(in(staging).Add(soak)) {
		t.Errorf("history says %+v; staging was well since %s", h, in(staging))
	}

	second := s.commit(overlays("2"))
	dev.inForceAfterSync(second)
	ready(t, staging.until("it soaks", promoted(v1alpha1.ReasonSoaking, second, "soaks until", s.ns+"/dev")), metav1.ConditionTrue, v1alpha1.ReasonApplied, first)
	s.want("dev=2 prod=1 staging=1")
	prod.inForce(second)
	s.want("dev=2 prod=2 staging=2")
	staging.event("Promoted", second)
	m = prod.until("nothing waits", promoted(v1alpha1.ReasonUpToDate))
	if m.Status.Promotion.Revision != onMain(second) || candidates(m) != "" {
		t.Errorf("the status says %+v", m.Status.Promotion)
	}
}

// TestBadCommitIsStoppedInStaging has one whose workload never becomes ready there. It goes no further, also when it recovers, and the next one comes.
func TestBadCommitIsStoppedInStaging(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(overlays("1"), under("overlays/staging", files{"web.yaml": deployment("web", "web:1")})))
	staging := s.mooring("staging", these(at("overlays/staging"), waiting(5*time.Second)))
	prod := s.mooring("prod", these(at("overlays/prod"), follows("staging", 2*time.Second)))
	first := s.head()
	s.rollOut("web", "web:1")
	prod.inForce(first)

	bad := s.commit(all(overlays("2"), under("overlays/staging", files{"web.yaml": deployment("web", "web:2")})))
	staging.until("it is not healthy in time", world.HasReason(v1alpha1.ReasonHealthTimeout))
	prod.until("it is told of", promoted(v1alpha1.ReasonNothingProven, bad, "was not healthy in time there", "Deployment/"+s.ns+"/web"))
	s.rollOut("web", "web:2")
	staging.until("it recovers, too late", world.HasReason(v1alpha1.ReasonApplied))
	m := prod.sync()
	ready(t, m, metav1.ConditionTrue, v1alpha1.ReasonApplied, first)
	if got, want := candidates(m), onMain(bad)+" Failed"; got != want {
		t.Errorf("candidates are %q, want %q", got, want)
	}
	s.want("prod=1 staging=2")

	good := s.commit(all(overlays("3"), under("overlays/staging", files{"web.yaml": deployment("web", "web:3")})))
	s.rollOut("web", "web:3")
	prod.inForce(good)
	s.want("prod=3 staging=3")
}

// TestDriftThereHoldsAPromotion has somebody change what staging has, which tells of it only.
func TestDriftThereHoldsAPromotion(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, overlays("1"))
	staging := s.mooring("staging", these(at("overlays/staging"), func(m *mooring) { m.Spec.Drift = &v1alpha1.Drift{Mode: v1alpha1.DriftAlarm} }))
	first := s.head()
	staging.inForce(first)
	s.tamper("staging", "by-hand")
	staging.until("it is told of", func(m *mooring) error {
		if m.Status.DriftCount == 0 {
			return fmt.Errorf("no drift is known")
		}
		return nil
	})
	prod := s.mooring("prod", these(at("overlays/prod"), follows("staging", 0)))
	ready(t, prod.until("it waits", promoted(v1alpha1.ReasonNotHealthy, "with drift")), metav1.ConditionFalse, v1alpha1.ReasonPromotionPending, "nothing is in force here yet", first)
	s.want("staging=by-hand")
	s.tamper("staging", "1")
	prod.inForce(first)
}

// TestPersonsWordForOneCommit approves one, and not the one that comes after it.
func TestPersonsWordForOneCommit(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, overlays("1"))
	staging := s.mooring("staging", at("overlays/staging"))
	prod := s.mooring("prod", these(at("overlays/prod"), follows("staging", 0), func(m *mooring) { m.Spec.Promotion.Approval = v1alpha1.ApprovalManual }))
	first := s.head()
	prod.until("it waits for a person", promoted(v1alpha1.ReasonAwaitingApproval, first, "mooring promote prod -n "+s.ns))
	prod.event(v1alpha1.ReasonAwaitingApproval, first)
	approve := func(m *mooring) {
		m.Annotations = map[string]string{v1alpha1.PromoteAnnotation: onMain(first) + " looks good"}
	}
	prod.edit(approve)
	m := prod.inForce(first)
	if h := m.Status.History[0]; h.By != "promotion" || h.Reason != "looks good" {
		t.Errorf("history says %+v", h)
	}
	second := s.commit(overlays("2"))
	staging.inForceAfterSync(second)
	m = prod.until("the next one waits, too", promoted(v1alpha1.ReasonAwaitingApproval, second))
	ready(t, m, metav1.ConditionTrue, v1alpha1.ReasonApplied, first)
	prod.until("the word is taken away", func(m *mooring) error {
		if word, ok := m.Annotations[v1alpha1.PromoteAnnotation]; ok {
			return fmt.Errorf("it is there: %q", word)
		}
		return nil
	})
}

// TestRollbackAndTheWayBack pins the commit before, for as long as a person wants.
func TestRollbackAndTheWayBack(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	u := s.mooring("prod", nil)
	first := s.head()
	u.inForce(first)
	second := s.commit(some("a=2 b=2"))
	u.inForceAfterSync(second)

	u.edit(denied(time.Time{})) // in the night, when nothing may be applied
	u.edit(func(m *mooring) {
		m.Spec.Pin = &v1alpha1.Pin{Revision: onMain(first), Reason: "incident 4711"}
		m.Spec.Prune.MaxPercent = new(int32(100))
	})
	m := u.inForce(first)
	s.want("a=1") // and what the second has made is gone
	condition(t, m, v1alpha1.ConditionPinned, metav1.ConditionTrue)
	u.event("Pinned", first, "incident 4711")
	if h := m.Status.History[0]; h.By != "rollback" || h.Reason != "incident 4711" {
		t.Errorf("history says %+v", h)
	}
	s.tamper("a", "by-hand")
	s.becomes("a=1")
	third := s.commit(some("a=3"))
	ready(t, u.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied, first, "pinned", "mooring unpin")

	u.edit(func(m *mooring) { m.Spec.Pin, m.Spec.Windows = nil, nil })
	m = u.inForce(third)
	condition(t, m, v1alpha1.ConditionPinned, "")
	s.want("a=3 b=2")
	u.event("Unpinned")
}

// TestOnFailureGoesBackByItself has a workload that does not become ready, and what was healthy before comes back, once.
func TestOnFailureGoesBackByItself(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(some("a=1"), files{"web.yaml": deployment("web", "web:1")}))
	u := s.mooring("prod", these(waiting(5*time.Second), func(m *mooring) {
		m.Spec.OnFailure = v1alpha1.OnFailureRollback
		m.Spec.Prune.MaxPercent = new(int32(100))
	}))
	first := s.head()
	s.rollOut("web", "web:1")
	u.inForce(first)
	bad := s.commit(all(some("a=2 b=2"), files{"web.yaml": deployment("web", "web:2")}))
	m := u.until("it is taken back", func(m *mooring) error {
		if m.Status.Rollback == nil || m.Status.LastAppliedRevision != onMain(first) {
			return fmt.Errorf("%s is in force, rollback is %+v", m.Status.LastAppliedRevision, m.Status.Rollback)
		}
		return nil
	})
	s.rollOut("web", "web:1")
	s.becomes("a=1")
	ready(t, u.until("it says so", func(m *mooring) error {
		if c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionHealthy); c.Status != metav1.ConditionTrue {
			return fmt.Errorf("healthy is %+v", c)
		}
		return nil
	}), metav1.ConditionFalse, v1alpha1.ReasonHealthTimeout, bad, "was taken back", first+" is in force again", "push a commit that mends it")
	condition(t, u.sync(), v1alpha1.ConditionStalled, metav1.ConditionTrue)
	if h := m.Status.History; len(h) != 3 || h[0].By != "rollback" || h[1].Failed == "" {
		t.Errorf("history is %+v", h)
	}
	u.event("RolledBack", bad, first)
	good := s.commit(all(some("a=3"), files{"web.yaml": deployment("web", "web:3")}))
	s.rollOut("web", "web:3")
	m = u.inForce(good)
	if m.Status.Rollback != nil {
		t.Errorf("the rollback is still told of: %+v", m.Status.Rollback)
	}
}

// TestSuccessRateHoldsAPromotion asks a real Prometheus. A number that is too low holds the commit, so does a Prometheus that is away, and a good one lets it through.
func TestSuccessRateHoldsAPromotion(t *testing.T) {
	w := shared(t)
	var rate atomic.Value
	rate.Store("0.87")
	mesh := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(rw, "success{app=\"cart\"} %s\n", rate.Load())
	}))
	t.Cleanup(mesh.Close)
	p := prometheus.Start(t, mesh.Listener.Addr().String())
	p.Await(`success`)

	s := newSite(t, w.World, overlays("1"))
	s.mooring("staging", at("overlays/staging"))
	gate := v1alpha1.MetricGate{Name: "success rate", Address: p.URL, Query: `min_over_time(success[$soak])`, Min: new(v1alpha1.Decimal("0.99"))}
	prod := s.mooring("prod", these(at("overlays/prod"), every(2*time.Second), follows("staging", 5*time.Second), func(m *mooring) {
		m.Spec.Promotion.Metrics = []v1alpha1.MetricGate{gate}
	}))
	first := s.head()
	prod.until("the rate is too low", promoted(v1alpha1.ReasonGateClosed, first, "success rate is 0.87", "want at least 0.99"))
	prod.event(v1alpha1.ReasonGateClosed, first, "success rate is 0.87")
	s.want("staging=1")
	prod.edit(func(m *mooring) { m.Spec.Promotion.Metrics[0].Address = "http://127.0.0.1:1" })
	prod.until("nobody answers", promoted(v1alpha1.ReasonGateClosed, "127.0.0.1:1"))
	rate.Store("0.999")
	prod.edit(func(m *mooring) { m.Spec.Promotion.Metrics[0].Address = p.URL })
	prod.inForce(first)
}
