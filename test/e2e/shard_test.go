package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// TestShardsShareTheWork runs two agents that are no replicas of each other. Each Mooring has one that works for it, also after it was given to the other.
func TestShardsShareTheWork(t *testing.T) {
	w := quiet(t)
	rest := startAgent(t, w, world.AgentOptions{Name: "rest"})
	green := startAgent(t, w, world.AgentOptions{Name: "green", Args: []string{"--shard", "green"}})
	s := newSite(t, w, all(under("one", some("a=1")), under("two", some("b=1"))))
	one := s.mooring("one", at("one"))
	two := s.mooring("two", func(m *mooring) { at("two")(m); m.Labels = map[string]string{v1alpha1.ShardLabel: "green"} })
	one.inForce(s.head())
	two.inForce(s.head())
	works := func(agent *world.Agent, u *unit) bool {
		return len(scrape(t, agent).Series("mooring_last_pass_timestamp_seconds", u.series()...)) > 0
	}
	if !works(rest, one) || works(rest, two) || works(green, one) || !works(green, two) {
		t.Errorf("the rest works for one: %t, for two: %t; green works for one: %t, for two: %t", works(rest, one), works(rest, two), works(green, one), works(green, two))
	}

	m, err := w.Mooring(t.Context(), one.Key)
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"mooring.dev/shard":"green"}}}`))
	if err := w.Client().Patch(t.Context(), m, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "green works for one, and nobody else", func() error {
		if works(rest, one) || !works(green, one) {
			return fmt.Errorf("the rest works for it: %t, green: %t", works(rest, one), works(green, one))
		}
		return nil
	})
	began := time.Now()
	s.tamper("a", "by hand")
	s.becomes("a=1 b=1")
	one.event("DriftCorrected", "ConfigMap/"+s.ns+"/a")
	t.Logf("put back by the other agent after %s", time.Since(began).Round(time.Millisecond))
}
