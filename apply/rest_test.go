package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

const mesh = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: $NS}
spec:
  hosts: [reviews]
  http:
  - route:
    - {destination: {host: reviews, subset: v1}, weight: 90}
    - {destination: {host: reviews, subset: v2}, weight: 10}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: $NS}
spec:
  host: reviews
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: $NS}
data:
  k: one
`

// Rest costs nothing: one LIST of metadata a kind, and that is all, by the API server's own count and on the wire.
func TestUnchangedPassOnlyLists(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	f.istio()
	f.sync(mesh)
	f.sync(mesh)
	recorded := len(f.recorded)

	// The metrics do not say who asked. The control plane's own controllers look after the namespaces of earlier tests and after new kinds; so
	// the server's count is exact in one attempt of some, and ours in each.
	const passes = 3
	exact := []string{
		"GET /api/v1/configmaps (labelled)",
		"GET /apis/networking.istio.io/v1/destinationrules (labelled)",
		"GET /apis/networking.istio.io/v1/virtualservices (labelled)",
	}
	f.eventually("the API server counts nothing but our lists", func() bool {
		wire.take()
		before := cluster.Requests(t)
		for range passes {
			p, _ := f.sync(mesh)
			f.want(p)
		}
		counted := cluster.Requests(t).Since(before).Only(func(r kube.Request) bool {
			return slices.Contains([]string{"virtualservices", "destinationrules", "configmaps"}, r.Resource) && r.Verb != "WATCH"
		})
		want := slices.Sorted(slices.Values(slices.Repeat(exact, passes)))
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(wire.take()))); diff != "" {
			t.Fatalf("requests (-want +got):\n%s", diff)
		}
		only := onlyLists(counted, len(exact)*passes)
		if !only {
			t.Logf("the API server counts:\n%s", counted)
		}
		return only
	})
	if len(f.recorded) != recorded {
		t.Errorf("Record was called: %v", f.recorded[recorded:])
	}
}

// A commit that a guard holds is planned at every pass, and then what is in force is. The one must not cost the other's memory.
func TestRefusedPlanForgetsNothing(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	f.istio()
	f.sync(mesh)
	f.sync(mesh)
	wire.take()
	if p := f.plan(""); p.Guard == nil {
		t.Fatalf("an empty set is not guarded:\n%s", p)
	}
	for _, request := range wire.take() {
		// The order of the deletes wants to know what goes and which routes lead there; nothing that stays is looked at.
		if !strings.Contains(request, "(labelled)") && !strings.HasSuffix(request, "/virtualservices") && !strings.HasSuffix(request, "/destinationrules/reviews") {
			t.Errorf("%s", request)
		}
	}
	f.settled(mesh)
	for _, request := range wire.take() {
		if !strings.Contains(request, "(labelled)") {
			t.Errorf("%s", request)
		}
	}
}

func onlyLists(counted kube.Requests, n int) bool {
	lists := counted.Only(func(r kube.Request) bool { return r.Verb == "LIST" })
	return counted.Total() == n && lists.Total() == n
}

// After a restart nothing is remembered: each object is tried once, and then rest costs nothing again.
func TestRestartLooksOnce(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	f.istio()
	f.sync(mesh)
	f.applier = f.newApplier(wire.config(cluster.Config()))
	f.settled(mesh)
	if writes := wire.n; writes != 3 {
		t.Fatalf("%d writes, want the 3 of the first pass", writes)
	}
	wire.take()
	f.settled(mesh)
	for _, request := range wire.take() {
		if !strings.Contains(request, "(labelled)") {
			t.Errorf("%s", request)
		}
	}
	f.applier.Forget(f.unit.ID)
	f.settled(mesh)
	tried := slices.DeleteFunc(wire.take(), func(r string) bool { return !strings.HasSuffix(r, "(dry run)") })
	if len(tried) != 3 {
		t.Errorf("after Forget %d objects were tried, want 3: %v", len(tried), tried)
	}
}

// A pass that finds all as it was looks at no object: those of Git may rest, and go on resting.
func TestUnchangedPassLetsObjectsRest(t *testing.T) {
	f := newFixture(t)
	f.istio()
	set := f.set(mesh)
	pass := func() *apply.Plan {
		p, err := f.applier.Plan(t.Context(), f.unit, set, apply.Policy{Drift: apply.DriftPolicy{InForce: set}})
		if err != nil {
			t.Fatal(err)
		}
		f.run(p)
		return p
	}
	for range 2 {
		pass()
	}
	for range 2 {
		set.Rest(false)
		f.applier.Rest() // what is remembered is the same afterwards
		f.want(pass())
	}
	for _, o := range set.Objects {
		if !o.Resting() {
			t.Errorf("%s was looked at", o.ID())
		}
	}
}
