// Package plan_test is the plan proof: for random changes of random meshes, every state between two writes of Mooring's plan is put through Istio's
// own generator, and no proxy of the mesh has a route to nothing in any of them.
//
// Each mesh lives in a real API server; each change is planned against it, proved (package sync/proof), applied, and compared with what the proof took the end to
// be. How it is run and run again is said in package test/proof.
package plan_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render/check/world"
	plans "github.com/mooring-dev/mooring/sync/proof"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/proof"
	"github.com/mooring-dev/mooring/test/proof/random"
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// meshes and the changes of each, and the states that are looked at for one change.
type size struct{ meshes, changes, states int }

func TestPlans(t *testing.T) {
	seed := proof.Seed(t)
	s := size{meshes: 3, changes: 8, states: 100}
	if proof.Full() {
		s = size{meshes: 20, changes: 25, states: 300}
	}
	cluster := kube.Start(t)
	var sum figures
	began := time.Now()
	for i := range s.meshes {
		t.Run(fmt.Sprint("mesh ", i), func(t *testing.T) {
			p := newProver(t, cluster, seed+uint64(i), fmt.Sprintf("plan%d-%d", seed, i))
			p.states = s.states
			p.settle("the mesh itself")
			for n := range s.changes {
				p.change(n+1, &sum)
			}
		})
	}
	text := sum.String(time.Since(began))
	t.Log(text)
	if proof.Full() {
		proof.Record(t, "plans", text)
	}
}

// figures of all changes.
type figures struct {
	changes, writes, stretches, states, pairs, whole int
	broken, retired, known                           int
	planning, proving                                time.Duration
}

func (f *figures) add(r *plans.Report) {
	f.writes += r.Writes
	f.stretches += r.Stretches
	f.states += r.States
	f.pairs += r.Pairs
	if r.All {
		f.whole++
	}
	f.broken += len(r.Broken)
	f.retired += len(r.Retired)
	f.known += len(r.Known)
}

func (f *figures) String(took time.Duration) string {
	return fmt.Sprintf("%d changes, planned against a real API server: %d writes that proxies learn of, in %d stretches between gates. %d states looked at, and %d pairs of "+
		"clusters of one and routes of another; of %d changes all states that there are.\nRoutes to nothing: %d. Beside these, %d routes of virtual hosts that the change takes away hang between "+
		"clusters and routes, and %d lead to nothing whatever the order.\nA proof took %s on average, a plan %s, all together %s.",
		f.changes, f.writes, f.stretches, f.states, f.pairs, f.whole, f.broken, f.retired, f.known,
		(f.proving / time.Duration(max(1, f.changes))).Round(time.Millisecond), (f.planning / time.Duration(max(1, f.changes))).Round(time.Millisecond), took.Round(time.Second))
}

// prover plans and applies the changes of one mesh.
type prover struct {
	*testing.T
	mesh      *random.Mesh
	seed      uint64
	prefix    string
	applier   *apply.Applier
	unit      apply.Unit
	converter *world.Converter
	states    int
}

func newProver(t *testing.T, cluster *kube.Cluster, seed uint64, prefix string) *prover {
	t.Helper()
	p := &prover{
		T: t, seed: seed, prefix: prefix, mesh: random.New(seed, random.Options{Prefix: prefix}), converter: world.NewConverter(),
		unit: apply.Unit{ID: apply.ApplySetID(prefix, "default", "Mooring", "mooring.dev"), Name: "default/" + prefix, Mesh: atOnce{}},
	}
	p.unit.Record = func(_ context.Context, kinds []schema.GroupKind) error {
		p.unit.Kinds = slices.Clone(kinds)
		return nil
	}
	var err error
	if p.applier, err = apply.New(cluster.Config(), apply.Options{GateTimeout: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, o := range p.mesh.Objects() {
			if o.GetKind() == "Namespace" {
				if err := client.CoreV1().Namespaces().Delete(ctx, o.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	return p
}

// atOnce is a mesh whose proxies acknowledge at once: no proxy is there.
type atOnce struct{}

func (atOnce) Propagated(context.Context, []apply.Written) error { return nil }

// settle applies what Git has now, without a proof.
func (p *prover) settle(what string) {
	p.Helper()
	p.run(p.plan(what), what)
}

func (p *prover) plan(what string) *apply.Plan {
	p.Helper()
	set, err := p.mesh.Set(p.Context())
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
	plan, err := p.applier.Plan(p.Context(), p.unit, set, apply.Policy{Prune: true})
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
	return plan
}

func (p *prover) run(plan *apply.Plan, what string) {
	p.Helper()
	if _, err := p.applier.Run(p.Context(), plan); err != nil {
		p.Fatalf("%s: %v\n%s", what, err, plan)
	}
}

// change makes the next commit, proves its plan and applies it.
func (p *prover) change(n int, sum *figures) {
	p.Helper()
	what := fmt.Sprintf("mesh %d, change %d: %s", p.seed, n, p.mesh.Change())
	began := time.Now()
	plan := p.plan(what)
	planned := time.Now()
	r, err := plans.Plan(p.Context(), plan, p.live(), plans.Options{Limit: p.states, Seed: p.seed, Converter: p.converter})
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
	sum.changes++
	sum.planning += planned.Sub(began)
	sum.proving += time.Since(planned)
	sum.add(r)
	if !r.OK() {
		p.Errorf("%s\n%s\n%s", what, r, waves(plan))
	}
	p.run(plan, what)
	if diff := cmp.Diff(specs(r.After), specs(p.live().Objects)); diff != "" {
		p.Errorf("%s\nwhat the proof takes to be there after the plan is not what is (-proof +cluster):\n%s", what, diff)
	}
}

// specs of the objects that routes are made of, by kind, namespace and name. What only the API server says of a Service is left out.
func specs(all []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for _, u := range all {
		group := u.GroupVersionKind().Group
		switch {
		case group == "" && u.GetKind() == "Service":
			var ports []string
			list, _, _ := unstructured.NestedSlice(u.Object, "spec", "ports")
			for _, port := range list {
				port, _ := port.(map[string]any)
				ports = append(ports, fmt.Sprint(port["name"], port["port"]))
			}
			out["Service "+u.GetNamespace()+"/"+u.GetName()] = ports
		case group == "networking.istio.io":
			out[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u.Object["spec"]
		}
	}
	return out
}

// live is what lives in the namespaces of the mesh.
func (p *prover) live() *world.Cluster {
	p.Helper()
	s, err := p.applier.Surroundings(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	ours := slices.DeleteFunc(slices.Clone(s.Objects), func(u *unstructured.Unstructured) bool {
		return !strings.HasPrefix(u.GetNamespace(), p.prefix+"-")
	})
	return &world.Cluster{Objects: ours, MetadataOnly: s.MetadataOnly, Unread: s.Unread}
}

// waves of a plan, with their gates and each write.
func waves(plan *apply.Plan) string {
	var b strings.Builder
	for _, w := range plan.Waves {
		fmt.Fprintf(&b, "%s:\n", w.Name)
		for _, s := range w.Steps {
			if s.Action == apply.Unchanged {
				continue
			}
			fmt.Fprintf(&b, "  %s %s %s\n", s.Action, s.ID, s.Reason)
			for _, d := range s.Diff {
				fmt.Fprintf(&b, "      %s\n", d)
			}
		}
		if w.Gate != "" {
			fmt.Fprintf(&b, "  (gate: %s)\n", w.Gate)
		}
	}
	for _, note := range plan.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
}
