package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/world"
)

// definition is one whose names are taken by the first, and an object of its kind: the API server never establishes it, and a run waits for that at a gate
// for a minute.
func definition(name string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.NS.test.mooring.dev}
spec:
  group: NS.test.mooring.dev
  scope: Namespaced
  names: {kind: %[1]s, plural: %[1]s, singular: %[1]s, listKind: TakenList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: NS.test.mooring.dev/v1
kind: %[1]s
metadata: {name: it, namespace: NS}
`, name)
}

// TestRunsThatWaitAtAGateDelayNobody has an agent that works for one Mooring at a time, and eight that wait at a gate. Another one goes its way meanwhile, and a
// commit that arrives during the wait does not wait for its end.
func TestRunsThatWaitAtAGateDelayNobody(t *testing.T) {
	w := quiet(t)
	startAgent(t, w, world.AgentOptions{Args: []string{"--concurrent", "1"}})
	first := newSite(t, w, files{"crd.yaml": definition("first")})
	s := newSite(t, w, some("a=1"))
	t.Cleanup(func() {
		_, _ = w.Cluster.Kubectl(within(t, patience), "delete", "crd", "first."+first.ns+".test.mooring.dev", "--ignore-not-found")
	})
	first.mooring("first", nil).inForce(first.head())

	var stuck []*unit
	for i := range 8 {
		name := fmt.Sprintf("stuck%d", i)
		content := under(name, all(files{"crd.yaml": strings.ReplaceAll(definition(name), "NS", first.ns)}, some(name+"=1")))
		s.commit(content)
		stuck = append(stuck, s.mooring(name, func(m *mooring) {
			at(name)(m)
			every(2 * time.Second)(m)
			m.Spec.Prune.MaxPercent = new(int32(100))
		}))
	}
	eventually(t, "all of them wait at the gate", func() error {
		out, err := w.Cluster.Kubectl(t.Context(), "get", "crd", "-o", "name")
		if got := strings.Count(out, "stuck"); err != nil || got < len(stuck) {
			return fmt.Errorf("%d of %d definitions are there, %v", got, len(stuck), err)
		}
		return nil
	})

	began := time.Now()
	good := s.mooring("good", at("good"))
	head := s.commit(under("good", some("x=1")))
	good.sync()
	good.inForce(head)
	t.Logf("with %d at a gate, another Mooring was in force after %s", len(stuck), time.Since(began).Round(10*time.Millisecond))
	for _, u := range stuck {
		m, err := w.Mooring(t.Context(), u.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got := world.Ready(m); got.Reason == "Applied" || got.Reason == "ApplyFailed" {
			t.Errorf("Mooring %s was done before the good one, so this showed nothing: %s %s", u.Name, got.Reason, got.Message)
		}
	}

	// The commit that mends one of them is taken up at the next question to Git, not at the end of the minute. The word is for its definition.
	began = time.Now()
	mended := s.commit(files{"stuck0/crd.yaml": "", "stuck0/stuck0.yaml": configMap("stuck0", "2")})
	stuck[0].until("the wait is ended for the newer commit", func(m *mooring) error {
		if !strings.HasSuffix(m.Status.LastAttemptedRevision, mended) {
			return fmt.Errorf("attempted is %s", m.Status.LastAttemptedRevision)
		}
		return nil
	})
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the newer commit was taken up after %s", took)
	}
	s.mustShell("mooring sync stuck0 -n NS --confirm "+mended[:10], "Ready=True Applied")
	if got := s.values()["stuck0"]; got != "2" {
		t.Errorf("stuck0 is %q, want 2", got)
	}
}
