package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a client-side apply once set and Git does not say goes, when Mooring takes over what kubectl made.
func TestTakeOverFromKubectl(t *testing.T) {
	for _, test := range []struct {
		name string
		make func(f *fixture, file string)
	}{
		{"apply", func(f *fixture, file string) { f.kubectl("apply", "-f", file) }},
		{"apply --server-side", func(f *fixture, file string) { f.kubectl("apply", "--server-side", "-f", file) }},
		{"create", func(f *fixture, file string) { f.kubectl("create", "-f", file) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			f.istio()
			test.make(f, f.write(mesh+"  extra: by hand\n"))
			f.kubectl("patch", "virtualservice", "reviews", "--type=merge", "--field-manager=kubectl-edit", "-p", `{"spec":{"exportTo":["."]}}`)
			p, r := f.sync(mesh)
			f.want(p, "update ConfigMap/a", "update DestinationRule/reviews", "update VirtualService/reviews")
			if r.Objects != 3 {
				t.Fatalf("%d objects, want 3", r.Objects)
			}
			f.settled(mesh)
			data, _, _ := unstructured.NestedStringMap(f.configMap("a").Object, "data")
			if diff := cmp.Diff(map[string]string{"k": "one"}, data); diff != "" {
				t.Errorf("data:\n%s", diff)
			}
			service := f.get("networking.istio.io", "v1", "virtualservices", "reviews")
			if _, found, _ := unstructured.NestedFieldNoCopy(service.Object, "spec", "exportTo"); found {
				t.Error("exportTo is still there")
			}
			for _, entry := range service.GetManagedFields() {
				if entry.Manager != "mooring" {
					t.Errorf("%s still owns fields", entry.Manager)
				}
			}
			// Taken over means that Git now decides: what it drops goes.
			f.sync(strings.TrimSuffix(mesh, "data:\n  k: one\n"))
			if _, found, _ := unstructured.NestedFieldNoCopy(f.configMap("a").Object, "data"); found {
				t.Error("data is still there")
			}
		})
	}
}

// What a user tells Mooring, and what holds back a deletion, is no drift, whatever command wrote it.
func TestTakeOverLeaves(t *testing.T) {
	f := newFixture(t)
	f.sync(oneMap)
	f.edit("configmap", "a", `{"metadata":{"annotations":{"mooring.dev/prune":"disabled","note":"by hand"},"finalizers":["test.mooring.dev/hold"]},"data":{"k":"drift"}}`)
	p, _ := f.sync(oneMap)
	want := []string{
		`/data/k: "drift" → "one" (set by kubectl-edit)`,
		`/metadata/annotations/note: "by hand" → (none) (set by kubectl-edit)`,
	}
	if diff := cmp.Diff(want, f.diffs(p)); diff != "" {
		t.Fatalf("diff (-want +got):\n%s", diff)
	}
	f.settled(oneMap)
	live := f.configMap("a")
	if diff := cmp.Diff(map[string]string{"mooring.dev/prune": "disabled"}, live.GetAnnotations()); diff != "" {
		t.Errorf("annotations:\n%s", diff)
	}
	if !slices.Equal(live.GetFinalizers(), []string{"test.mooring.dev/hold"}) {
		t.Errorf("finalizers: %v", live.GetFinalizers())
	}
	f.kubectl("patch", "configmap", "a", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
}

// kubectl scale, rollout, annotate and label are about what Git does not speak of.
func TestNotTakenOver(t *testing.T) {
	f := newFixture(t)
	f.sync(deployment)
	f.kubectl("scale", "deployment", "d", "--replicas=3")
	f.kubectl("rollout", "restart", "deployment", "d")
	f.kubectl("annotate", "deployment", "d", "note=x")
	f.kubectl("label", "deployment", "d", "note=x")
	f.settled(deployment)
	if got := f.kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.replicas} {.metadata.labels.note} {.metadata.annotations.note}"); got != "3 x x" {
		t.Fatalf("got %q", got)
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: $NS}
spec:
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      containers:
      - {name: c, image: example.com/c:1, ports: [{containerPort: 53}, {containerPort: 53, protocol: UDP}]}
`

// The server's defaults belong to who created the object. To take them over removes nothing, and the plan does not say so.
func TestTakeOverOfDefaults(t *testing.T) {
	f := newFixture(t)
	f.kubectl("create", "-f", f.write(deployment))
	p, _ := f.sync(deployment)
	want := []string{`/metadata/labels: (none) → {"applyset.kubernetes.io/part-of":"` + f.unit.ID + `"}`}
	if diff := cmp.Diff(want, f.diffs(p)); diff != "" {
		t.Fatalf("diff (-want +got):\n%s", diff)
	}
	f.settled(deployment)
	f.edit("deployment", "d", `{"spec":{"revisionHistoryLimit":3,"minReadySeconds":5}}`)
	p, _ = f.sync(deployment)
	want = []string{
		`/spec/minReadySeconds: 5 → (none) (set by kubectl-edit)`,
		`/spec/revisionHistoryLimit: 3 → 10 (set by kubectl-edit)`,
	}
	if diff := cmp.Diff(want, f.diffs(p)); diff != "" {
		t.Fatalf("diff (-want +got):\n%s", diff)
	}
	f.settled(deployment)
	if got := f.kubectl("get", "deployment", "d", "-o", "jsonpath={.spec.revisionHistoryLimit} {.spec.minReadySeconds}"); got != "10 " {
		t.Fatalf("got %q", got)
	}
}
