package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/test/kube"
)

// All faults of a set at once, each with object, file and line, and what to do about it.
func TestFaultsAreReportedTogether(t *testing.T) {
	f := newFixture(t)
	f.istio()
	err := f.refuse(`
apiVersion: v1
kind: ConfigMap
metadata: {name: homeless}
---
apiVersion: networking.istio.io/v1
kind: EnvoyFilter
metadata: {name: e, namespace: $NS}
---
apiVersion: apps/v1
kind: VirtualService
metadata: {name: v, namespace: $NS}
---
apiVersion: nowhere.example.com/v1
kind: Nothing
metadata: {name: n, namespace: $NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {generateName: x-, namespace: $NS}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: typo, namespace: $NS}
spec: {hosts: [a], https: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: there, namespace: $NS-not}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fine, namespace: $NS}
`)
	want := map[string]string{
		"homeless": "metadata.namespace is missing",
		"e":        "networking.istio.io/v1 does not serve EnvoyFilter; write apiVersion: networking.istio.io/v1alpha3",
		"v":        "serves no VirtualService in apps/v1, but in networking.istio.io/v1",
		"n":        "CustomResourceDefinition",
		"":         "metadata.name is missing",
		"typo":     "https",
		"there":    f.ns + "-not",
	}
	faults := apply.ObjectErrors(err)
	if len(faults) != len(want) {
		t.Errorf("%d faults, want %d:\n%v", len(faults), len(want), err)
	}
	for _, fault := range faults {
		words, ok := want[fault.ID.Name]
		if !ok || !strings.Contains(fault.Error(), words) || !strings.Contains(fault.Error(), "git.yaml:") || fault.Origin.Line == 0 {
			t.Errorf("%v (want %q)", fault, words)
		}
	}
}

func TestTheSameObjectTwice(t *testing.T) {
	f := newFixture(t)
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: $NS, namespace: NAMESPACE}\nrules: []\n"
	err := f.refuse(strings.Replace(role, "NAMESPACE", "one", 1) + "---\n" + strings.Replace(role, "NAMESPACE", "two", 1))
	if !strings.Contains(err.Error(), "written twice, first in git.yaml:1") {
		t.Fatal(err)
	}
}

// One object among many fails: the result is complete, the others are applied, and nothing is pruned.
func TestOneOfManyFails(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.denyUpdates("a")
	f.allow()
	var many strings.Builder
	many.WriteString(strings.Replace(oneMap, "one", "changed", 1))
	const others = 40
	for i := range others {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%d, namespace: $NS}\n", i)
	}
	p := f.plan(many.String())
	f.denyUpdates("a")
	r, err := f.applier.Run(t.Context(), p)
	faults := apply.ObjectErrors(err)
	if len(faults) != 1 || faults[0].ID.Name != "a" || !strings.Contains(err.Error(), "the test denies it") {
		t.Fatalf("faults: %v", err)
	}
	if got := r.Counts(); got.Create != others || got.Changes() != others {
		t.Errorf("done: %s", got)
	}
	if len(r.Failed()) != 1 || len(r.NotReached()) != 1 || len(r.Steps) != others+2 || r.Objects != others+2 {
		t.Errorf("%d failed, %d not reached, of %d; %d objects", len(r.Failed()), len(r.NotReached()), len(r.Steps), r.Objects)
	}
	f.configMap("b")
	f.allow()
	f.sync(many.String())
	f.settled(many.String())
	f.gone("", "v1", "configmaps", "b")
}

// The context ends in the middle: the result says what was done.
func TestCancelledRun(t *testing.T) {
	cluster := kube.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	wire := &recorder{cut: func(int) bool { cancel(); return false }}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	all := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: first, namespace: $NS}\n---\n" + twoMaps
	r, err := f.applier.Run(ctx, f.plan(all))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("want the end of the context, got %v", err)
	}
	if len(r.Steps) != 3 || len(r.NotReached()) != 2 {
		t.Fatalf("steps: %+v", r.Steps)
	}
	f.sync(all)
	f.settled(all)
}

// Two Moorings want one object: the first has it, the second is refused by name, and nothing flips. Once the first lets it go the second has it.
func TestTwoUnitsClaimOneObject(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	first := f.unit
	second := apply.Unit{ID: apply.ApplySetID("second", f.ns, "Mooring", "mooring.dev"), Name: f.ns + "/second"}
	f.unit = second
	err := f.refuse(oneMap)
	if !strings.Contains(err.Error(), "belongs to Mooring "+first.Name) {
		t.Fatal(err)
	}
	f.unit = first
	f.settled(twoMaps)
	p, _ := f.sync(twoMaps[len(oneMap)+4:])
	f.want(p, "delete ConfigMap/a")
	f.unit = second
	f.sync(oneMap)
	f.unit = first
	if err := f.refuse(twoMaps); !strings.Contains(err.Error(), "belongs to Mooring "+second.Name) {
		t.Fatal(err)
	}
}

// Both planned before either ran: the second run finds the object there, and takes nothing away.
func TestTwoUnitsCreateAtOnce(t *testing.T) {
	f := newFixture(t)
	first := f.plan(oneMap)
	second := f.unit
	second.ID, second.Name = apply.ApplySetID("second", f.ns, "Mooring", "mooring.dev"), f.ns+"/second"
	p, err := f.applier.Plan(t.Context(), second, f.set(oneMap), f.policy)
	if err != nil {
		t.Fatal(err)
	}
	f.run(first)
	if _, err := f.applier.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "somebody else created it") {
		t.Fatalf("want an error, got %v", err)
	}
	if got := f.configMap("a").GetLabels()[apply.PartOfLabel]; got != f.unit.ID {
		t.Fatalf("the label flipped to %s", got)
	}
}

