package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/world"
)

func TestTwoMooringsOfOneRepositoryAreIndependent(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("left", some("a=1 b=1")), under("right", some("c=1 d=1"))))
	left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
	left.inForce(s.head())
	right.inForce(s.head())
	s.want("a=1 b=1 c=1 d=1")

	// The same commit breaks one and changes the other.
	good := s.head()
	bad := s.commit(files{"left/a.yaml": "apiVersion: v1\nkind: ConfigMap\n  metadata: {name: a}\n", "right/c.yaml": configMap("c", "2")})
	ready(t, left.sync(), metav1.ConditionFalse, v1alpha1.ReasonRenderFailed, "left/a.yaml", good+" stays in force")
	ready(t, right.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied, bad)
	s.want("a=1 b=1 c=2 d=1")

	// What one drops is no business of the other's.
	s.commit(files{"left/a.yaml": configMap("a", "3"), "left/b.yaml": configMap("b", "3"), "right/d.yaml": ""})
	right.edit(func(m *mooring) { *m.Spec.Prune.MaxPercent = 100 })
	ready(t, right.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)
	s.want("a=1 b=1 c=2")
	ready(t, left.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)
	s.want("a=3 b=3 c=2")
}

// TestLaw8HangingGitServerDelaysNobody lets servers accept and keep silent, from the start and in the middle of a pack.
func TestLaw8HangingGitServerDelaysNobody(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	silent := gitserver.Blackhole(t)
	stalling := gitserver.HTTP(t, gitserver.HTTPOptions{})
	content := s.fill(some("x=1"))
	for i := range 200 { // so that the pack is long enough to stop in the middle of it
		content[fmt.Sprintf("more/%d.txt", i)] = strings.Repeat(fmt.Sprint(i), 200)
	}
	stalling.Repo(t, "stalls.git", content)
	if err := stalling.Inject(gitserver.Fault{On: "git-upload-pack", Stall: true, StallAfter: 900}); err != nil {
		t.Fatal(err)
	}
	var hanging []*unit
	for i, url := range []string{silent.RepoURL("nobody.git"), silent.RepoURL("nobody.git"), stalling.RepoURL("stalls.git")} {
		hanging = append(hanging, s.mooring(fmt.Sprintf("hanging-%d", i), func(m *mooring) {
			m.Spec.Source.URL = url
			m.Spec.Timeout.Duration = 15 * time.Second
		}))
	}
	eventually(t, "the servers were asked", func() error {
		if silent.Counts("").InfoRefs < 2 || stalling.Counts("").UploadPack < 1 {
			return fmt.Errorf("%+v, %+v", silent.Counts(""), stalling.Counts(""))
		}
		return nil
	})

	// While they hang, another Mooring goes its way: from nothing, and to the next commit.
	good := s.mooring("good", nil)
	good.inForce(s.head())
	s.commit(some("a=2"))
	ready(t, good.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)
	for _, u := range hanging {
		m, err := w.Mooring(t.Context(), u.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got := world.Ready(m); got.Reason != "" {
			t.Errorf("Mooring %s was done before the good one, so this showed nothing: %s %s", u.Name, got.Reason, got.Message)
		}
	}
	s.want("a=2")

	// Their own deadline ends them, with a clear word.
	for _, u := range hanging {
		m := u.until("the fetch is given up", world.HasReason(v1alpha1.ReasonFetchFailed))
		ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonFetchFailed, strings.TrimPrefix(strings.Split(m.Spec.Source.URL, "/")[2], "//"))
	}
	if err := stalling.Heal(); err != nil {
		t.Fatal(err)
	}
	hanging[2].until("the healed server is read", world.HasReason(v1alpha1.ReasonApplied))
	s.want("a=2 x=1")
}

func TestDeletedMooringPrunes(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(some("a=1 b=1"), files{"route.yaml": virtualService("shop"), "service.yaml": service("shop")}))
	// A copy that a user made, label included, is the user's.
	u := s.mooring("prod", nil)
	u.inForce(s.head())
	stranger := strings.ReplaceAll(configMap("stranger", "mine"), "namespace: NS", "namespace: "+s.ns+", labels: {applyset.kubernetes.io/part-of: "+u.part()+"}")
	s.apply("somebody", stranger)

	u.delete()
	noErrors(t, w, u)
	if diff := cmp.Diff(map[string]string{"ConfigMap/stranger": s.versions()["ConfigMap/stranger"]}, s.versions()); diff != "" {
		t.Errorf("objects left (-want +got):\n%s", diff)
	}
}

func TestDeletedMooringOrphans(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(some("a=1"), files{"route.yaml": virtualService("shop"), "service.yaml": service("shop")}))
	u := s.mooring("prod", func(m *mooring) { m.Spec.DeletionPolicy = v1alpha1.DeletionOrphan })
	u.inForce(s.head())
	before := s.list(virtualServices)["shop"]

	u.delete()
	noErrors(t, w, u)
	s.want("a=1")
	after := s.list(virtualServices)["shop"]
	if after == nil || after.GetUID() != before.GetUID() {
		t.Fatalf("the VirtualService was %v, is %v", before, after)
	}
	if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("spec of the orphan (-before +after):\n%s", diff)
	}
	for _, o := range append(objects(s.list(configMaps)), after) {
		if id := partOf(o); id != "" {
			t.Errorf("%s %s still carries the label of %s", o.GetKind(), o.GetName(), id)
		}
		if ours(o) {
			t.Errorf("%s %s still has the field manager mooring", o.GetKind(), o.GetName())
		}
	}

	// Another Mooring can take them as they are.
	heir := s.mooring("heir", nil)
	heir.inForce(s.head())
	if got := s.list(virtualServices)["shop"]; got.GetUID() != before.GetUID() || partOf(got) != heir.part() {
		t.Errorf("the heir made it anew or did not label it: %v", got.Object["metadata"])
	}
}

// noErrors fails the test when the agent's log has an error about the Mooring.
func noErrors(t *testing.T, w *crowd, u *unit) {
	t.Helper()
	log, err := os.ReadFile(w.agent.LogFile())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, u.Namespace) && strings.Contains(line, `"level":"ERROR"`) {
			t.Errorf("the agent's log has an error where all went well: %s", line)
		}
	}
}
