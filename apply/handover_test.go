package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
)

// wishes are what the other Mooring wants, by the name of the object.
type wishes map[string]apply.Heir

// Undecided is under the name "undecided", for all objects.
func (w wishes) Undecided(context.Context, string) apply.Heir { return w["undecided"] }

func (w wishes) Heirs(_ context.Context, ids []render.ID) (map[render.ID]apply.Heir, error) {
	found := make(map[render.ID]apply.Heir)
	for _, id := range ids {
		if heir, ok := w[id.Name]; ok {
			found[id] = heir
		}
	}
	return found, nil
}

func (w wishes) Name(_ context.Context, id string) string {
	for _, heir := range w {
		if heir.ID == id {
			return heir.Name
		}
	}
	return ""
}

// pair are two Moorings of one cluster, that share an agent.
type pair struct {
	old, new *fixture
}

func newPair(t *testing.T) pair {
	t.Helper()
	f := newFixture(t)
	other := *f
	other.recorded = nil
	other.unit = apply.Unit{ID: apply.ApplySetID("other", f.ns, "Mooring", "mooring.dev"), Name: f.ns + "/other"}
	other.unit.Record = func(_ context.Context, kinds []schema.GroupKind) error {
		other.unit.Kinds = kinds
		return nil
	}
	return pair{old: f, new: &other}
}

// heir is the new Mooring as the old one sees it.
func (p pair) heir() apply.Heir { return apply.Heir{ID: p.new.unit.ID, Name: p.new.unit.Name} }

func (f *fixture) owner(name string) string {
	f.Helper()
	return f.configMap(name).GetLabels()[apply.PartOfLabel]
}

const noMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: rest, namespace: $NS}\n"

// The object of another Mooring is refused by name, and stays as it is.
func TestForeignIsRefused(t *testing.T) {
	p := newPair(t)
	p.old.sync(oneMap)
	p.old.settled(oneMap)
	err := p.new.refuse(strings.Replace(oneMap, "one", "two", 1))
	var foreign *apply.ForeignError
	if !errors.As(err, &foreign) || foreign.Owner != p.old.unit.ID || foreign.Name != p.old.unit.Name {
		t.Fatalf("want a ForeignError that names the owner, got %v", err)
	}
	p.old.settled(oneMap)
}

// The old one passes first, or the new one does: the object keeps its UID, and is the new one's in the end, just as Git has it there.
func TestHandover(t *testing.T) {
	for _, first := range []string{"old", "new"} {
		t.Run(first+" first", func(t *testing.T) {
			p := newPair(t)
			p.old.sync(oneMap + "---\n" + noMap)
			before := p.old.configMap("a")
			moved := strings.Replace(oneMap, "k: one", "l: two", 1)
			if first == "new" {
				_ = p.new.refuse(moved)
			}
			p.old.unit.Moorings = wishes{"a": p.heir()}
			plan, result := p.old.sync(noMap)
			p.old.want(plan, "update ConfigMap/a")
			if result.Objects != 2 || plan.Guard != nil {
				t.Fatalf("%d objects, want 2: what is offered is kept until it is taken (guard %v)", result.Objects, plan.Guard)
			}
			p.old.want(p.old.plan(noMap), "skip ConfigMap/a") // and nothing is written again
			if !cmp.Equal(p.old.unit.Kinds, []schema.GroupKind{{Kind: "ConfigMap"}}) {
				t.Fatalf("recorded kinds: %v", p.old.unit.Kinds)
			}

			plan, result = p.new.sync(moved)
			p.new.want(plan, "update ConfigMap/a")
			if result.Objects != 1 {
				t.Errorf("the new one has %d objects, want 1", result.Objects)
			}
			p.new.settled(moved)
			p.old.settled(noMap)
			after := p.new.configMap("a")
			if after.GetUID() != before.GetUID() || after.GetLabels()[apply.PartOfLabel] != p.new.unit.ID || len(after.GetAnnotations()) != 0 {
				t.Errorf("after the handover: uid %s (was %s), labels %v, annotations %v", after.GetUID(), before.GetUID(), after.GetLabels(), after.GetAnnotations())
			}
			data, _, _ := unstructured.NestedStringMap(after.Object, "data")
			if diff := cmp.Diff(map[string]string{"l": "two"}, data); diff != "" {
				t.Errorf("data:\n%s", diff)
			}
			if entries := after.GetManagedFields(); len(entries) != 1 || entries[0].Manager != apply.FieldManager {
				t.Errorf("managers: %+v", entries)
			}
		})
	}
}

// The other Mooring keeps an object away from deletion even where prune is off, forbidden or guarded: a handover deletes nothing.
func TestHandoverIsNoDelete(t *testing.T) {
	p := newPair(t)
	p.old.sync(oneMap)
	p.old.kubectl("annotate", "configmap", "a", apply.PruneAnnotation+"=disabled")
	p.old.policy.Prune = false
	p.old.unit.Moorings = wishes{"a": p.heir()}
	plan, _ := p.old.sync("") // and the empty path is no reason to hold it
	p.old.want(plan, "update ConfigMap/a")
	p.new.sync(oneMap)
	if got := p.new.owner("a"); got != p.new.unit.ID {
		t.Errorf("belongs to %s", got)
	}
}

