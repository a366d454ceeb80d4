package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/world"
)

// system are the groups of the API server's own upkeep.
var system = []string{"apiregistration.k8s.io", "flowcontrol.apiserver.k8s.io", "rbac.authorization.k8s.io", "coordination.k8s.io"}

// TestLaw5RestCostsNothing counts what the API server is asked while neither Git nor the cluster changes.
func TestLaw5RestCostsNothing(t *testing.T) {
	w := quiet(t)
	cleared(t, w)
	agent := startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, all(under("one", all(some("a=1 b=1"), files{"route.yaml": virtualService("shop"), "service.yaml": service("shop")})), under("two", some("c=1 d=1"))))
	one, two := s.mooring("one", func(m *mooring) { at("one")(m); every(time.Second)(m) }), s.mooring("two", func(m *mooring) { at("two")(m); every(time.Second)(m) })
	one.inForce(s.head())
	two.inForce(s.head())
	passes(t, agent, 2, one, two) // the dust settles: the garbage collector asks for kinds that are new to it

	before, metrics, objects := w.Cluster.Requests(t), scrape(t, agent), s.versions()
	asked := w.Git.Counts(s.ns + ".git")
	events := append(one.events(), two.events()...)
	passes(t, agent, 4, one, two)
	requests := w.Cluster.Requests(t).Since(before)

	strange := requests.Only(func(r kube.Request) bool {
		// Label-selected lists of metadata are how a pass sees that nothing moved. The test lists, too.
		listed := r.Verb == "LIST" || r.Verb == "WATCH"
		upkeep := slices.Contains(system, r.Group) || r.Resource == "namespaces" && !r.Write()
		return !listed && !upkeep
	})
	if strange.Total() > 0 {
		t.Errorf("requests at rest, in at least four passes of two Moorings:\n%s", strange)
	}
	for _, stage := range []string{"render", "check", "apply"} {
		was, is := observed(metrics, stage, one, two), observed(scrape(t, agent), stage, one, two)
		if was == 0 && stage == "render" {
			t.Errorf("the stage %s was never observed, so this shows nothing", stage)
		}
		if stage != "apply" && was != is {
			t.Errorf("mooring_stage_duration_seconds_count of stage %s went from %v to %v at rest", stage, was, is)
		}
	}
	s.untouched(objects)
	if diff := cmp.Diff(events, append(one.events(), two.events()...)); diff != "" {
		t.Errorf("Events at rest (-before +after):\n%s", diff)
	}
	if now := w.Git.Counts(s.ns + ".git"); now.InfoRefs <= asked.InfoRefs {
		t.Errorf("Git was not asked for its refs: %+v, then %+v", asked, now)
	} else if now.UploadPack-asked.UploadPack > now.InfoRefs-asked.InfoRefs {
		t.Errorf("objects were fetched although the ref did not move: %+v, then %+v", asked, now)
	}
}

// cleared waits until the namespaces of earlier tests are gone: the control plane takes away what was in them, kind by kind.
func cleared(t *testing.T, w *world.World) {
	t.Helper()
	eventually(t, "no namespace is going", func() error {
		list := &corev1.NamespaceList{}
		if err := w.Client().List(t.Context(), list); err != nil {
			return err
		}
		for _, ns := range list.Items {
			if ns.Status.Phase == corev1.NamespaceTerminating {
				return fmt.Errorf("namespace %s is going", ns.Name)
			}
		}
		return nil
	})
}

// passes waits until each of the Moorings has had n more passes.
func passes(t *testing.T, agent *world.Agent, n int, units ...*unit) {
	t.Helper()
	before := scrape(t, agent)
	for _, u := range units {
		goal := before.Get("mooring_passes_total", u.series()...) + float64(n)
		eventually(t, fmt.Sprintf("Mooring %s had %d more passes", u.Name, n), func() error {
			if got := scrape(t, agent).Get("mooring_passes_total", u.series()...); got < goal {
				return fmt.Errorf("%v of %v", got, goal)
			}
			return nil
		})
	}
}

func observed(m world.Metrics, stage string, units ...*unit) float64 {
	sum := 0.0
	for _, u := range units {
		sum += m.Get("mooring_stage_duration_seconds_count", u.series(fmt.Sprintf("stage=%q", stage))...)
	}
	return sum
}

func scrape(t *testing.T, agent *world.Agent) world.Metrics {
	t.Helper()
	m, err := agent.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}
