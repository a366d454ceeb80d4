package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/world"
)

// TestDriftIsCorrectedAtOnce edits objects of Moorings that look by themselves once an hour only. What is put back is put back because the agent saw it, and
// without a question to Git.
func TestDriftIsCorrectedAtOnce(t *testing.T) {
	w := quiet(t)
	startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, all(some("a=1 b=1"), files{"route.yaml": virtualService("shop"), "service.yaml": service("shop")}))
	u := s.mooring("one", every(time.Hour))
	u.inForce(s.head())
	kubectl := func(args ...string) {
		t.Helper()
		if _, err := w.Cluster.Kubectl(t.Context(), append([]string{"-n", s.ns}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	asked := w.Git.Counts(s.ns + ".git")
	var took []time.Duration
	corrected := func(name string) {
		t.Helper()
		began := time.Now()
		eventually(t, name+" is put back", func() error {
			if got := s.values(); got["a"] != "1" || got["b"] != "1" || len(got) != 2 {
				return fmt.Errorf("there is %v", got)
			}
			for name, o := range s.list(configMaps) {
				if partOf(o) == "" {
					return fmt.Errorf("%s has lost its label", name)
				}
			}
			return nil
		})
		took = append(took, time.Since(began))
	}
	for i := range 10 {
		// Each by somebody else: the same one ten times would be a fight.
		kubectl("patch", "configmap", "a", "--type=merge", fmt.Sprintf("--field-manager=hand-%d", i), "-p", fmt.Sprintf(`{"data":{"value":"hand %d"}}`, i))
		corrected("an edit")
	}
	kubectl("delete", "configmap", "a")
	corrected("a delete")
	kubectl("label", "configmap", "a", "applyset.kubernetes.io/part-of-")
	corrected("a label")
	slices.Sort(took)
	t.Logf("put back after %s in the middle, %s at most, seen from kubectl's end on", took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	eventually(t, "each correction is told", func() error { // after the object was written
		told := 0
		for _, e := range u.events() {
			if e.Reason == "DriftCorrected" {
				told++
			}
		}
		if told != len(took) {
			return fmt.Errorf("%d of %d were told: %v", told, len(took), u.events())
		}
		return nil
	})
	if now := w.Git.Counts(s.ns + ".git"); now.InfoRefs != asked.InfoRefs {
		t.Errorf("Git was asked %d times for the sake of drift", now.InfoRefs-asked.InfoRefs)
	}
}

// TestWatchesOutliveTheServer restarts the API server under a watching agent: nothing is taken for deleted, nothing is written, and drift is corrected again.
func TestWatchesOutliveTheServer(t *testing.T) {
	w := quiet(t)
	startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, some("a=1 b=1"))
	u := s.mooring("one", every(time.Hour))
	u.inForce(s.head())
	s.tamper("a", "by hand")
	s.becomes("a=1 b=1")
	before := s.list(configMaps)
	if err := w.Cluster.RestartAPIServer(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	s.tamper("b", "by hand")
	s.becomes("a=1 b=1")
	after := s.list(configMaps)
	if after["a"].GetResourceVersion() != before["a"].GetResourceVersion() || after["b"].GetUID() != before["b"].GetUID() {
		t.Errorf("objects were written: %v, then %v", before, after)
	}
}
