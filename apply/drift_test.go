package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDrift(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.sync(mesh)
	for _, test := range []struct {
		name, kind, manager, patch string

		want []string
	}{
		{
			name: "a value in an atomic list", kind: "virtualservice", manager: "kubectl-edit",
			patch: `{"spec":{"http":[{"route":[{"destination":{"host":"reviews","subset":"v1"},"weight":50},{"destination":{"host":"reviews","subset":"v2"},"weight":50}]}]}}`,
			want: []string{
				`/spec/http/0/route/0/weight: 50 → 90 (set by kubectl-edit)`,
				`/spec/http/0/route/1/weight: 50 → 10 (set by kubectl-edit)`,
			},
		},
		{
			name: "an item of a named list", kind: "destinationrule", manager: "kubectl-patch",
			patch: `{"spec":{"subsets":[{"name":"v2","labels":{"version":"v2"}}]}}`,
			want:  []string{`/spec/subsets/0: (none) → {"labels":{"version":"v1"},"name":"v1"} (set by kubectl-patch)`},
		},
		{
			name: "a field that Git does not say, by hand", kind: "virtualservice", manager: "kubectl-edit",
			patch: `{"spec":{"exportTo":["."]}}`,
			want:  []string{`/spec/exportTo: ["."] → (none) (set by kubectl-edit)`},
		},
		{
			name: "a value changed by a controller", kind: "configmap", manager: "some-controller",
			patch: `{"data":{"k":"drift"}}`,
			want:  []string{`/data/k: "drift" → "one" (set by some-controller)`},
		},
		{
			name: "a field removed", kind: "configmap", manager: "kubectl-edit",
			patch: `{"data":null}`,
			want:  []string{`/data: (none) → {"k":"one"}`},
		},
		{
			name: "our label removed", kind: "configmap", manager: "kubectl-label",
			patch: `{"metadata":{"labels":null}}`,
			want:  []string{`/metadata/labels: (none) → {"applyset.kubernetes.io/part-of":"` + f.unit.ID + `"}`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := *f
			f.T = t
			name := "reviews"
			if test.kind == "configmap" {
				name = "a"
			}
			uid := f.kubectl("get", test.kind, name, "-o", "jsonpath={.metadata.uid}")
			f.kubectl("patch", test.kind, name, "--type=merge", "--field-manager="+test.manager, "-p", test.patch)
			p, _ := f.sync(mesh)
			if got := p.Counts(); got.Update != 1 || got.Changes() != 1 {
				t.Fatalf("want one update, got %s", p)
			}
			if diff := cmp.Diff(test.want, f.diffs(p)); diff != "" {
				t.Fatalf("diff (-want +got):\n%s", diff)
			}
			f.settled(mesh)
			if now := f.kubectl("get", test.kind, name, "-o", "jsonpath={.metadata.uid}"); now != uid {
				t.Fatalf("the object is another one")
			}
		})
	}
}

func TestDeletedByHandIsCreatedAgain(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.kubectl("delete", "configmap", "b")
	p, _ := f.sync(twoMaps)
	f.want(p, "create ConfigMap/b")
	f.settled(twoMaps)
}

// A field that nobody but a controller owns is the controller's.
func TestControllersFieldsStay(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.sync(mesh)
	f.kubectl("patch", "virtualservice", "reviews", "--type=merge", "--field-manager=flagger", "-p", `{"metadata":{"annotations":{"flagger":"x"}},"spec":{"exportTo":["."]}}`)
	f.settled(mesh)
	got, _, _ := unstructured.NestedStringSlice(f.get("networking.istio.io", "v1", "virtualservices", "reviews").Object, "spec", "exportTo")
	if diff := cmp.Diff([]string{"."}, got); diff != "" {
		t.Fatal(diff)
	}
}

const ignoring = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: $NS, annotations: {mooring.dev/drift: ignore}}
data:
  k: one
`

func TestDriftIgnored(t *testing.T) {
	data := func(f *fixture) string {
		f.Helper()
		got, _, _ := unstructured.NestedString(f.configMap("a").Object, "data", "k")
		return got
	}
	t.Run("in Git", func(t *testing.T) {
		f := newFixture(t)
		f.sync(ignoring)
		f.edit("configmap", "a", `{"data":{"k":"mine","more":"x"}}`)
		f.settled(ignoring)
		// Nor after a restart, which remembers nothing.
		f.applier = f.newApplier(f.cluster.Config())
		f.settled(ignoring)
		if got := data(f); got != "mine" {
			t.Fatalf("data.k is %q, want mine", got)
		}
		changed := ignoring + "  other: two\n"
		p, _ := f.sync(changed)
		f.want(p, "update ConfigMap/a")
		f.settled(changed)
		if got := data(f); got != "one" {
			t.Fatalf("after a commit data.k is %q, want one", got)
		}
	})
	t.Run("on the live object", func(t *testing.T) {
		f := newFixture(t)
		f.sync(oneMap)
		f.kubectl("annotate", "configmap", "a", "mooring.dev/drift=ignore")
		f.settled(oneMap)
		f.edit("configmap", "a", `{"data":{"k":"mine"}}`)
		f.settled(oneMap)
		if got := data(f); got != "mine" {
			t.Fatalf("data.k is %q, want mine", got)
		}
		changed := oneMap + "  other: two\n"
		p, _ := f.sync(changed)
		f.want(p, "update ConfigMap/a")
		f.edit("configmap", "a", `{"data":{"k":"mine"}}`)
		f.applier = f.newApplier(f.cluster.Config())
		f.settled(changed)
		f.kubectl("annotate", "configmap", "a", "mooring.dev/drift-")
		p, _ = f.sync(changed)
		f.want(p, "update ConfigMap/a")
		f.settled(changed)
	})
}

func TestReconcileDisabled(t *testing.T) {
	f := newFixture(t)
	f.sync(oneMap)
	f.kubectl("annotate", "configmap", "a", "mooring.dev/reconcile=disabled")
	f.edit("configmap", "a", `{"data":{"k":"mine"}}`)
	p, _ := f.sync(oneMap)
	f.want(p, "skip ConfigMap/a")
	// Dropped from Git it is still not touched, and still ours.
	p, r := f.sync(twoMaps[len(oneMap)+4:])
	f.want(p, "create ConfigMap/b", "skip ConfigMap/a")
	if r.Objects != 2 {
		t.Fatalf("%d objects, want 2", r.Objects)
	}
	f.kubectl("annotate", "configmap", "a", "mooring.dev/reconcile-")
	p, _ = f.sync(twoMaps)
	f.want(p, "update ConfigMap/a")
	f.settled(twoMaps)
}
