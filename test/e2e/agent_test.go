package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/world"
)

func TestAgentAnswersHealthAndMetrics(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1"))
	u := s.mooring("prod", nil)
	u.inForce(s.head())
	for _, probe := range []string{"healthz", "readyz"} {
		if err := w.agent.Probe(t.Context(), probe); err != nil {
			t.Errorf("%s: %v", probe, err)
		}
	}
	metrics := scrape(t, w.agent)
	for series, want := range map[string]float64{
		`mooring_ready{name="prod",namespace="NS",reason="Applied"}`:                      1,
		`mooring_passes_total{name="prod",namespace="NS",reason="Applied"}`:               1,
		`mooring_objects{name="prod",namespace="NS"}`:                                     2,
		`mooring_changes_total{action="create",name="prod",namespace="NS"}`:               2,
		`mooring_changes_total{action="delete",name="prod",namespace="NS"}`:               0,
		`mooring_suspended{name="prod",namespace="NS"}`:                                   0,
		`mooring_stage_duration_seconds_count{name="prod",namespace="NS",stage="render"}`: 1,
	} {
		series = strings.ReplaceAll(series, "NS", s.ns)
		if got, ok := metrics[series]; !ok || got != want {
			t.Errorf("%s is %v (there: %t), want %v", series, got, ok, want)
		}
	}
	finished := metrics.Get("mooring_last_pass_timestamp_seconds", u.series()...)
	if age := time.Since(time.Unix(int64(finished), 0)); age < 0 || age > patience {
		t.Errorf("mooring_last_pass_timestamp_seconds is %v ago", age)
	}

	// A Mooring that is gone leaves no series behind.
	u.delete()
	eventually(t, "the series are gone", func() error {
		for series := range scrape(t, w.agent) {
			if strings.Contains(series, fmt.Sprintf("namespace=%q", s.ns)) {
				return fmt.Errorf("%s is there", series)
			}
		}
		return nil
	})
}

// TestAnotherAgentTakesOver runs two agents, as the Deployment does, and ends the one that works.
func TestAnotherAgentTakesOver(t *testing.T) {
	w := quiet(t)
	ns := w.Cluster.Namespace(t)
	elect := []string{"--leader-elect", "--leader-election-namespace", ns}
	first := startAgent(t, w, world.AgentOptions{Name: "first", Args: elect})
	s := newSite(t, w, some("a=1"))
	u := s.mooring("prod", every(time.Second))
	u.inForce(s.head())

	second := startAgent(t, w, world.AgentOptions{Name: "second", Args: elect})
	passes(t, first, 2, u)
	if got := scrape(t, second).Get("mooring_passes_total"); got != 0 {
		t.Errorf("the second agent has made %v passes beside the leader", got)
	}

	// The leader hands the lease back when it is asked to end, so nobody has to wait until it runs out.
	began := time.Now()
	if err := first.Stop(); err != nil {
		t.Error(err)
	}
	s.tamper("a", "by hand")
	s.becomes("a=1")
	if took := time.Since(began); took > 14*time.Second {
		t.Errorf("the other agent needed %s to take over, as if it had waited for the lease to run out", took)
	}
	u.inForce(s.commit(some("a=2")))

	// A leader that is killed hands nothing back. The lease runs out, and the next one goes on.
	third := startAgent(t, w, world.AgentOptions{Name: "third", Args: elect})
	second.Kill()
	u.inForce(s.commit(some("a=3")))
	passes(t, third, 1, u)
}
