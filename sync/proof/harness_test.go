package proof_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
	"github.com/mooring-dev/mooring/sync/proof"
	"github.com/mooring-dev/mooring/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// fixture is one unit in a namespace of its own. Its plans come from the API server; tests put their steps into other waves.
type fixture struct {
	*testing.T
	cluster *kube.Cluster
	applier *apply.Applier
	unit    apply.Unit
	ns      string
	other   string // another namespace, where a test wants one
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	cluster := kube.Start(t)
	f := &fixture{T: t, ns: cluster.Namespace(t), cluster: cluster}
	f.unit = apply.Unit{ID: apply.ApplySetID("unit", f.ns, "Mooring", "mooring.dev"), Name: f.ns + "/unit"}
	var err error
	if f.applier, err = apply.New(cluster.Config(), apply.Options{GateTimeout: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	return f
}

// set reads a stream of YAML. What names no namespace is in the test's. $OTHER stands for its other one.
func (f *fixture) set(stream string) *render.Set {
	f.Helper()
	set := &render.Set{}
	for document := range strings.SplitSeq(strings.ReplaceAll(stream, "$OTHER", f.other), "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			f.Fatalf("%v in:\n%s", err, document)
		}
		if u.Object != nil {
			u.SetNamespace(cmp.Or(u.GetNamespace(), f.ns))
			set.Objects = append(set.Objects, render.Object{Content: render.ContentOf(u)})
		}
	}
	return set
}

// plan puts the old state into the cluster and plans the new one.
func (f *fixture) plan(old, wanted string) *apply.Plan {
	f.Helper()
	first, err := f.applier.Plan(f.Context(), f.unit, f.set(old), apply.Policy{Prune: true})
	if err != nil {
		f.Fatal(err)
	}
	result, err := f.applier.Run(f.Context(), first)
	if err != nil {
		f.Fatal(err)
	}
	f.unit.Kinds = result.Kinds
	for s := range first.Steps() {
		f.unit.Kinds = append(f.unit.Kinds, s.ID.GroupKind())
	}
	slices.SortFunc(f.unit.Kinds, func(a, b kind) int { return strings.Compare(a.String(), b.String()) })
	f.unit.Kinds = slices.Compact(f.unit.Kinds)
	plan, err := f.applier.Plan(f.Context(), f.unit, f.set(wanted), apply.Policy{Prune: true})
	if err != nil {
		f.Fatal(err)
	}
	return plan
}

// waves are steps by "kind/name" in waves; one that ends with ! waits for the proxies.
func (f *fixture) waves(p *apply.Plan, waves ...string) *apply.Plan {
	f.Helper()
	steps := map[string]apply.Step{}
	for s := range p.Steps() {
		steps[s.ID.Kind+"/"+s.ID.Name] = s
	}
	out := *p
	out.Waves = nil
	for i, text := range waves {
		names, gated := strings.CutSuffix(text, "!")
		w := apply.Wave{Name: fmt.Sprint(i + 1)}
		if gated {
			w.Gate = apply.GatePropagated
		}
		for name := range strings.FieldsSeq(names) {
			s, ok := steps[name]
			if !ok {
				f.Fatalf("no step for %s in:\n%s", name, p)
			}
			w.Steps = append(w.Steps, s)
		}
		out.Waves = append(out.Waves, w)
	}
	return &out
}

// live is what lives in the test's namespace: others have theirs in the same cluster.
func (f *fixture) live() *world.Cluster {
	f.Helper()
	s, err := f.applier.Surroundings(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	ours := slices.DeleteFunc(slices.Clone(s.Objects), func(u *unstructured.Unstructured) bool {
		return u.GetNamespace() != f.ns && u.GetNamespace() != cmp.Or(f.other, f.ns)
	})
	return &world.Cluster{Objects: ours, MetadataOnly: s.MetadataOnly, Unread: s.Unread}
}

func (f *fixture) prove(p *apply.Plan, o proof.Options) *proof.Report {
	f.Helper()
	r, err := proof.Plan(f.Context(), p, f.live(), o)
	if err != nil {
		f.Fatal(err)
	}
	f.Log(r)
	return r
}
