package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
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

// amnesia stands between an agent and the API server: it can end the watches of ConfigMaps, and tell those that come next that the server has forgotten
// what happened since.
type amnesia struct {
	mu     sync.Mutex
	cut    bool // no watch gets through
	expire bool // the next one is answered with 410
	told   int  // how many were
	ends   []context.CancelFunc
}

const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}`

func (a *amnesia) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	if !r.URL.Query().Has("watch") || !strings.HasSuffix(r.URL.Path, "/configmaps") {
		proxy.ServeHTTP(w, r)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	a.mu.Lock()
	cut, expire := a.cut, a.expire && !a.cut
	if expire {
		a.expire = false
		a.told++
	}
	a.ends = append(a.ends, cancel)
	a.mu.Unlock()
	switch {
	case cut:
		http.Error(w, "no watch gets through", http.StatusServiceUnavailable)
	case expire:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, expired)
	default:
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}
}

// begin ends all watches, and lets none through until end.
func (a *amnesia) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cut, a.expire = true, true
	for _, end := range a.ends {
		end()
	}
	a.ends = nil
}

// end lets watches through again, and waits until one was told that the server has forgotten.
func (a *amnesia) end(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	a.cut = false
	a.mu.Unlock()
	eventually(t, "a watch was answered with 410", func() error {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.told == 0 {
			return fmt.Errorf("none was")
		}
		return nil
	})
}

// TestForgottenChangesAreFound changes objects while no watch gets through and lets the server forget it: what was changed is put back all the same, long
// before a pass would come by itself, and what was not is neither written nor taken for deleted.
func TestForgottenChangesAreFound(t *testing.T) {
	w := quiet(t)
	a := &amnesia{}
	proxy, err := w.StartProxy(a.serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.KillAgents()
		proxy.Close()
	})
	startAgent(t, w, world.AgentOptions{Kubeconfig: proxy.Kubeconfig})
	s := newSite(t, w, some("edited=1 deleted=1 unlabelled=1 quiet=1"))
	u := s.mooring("one", every(time.Hour))
	u.inForce(s.head())
	s.tamper("edited", "by hand")
	s.becomes("edited=1 deleted=1 unlabelled=1 quiet=1")
	u.until("the first correction is told", lists(corrected, []string{line("ConfigMap/"+s.ns+"/edited", "/data/value", "by hand", "1", "somebody", "Update")}))
	before := s.list(configMaps)

	a.begin()
	s.tamper("edited", "by hand again")
	s.mustShell("kubectl -n NS delete configmap deleted")
	s.mustShell("kubectl -n NS label configmap unlabelled applyset.kubernetes.io/part-of-")
	a.end(t)
	want := []string{
		line("ConfigMap/"+s.ns+"/deleted", "", "absent", "present", "", ""),
		line("ConfigMap/"+s.ns+"/edited", "/data/value", "by hand again", "1", "somebody", "Update"),
		line("ConfigMap/"+s.ns+"/unlabelled", "/metadata/labels", "", "{", "", ""),
	}
	u.until("all is put back and named", func(m *mooring) error {
		m.Status.Corrections = m.Status.Corrections[:min(len(m.Status.Corrections), len(want))]
		return lists(corrected, want)(m)
	})
	s.want("edited=1 deleted=1 unlabelled=1 quiet=1")
	after := s.list(configMaps)
	for _, name := range []string{"edited", "unlabelled", "quiet"} {
		if after[name].GetUID() != before[name].GetUID() || partOf(after[name]) != u.part() {
			t.Errorf("%s was made anew, or is not ours: %v", name, after[name])
		}
	}
	if after["quiet"].GetResourceVersion() != before["quiet"].GetResourceVersion() {
		t.Errorf("what nobody had touched was written: %v", after["quiet"])
	}
}
