package e2e_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/world"
)

// uids of the ConfigMaps by name.
func (s *site) uids() map[string]string {
	s.t.Helper()
	uids := make(map[string]string)
	for name, o := range s.list(configMaps) {
		uids[name] = string(o.GetUID())
	}
	return uids
}

func (s *site) sameUIDs(before map[string]string) {
	s.t.Helper()
	if diff := cmp.Diff(before, s.uids()); diff != "" {
		s.t.Fatalf("UIDs (-before +now):\n%s", diff)
	}
}

// ownedBy wants the label of this Mooring on the ConfigMaps.
func (s *site) ownedBy(u *unit, names ...string) {
	s.t.Helper()
	for _, name := range names {
		if o := s.list(configMaps)[name]; o == nil || partOf(o) != u.part() || len(o.GetAnnotations()) > 0 {
			s.t.Fatalf("ConfigMap %s is not the one of Mooring %s alone: %v", name, u.Name, o)
		}
	}
}

// An object that one commit moves from one Mooring to the other has the same UID ever after, whichever of the two is looked after first.
func TestHandoverInEitherOrder(t *testing.T) {
	w := shared(t)
	for _, first := range []string{"old", "new"} {
		t.Run(first+" first", func(t *testing.T) {
			s := newSite(t, w.World, all(under("left", some("a=1 b=1 c=1")), under("right", some("d=1"))))
			left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
			left.inForce(s.head())
			right.inForce(s.head())
			before := s.uids()
			moved := s.commit(files{"left/a.yaml": "", "left/b.yaml": "", "right/a.yaml": configMap("a", "2"), "right/b.yaml": configMap("b", "1")})
			if first == "new" {
				ready(t, right.sync(), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "belongs to Mooring "+s.ns+"/left")
				s.want("a=1 b=1 c=1 d=1")
			}
			left.inForceAfterSync(moved)
			s.sameUIDs(before)
			if first == "new" {
				right.inForce(moved) // it is told of the offer
			} else {
				right.inForceAfterSync(moved)
			}
			s.want("a=2 b=1 c=1 d=1")
			s.sameUIDs(before)
			s.ownedBy(right, "a", "b", "d")
			s.ownedBy(left, "c")

			// What is dropped for good goes at once, also by the one that it was handed to.
			s.commit(files{"right/a.yaml": "", "left/c.yaml": configMap("c", "2")})
			right.edit(func(m *mooring) { *m.Spec.Prune.MaxPercent = 100 })
			right.inForceAfterSync(s.head())
			s.want("b=1 c=1 d=1")
		})
	}
}

// Two Moorings that give each other an object in one commit are both refused at first: each waits for the other. They come out of it.
func TestExchange(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("left", some("a=1 c=1")), under("right", some("b=1 d=1"))))
	left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
	left.inForce(s.head())
	right.inForce(s.head())
	before := s.uids()
	s.commit(files{"left/a.yaml": "", "left/b.yaml": configMap("b", "2"), "right/b.yaml": "", "right/a.yaml": configMap("a", "2")})
	ready(t, left.sync(), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "belongs to Mooring "+s.ns+"/right")
	s.sameUIDs(before)
	right.inForceAfterSync(s.head()) // a was offered by the pass that was refused
	// The claim goes, and nothing else of what is written on the Mooring.
	left.inForceAfterSync(s.head())
	annotations := left.inForce(s.head()).Annotations
	if book := annotations["applyset.kubernetes.io/contains-group-kinds"]; annotations[v1alpha1.ClaimsAnnotation] != "" || book != "ConfigMap" {
		t.Errorf("annotations of the Mooring: %v", annotations)
	}
	s.want("a=2 b=2 c=1 d=1")
	s.sameUIDs(before)
	s.ownedBy(left, "b", "c")
	s.ownedBy(right, "a", "d")
}

// The commit breaks the path that may want the object: nobody can tell, and it stays until somebody can.
func TestHandoverWaitsForABrokenPath(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("left", some("a=1 b=1")), under("right", some("d=1"))))
	left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
	left.edit(func(m *mooring) { *m.Spec.Prune.MaxPercent = 100 })
	left.inForce(s.head())
	right.inForce(s.head())
	before := s.uids()
	s.commit(files{"left/a.yaml": "", "right/a.yaml": configMap("a", "2"), "right/d.yaml": broken})
	left.inForceAfterSync(s.head())
	s.sameUIDs(before)
	s.commit(files{"right/d.yaml": configMap("d", "1")})
	left.inForceAfterSync(s.head())
	right.inForceAfterSync(s.head())
	s.want("a=2 b=1 d=1")
	s.sameUIDs(before)
	s.ownedBy(right, "a", "d")
}

// The Mooring that is to have the object is refused for it, and its next commit, in which the object has another name, is refused as well.
// Its last good commit still has the object, and so it stays until a newer one is in force.
func TestHandoverWaitsForWhoClaims(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("left", some("a=1 b=1")), under("right", some("d=1"))))
	left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
	left.edit(func(m *mooring) { *m.Spec.Prune.MaxPercent = 100 })
	left.inForce(s.head())
	right.inForce(s.head())
	before := s.uids()
	s.commit(files{"left/a.yaml": "", "right/a.yaml": configMap("a", "2")})
	ready(t, right.sync(), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "belongs to Mooring "+s.ns+"/left")
	s.commit(files{"right/a.yaml": configMap("renamed", "2"), "right/bad.yaml": configMap("Not_A_Name", "1")})
	ready(t, right.sync(), metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, "Not_A_Name")
	left.inForceAfterSync(s.head())
	s.sameUIDs(before)
	s.want("a=1 b=1 d=1")

	s.commit(files{"right/bad.yaml": ""})
	right.inForceAfterSync(s.head())
	s.becomes("b=1 d=1 renamed=2") // the other one is told that there is nothing to wait for
}

