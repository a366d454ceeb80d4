package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/test/world"
)

// kinds of the big commit.
var kinds = []schema.GroupVersionKind{configMaps, services, virtualServices}

// big is a commit of sixty objects, each in a file of its own. Those from first to last are in it.
func big(first, last int, value string) files {
	content := files{}
	for i := first; i <= last; i++ {
		name := fmt.Sprintf("n%02d", i)
		content[name+"-config.yaml"] = configMap(name, value)
		content[name+"-service.yaml"] = service(name)
		content[name+"-route.yaml"] = virtualService(name)
	}
	return content
}

// TestLaw2KilledAgentLeavesNothingUntracked kills the agent at ten instants that are spread over all the writes of an apply
// of sixty objects, before a write reaches the API server and after it was done but not heard of. Right then, every object that the
// agent made carries the label. A restarted agent brings the cluster to what Git says, also when the next commit, which came in between, no
// longer has some of the objects, or has others.
func TestLaw2KilledAgentLeavesNothingUntracked(t *testing.T) {
	w := quiet(t)
	gate := guard(t, w)
	start := func() *world.Agent { return startAgent(t, w, world.AgentOptions{Kubeconfig: gate.kubeconfig}) }
	agent := start()
	loose := func(m *mooring) { m.Spec.Prune.MaxPercent = new(int32(100)) }

	// How many writes there are, when nothing goes wrong.
	s := newSite(t, w, big(1, 20, "1"))
	gate.watch(s.ns, 0, false)
	u := s.mooring("prod", loose)
	u.inForce(s.head())
	total := gate.count()
	if total < 60 {
		t.Fatalf("an apply of sixty objects made %d writes", total)
	}
	u.delete()

	const kills = 10
	for k := range kills {
		n := 1 + k*(total-1)/(kills-1) // the first write, the last, and eight between
		t.Run(fmt.Sprintf("write %d of %d", n, total), func(t *testing.T) {
			s := newSite(t, w, big(1, 20, "1"))
			gate.watch(s.ns, n, k%2 == 1)
			u := s.mooring("prod", loose)
			select {
			case <-gate.wasShut():
			case <-within(t, patience).Done():
				t.Fatalf("after %d writes the write %d did not come", gate.count(), n)
			}
			agent.Kill()
			made := s.tracked(u)
			t.Logf("%d objects were made", made)

			want := big(1, 20, "1")
			if k%2 == 0 { // another commit meanwhile: five names gone, five new, the others changed
				want = big(6, 25, "2")
				drop := big(1, 5, "")
				for path := range drop {
					drop[path] = ""
				}
				s.commit(all(want, drop))
			}
			gate.watch(s.ns, 0, false)
			agent = start()
			u.inForce(s.head())
			s.exactly(u, want)
			u.delete()
		})
	}
}

// TestLaw2KilledWhilePruning kills the agent while it deletes what a commit dropped.
func TestLaw2KilledWhilePruning(t *testing.T) {
	w := quiet(t)
	gate := guard(t, w)
	start := func() *world.Agent { return startAgent(t, w, world.AgentOptions{Kubeconfig: gate.kubeconfig}) }
	agent := start()
	for k, n := range []int{2, 12, 24, 30} {
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			s := newSite(t, w, big(1, 20, "1"))
			u := s.mooring("prod", func(m *mooring) { m.Spec.Prune.MaxPercent = new(int32(100)) })
			u.inForce(s.head())
			drop := big(1, 10, "")
			for path := range drop {
				drop[path] = ""
			}
			s.commit(drop)
			gate.watch(s.ns, n, k%2 == 1)
			if _, err := w.Ask(t.Context(), u.Key); err != nil {
				t.Fatal(err)
			}
			select {
			case <-gate.wasShut():
			case <-within(t, patience).Done():
				t.Fatalf("after %d writes the write %d did not come", gate.count(), n)
			}
			agent.Kill()
			s.tracked(u)
			gate.watch(s.ns, 0, false)
			agent = start()
			u.inForce(s.head())
			s.exactly(u, big(11, 20, "1"))
			u.delete()
		})
	}
}

// tracked fails the test when an object that Mooring wrote to does not carry its label, and counts those that do.
func (s *site) tracked(u *unit) int {
	s.t.Helper()
	made := 0
	for _, kind := range kinds {
		for name, o := range s.list(kind) {
			if ours(o) && partOf(o) != u.part() {
				s.t.Errorf("%s %s was made by Mooring and is labelled %q", kind.Kind, name, partOf(o))
			}
			if partOf(o) == u.part() {
				made++
			}
		}
	}
	return made
}

// exactly fails the test when the cluster has other objects than the files say, or has them otherwise.
func (s *site) exactly(u *unit, content files) {
	s.t.Helper()
	want, got := map[string]bool{}, map[string]bool{}
	for path := range content {
		want[path] = true
	}
	suffix := map[schema.GroupVersionKind]string{configMaps: "config", services: "service", virtualServices: "route"}
	for _, kind := range kinds {
		for name := range s.list(kind) {
			got[name+"-"+suffix[kind]+".yaml"] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		s.t.Errorf("objects (-Git +cluster):\n%s", diff)
	}
	if made := s.tracked(u); made != len(want) {
		s.t.Errorf("%d objects carry the label, want %d", made, len(want))
	}
	for name, value := range s.values() {
		if file := content[name+"-config.yaml"]; file != configMap(name, value) {
			s.t.Errorf("ConfigMap %s has the value %q; Git has:\n%s", name, value, file)
		}
	}
}