// An object that changed between plan and run into one that is not ours to delete is not deleted.
func TestDeleteLooksAgain(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"kept by an annotation": func(f *fixture) { f.kubectl("annotate", "configmap", "b", "mooring.dev/prune=disabled") },
		"another's by now":      func(f *fixture) { f.kubectl("label", "--overwrite", "configmap", "b", apply.PartOfLabel+"=another") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sync(twoMaps)
			p := f.plan(oneMap)
			change(f)
			if _, err := f.applier.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "changed since it was planned") {
				t.Fatalf("want an error, got %v", err)
			}
			f.configMap("b")
		})
	}
	t.Run("moved, but still ours", func(t *testing.T) {
		f := newFixture(t)
		f.sync(twoMaps)
		p := f.plan(oneMap)
		f.kubectl("annotate", "configmap", "b", "note=x")
		f.run(p)
		f.gone("", "v1", "configmaps", "b")
	})
	t.Run("another object of that name", func(t *testing.T) {
		f := newFixture(t)
		f.sync(twoMaps)
		p := f.plan(oneMap)
		f.kubectl("delete", "configmap", "b")
		f.kubectl("create", "configmap", "b")
		f.run(p)
		f.configMap("b")
	})
}

// An exported object carries what only a server writes; an apply must not be bound to it.
func TestExportedObject(t *testing.T) {
	f := newFixture(t)
	f.sync(oneMap)
	exported := f.kubectl("get", "configmap", "a", "-o", "yaml", "--show-managed-fields")
	f.kubectl("annotate", "configmap", "a", "moves=x")
	p, _ := f.sync(exported)
	f.want(p)
	f.settled(exported)
}

// What is being deleted is created again once it is gone, and the unit is not well until then.
func TestTerminating(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.edit("configmap", "b", `{"metadata":{"finalizers":["test.mooring.dev/hold"]}}`)
	f.kubectl("delete", "configmap", "b", "--wait=false")
	p := f.plan(twoMaps)
	f.want(p, "create ConfigMap/b")
	if sick := p.Unhealthy(); len(sick) != 1 || sick[0].Status != "Terminating" {
		t.Errorf("unhealthy: %v", sick)
	}
	if _, err := f.applier.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "is being deleted") {
		t.Fatalf("want an error, got %v", err)
	}
	p = f.plan(oneMap)
	f.want(p, "skip ConfigMap/b")
	f.run(p)
	f.kubectl("patch", "configmap", "b", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	f.gone("", "v1", "configmaps", "b")
	p, _ = f.sync(twoMaps)
	f.want(p, "create ConfigMap/b")
}

// A plan takes no longer than its context.
func TestPlanEndsWithItsContext(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := f.applier.Plan(ctx, f.unit, &render.Set{}, f.policy); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

// Whoever may not do everything may bind only a role whose rules they hold, and the API server has to find the role for that. A role and its binding in
// one commit work all the same.
func TestRoleAndBindingTogether(t *testing.T) {
	cluster := kube.Start(t)
	f := newFixture(t)
	f.kubectl("create", "serviceaccount", "deployer")
	f.kubectl("create", "clusterrole", f.ns, "--verb=get,list,patch,create,delete", "--resource=configmaps,roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io")
	f.kubectl("create", "clusterrolebinding", f.ns, "--clusterrole="+f.ns, "--serviceaccount="+f.ns+":deployer")
	t.Cleanup(func() { f.cleanup("clusterrole", "clusterrolebinding") })
	f.applier = f.newApplier(cluster.ConfigFor("system:serviceaccount:" + f.ns + ":deployer"))
	const both = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads, namespace: $NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}
subjects: [{kind: ServiceAccount, name: default, namespace: $NS}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reads, namespace: $NS}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [VERB]}]
`
	// Without the role it stays a fault.
	binding, _, _ := strings.Cut(both, "---\n")
	if err := f.refuse(binding); !strings.Contains(err.Error(), "not found") {
		t.Fatal(err)
	}
	p, _ := f.sync(strings.Replace(both, "VERB", "get", 1))
	f.want(p, "create Role/reads", "create RoleBinding/reads")
	if !strings.Contains(p.String(), "not tried: Role/"+f.ns+"/reads is created first") {
		t.Errorf("the plan does not say what was not tried:\n%s", p)
	}
	f.settled(strings.Replace(both, "VERB", "get", 1))
	// What the identity does not hold itself stays forbidden.
	if err := f.refuse(strings.Replace(both, "VERB", "deletecollection", 1)); !strings.Contains(err.Error(), "forbidden") {
		t.Fatal(err)
	}
}

// A panic of a library in one object's goroutine is that object's error: it must not end the agent.
func TestPanicIsTheObjectsError(t *testing.T) {
	cluster := kube.Start(t)
	cfg := cluster.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return tripper{next} })
	f := newFixtureAs(t, cluster, cfg)
	const good, bad = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: good, namespace: $NS}\n",
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: trips, namespace: $NS}\n"
	err := f.refuse(good + bad)
	panicked, ok := errors.AsType[*apply.Panic](err)
	if !ok || !strings.Contains(err.Error(), "ConfigMap/"+f.ns+"/trips") || len(panicked.Stack) == 0 {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(err.Error(), "goroutine") {
		t.Errorf("the stack is in the message: %v", err)
	}
	f.sync(good)
}

// tripper panics over an object.
type tripper struct{ next http.RoundTripper }

func (r tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, "/trips") {
		panic("assignment to entry in nil map")
	}
	return r.next.RoundTrip(req)
}