// As long as it cannot be told whether somebody else wants it, the object is neither offered nor deleted.
func TestHandoverUnsure(t *testing.T) {
	p := newPair(t)
	p.old.sync(oneMap + "---\n" + noMap)
	unsure := p.heir()
	unsure.Unsure = "its path does not render"
	p.old.unit.Moorings = wishes{"a": unsure}
	plan, _ := p.old.sync(noMap)
	p.old.want(plan, "skip ConfigMap/a")
	if text := plan.String(); !strings.Contains(text, "its path does not render") {
		t.Errorf("the plan does not say why:\n%s", text)
	}
	p.old.unit.Moorings = wishes{}
	plan, _ = p.old.sync(noMap)
	p.old.want(plan, "delete ConfigMap/a")
}

// What was offered stays while whom it was offered to does not want it any more, but has no newer commit in force. Its word counts once it has.
func TestOfferStaysUntilTheHeirHasDecided(t *testing.T) {
	p := newPair(t)
	p.old.sync(oneMap + "---\n" + noMap)
	p.old.unit.Moorings = wishes{"a": p.heir()}
	plan, _ := p.old.sync(noMap)
	p.old.want(plan, "update ConfigMap/a")

	undecided := p.heir()
	undecided.Unsure = "no newer commit of it is in force yet"
	p.old.unit.Moorings = wishes{"undecided": undecided}
	plan, _ = p.old.sync(noMap)
	p.old.want(plan, "skip ConfigMap/a")
	if text := plan.String(); !strings.Contains(text, undecided.Unsure) {
		t.Errorf("the plan does not say why it stays:\n%s", text)
	}

	p.old.unit.Moorings = wishes{}
	plan, _ = p.old.sync(noMap)
	p.old.want(plan, "delete ConfigMap/a")
}

// An offer that nobody takes is taken back, or the object goes after all.
func TestHandoverIsTakenBack(t *testing.T) {
	p := newPair(t)
	both := oneMap + "---\n" + noMap
	p.old.sync(both)
	uid := p.old.configMap("a").GetUID()
	p.old.unit.Moorings = wishes{"a": p.heir()}
	p.old.sync(noMap)
	late := p.new.plan(oneMap) // the new one sees the offer, and is slow

	plan, _ := p.old.sync(both)
	p.old.want(plan, "update ConfigMap/a")
	p.old.settled(both)
	if live := p.old.configMap("a"); live.GetUID() != uid || len(live.GetAnnotations()) != 0 {
		t.Fatalf("after it was taken back: %v", live.Object["metadata"])
	}
	if _, err := p.new.applier.Run(t.Context(), late); err == nil {
		t.Fatal("an offer was taken that had been taken back")
	}
	p.old.settled(both)

	p.old.sync(noMap)
	p.old.unit.Moorings = wishes{}
	plan, _ = p.old.sync(noMap)
	p.old.want(plan, "delete ConfigMap/a")
}

// A delete that was planned before the heir took the object does not touch it.
func TestHandoverBeatsAnOldDelete(t *testing.T) {
	p := newPair(t)
	p.old.sync(oneMap + "---\n" + noMap)
	p.old.unit.Moorings = wishes{"a": p.heir()}
	p.old.sync(noMap)
	p.old.unit.Moorings = wishes{}
	late := p.old.plan(noMap)
	p.old.want(late, "delete ConfigMap/a")
	p.new.sync(oneMap)
	if _, err := p.old.applier.Run(t.Context(), late); err == nil {
		t.Fatal("the delete of what another Mooring has was not noticed")
	}
	if got := p.new.owner("a"); got != p.new.unit.ID {
		t.Errorf("belongs to %s", got)
	}
}

// A Mooring is deleted while another one wants an object of it: that one gets it, with its UID.
func TestDeletedMooringLetsGoForAnother(t *testing.T) {
	p := newPair(t)
	p.old.sync(oneMap + "---\n" + noMap)
	uid := p.old.configMap("a").GetUID()
	p.old.unit.Moorings = wishes{"a": p.heir()}
	plan, err := p.old.applier.PlanDelete(t.Context(), p.old.unit)
	if err != nil {
		t.Fatal(err)
	}
	p.old.want(plan, "delete ConfigMap/rest", "update ConfigMap/a")
	p.old.run(plan)
	plan, _ = p.new.sync(oneMap)
	p.new.want(plan, "update ConfigMap/a")
	if live := p.new.configMap("a"); live.GetUID() != uid || live.GetLabels()[apply.PartOfLabel] != p.new.unit.ID {
		t.Errorf("after the handover: %v", live.Object["metadata"])
	}
}

// The same object in another version of its API is the same object.
func TestVersionKeepsTheUID(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.sync(mesh)
	uid := f.get("networking.istio.io", "v1", "virtualservices", "reviews").GetUID()
	for _, stream := range []string{strings.ReplaceAll(mesh, "networking.istio.io/v1\n", "networking.istio.io/v1beta1\n"), mesh} {
		plan, _ := f.sync(stream)
		for s := range plan.Steps() {
			if s.Action == apply.Delete || s.Action == apply.Create || s.Action == apply.Replace {
				t.Errorf("%s %s", s.Action, s.ID)
			}
		}
		f.settled(stream)
		if got := f.get("networking.istio.io", "v1", "virtualservices", "reviews").GetUID(); got != uid {
			t.Fatalf("uid %s, was %s", got, uid)
		}
	}
}