// A commit that is refused for another object takes no claim away: the last good one still has what it claimed.
func TestClaimsStandWhileCommitsAreRefused(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("left", some("a=1 b=1")), under("right", some("d=1"))))
	left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
	left.edit(func(m *mooring) { *m.Spec.Prune.MaxPercent = 100 })
	left.inForce(s.head())
	right.inForce(s.head())
	before := s.uids()
	s.commit(files{"left/a.yaml": "", "right/a.yaml": configMap("a", "2")})
	ready(t, right.sync(), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "ConfigMap/"+s.ns+"/a", "belongs to Mooring "+s.ns+"/left")
	s.commit(files{"right/a.yaml": configMap("renamed", "2"), "right/b.yaml": configMap("b", "2")})
	ready(t, right.sync(), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "ConfigMap/"+s.ns+"/b", "belongs to Mooring "+s.ns+"/left")
	left.inForceAfterSync(s.head())
	s.sameUIDs(before)
	s.want("a=1 b=1 d=1")

	s.commit(files{"right/b.yaml": ""})
	right.inForceAfterSync(s.head())
	s.becomes("b=1 d=1 renamed=2")
}

// An object is on its way when a commit empties the path of the one that is to have it: that is as likely a mistake as what the guard holds, and
// nothing is deleted for it.
func TestHandoverWaitsForAnEmptiedPath(t *testing.T) {
	w := shared(t)
	list := func(names string) string { return "resources: [" + names + "]\n" }
	s := newSite(t, w.World, all(under("left", some("a=1 b=1")), under("right", some("d=1")), files{"right/kustomization.yaml": list("d.yaml")}))
	left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
	left.edit(func(m *mooring) { *m.Spec.Prune.MaxPercent = 100 })
	left.inForce(s.head())
	right.inForce(s.head())
	before := s.uids()
	s.commit(files{"left/a.yaml": "", "right/a.yaml": configMap("a", "2"), "right/kustomization.yaml": list("a.yaml, d.yaml")})
	left.inForceAfterSync(s.head())
	s.commit(files{"right/kustomization.yaml": list("")})
	left.inForceAfterSync(s.head())
	s.sameUIDs(before)
	s.commit(files{"right/kustomization.yaml": list("a.yaml, d.yaml")})
	left.inForceAfterSync(s.head())
	right.inForceAfterSync(s.head())
	s.want("a=2 b=1 d=1")
	s.sameUIDs(before)
	s.ownedBy(right, "a", "d")
}

// A Mooring that is deleted while another one of the same path is made, which is how one is renamed, leaves it what it had.
func TestRenamedMooringKeepsItsObjects(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1"))
	old := s.mooring("old", nil)
	old.inForce(s.head())
	before := s.uids()
	renamed := s.mooring("new", nil)
	old.delete()
	renamed.inForceAfterSync(s.head())
	s.sameUIDs(before)
	s.ownedBy(renamed, "a", "b")
}

// Two repositories: who was refused claims the objects, and an agent that starts afresh and looks after the old one first still knows.
func TestHandoverBetweenRepositories(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, some("a=1 b=1"))
	server := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := server.Repo(t, "other.git", s.fill(some("d=1")))
	left := s.mooring("left", func(m *mooring) { m.Spec.Prune.MaxPercent = new(int32(100)) })
	right := s.mooring("right", func(m *mooring) { m.Spec.Source.URL = repo.URL })
	left.inForce(s.head())
	right.until("the other repository is in force", world.HasReason(v1alpha1.ReasonApplied))
	before := s.uids()
	repo.Commit(gitserver.Change{Files: s.fill(files{"a.yaml": configMap("a", "2")})})
	refused := right.sync()
	ready(t, refused, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "belongs to Mooring "+s.ns+"/left")
	if claims := refused.Annotations[v1alpha1.ClaimsAnnotation]; claims != "ConfigMap/"+s.ns+"/a" {
		t.Fatalf("claims: %q", claims)
	}

	// The agent comes back, and the repository that claims cannot be read.
	if err := agent.Stop(); err != nil {
		t.Error(err)
	}
	if err := server.Inject(gitserver.Fault{Status: 503}); err != nil {
		t.Fatal(err)
	}
	s.commit(files{"a.yaml": ""})
	startAgent(t, w, world.AgentOptions{})
	left.inForceAfterSync(s.head())
	s.sameUIDs(before)
	if err := server.Heal(); err != nil {
		t.Fatal(err)
	}
	right.sync() // is refused once more, and known from now on
	left.inForceAfterSync(s.head())
	m := right.sync()
	ready(t, m, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	s.want("a=2 b=1 d=1")
	s.sameUIDs(before)
	s.ownedBy(right, "a", "d")
	if claims, ok := m.Annotations[v1alpha1.ClaimsAnnotation]; ok {
		t.Errorf("claims are still there: %q", strings.TrimSpace(claims))
	}
}
