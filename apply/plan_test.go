package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

const twoMaps = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: $NS}
data:
  k: one
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: $NS}
data:
  k: two
`

const oneMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: $NS}
data:
  k: one
`

func TestCreateUpdateDelete(t *testing.T) {
	f := newFixture(t)
	p, r := f.sync(twoMaps)
	f.want(p, "create ConfigMap/a", "create ConfigMap/b")
	if got := r.Counts(); got.Create != 2 || r.Objects != 2 {
		t.Fatalf("got %v and %d objects, want 2 created and 2", got, r.Objects)
	}
	f.settled(twoMaps)

	changed := strings.Replace(twoMaps, "k: two", "k: three", 1)
	p, _ = f.sync(changed)
	f.want(p, "update ConfigMap/b")
	if diff := cmp.Diff([]string{`/data/k: "two" → "three"`}, f.diffs(p)); diff != "" {
		t.Fatal(diff)
	}
	if got, _, _ := unstructured.NestedString(f.configMap("b").Object, "data", "k"); got != "three" {
		t.Fatalf("data.k is %q, want three", got)
	}

	p, r = f.sync(oneMap)
	f.want(p, "delete ConfigMap/b")
	f.gone("", "v1", "configmaps", "b")
	if r.Objects != 1 {
		t.Fatalf("%d objects, want 1", r.Objects)
	}
	f.settled(oneMap)
}

// The two updates lie within one second, so all times in the metadata are equal.
func TestUpdateWithinASecond(t *testing.T) {
	f := newFixture(t)
	for _, value := range []string{"one", "two", "three", "four"} {
		f.sync(strings.Replace(oneMap, "k: one", "k: "+value, 1))
		if got, _, _ := unstructured.NestedString(f.configMap("a").Object, "data", "k"); got != value {
			t.Fatalf("data.k is %q, want %q", got, value)
		}
	}
}

func TestRecordKinds(t *testing.T) {
	f := newFixture(t)
	kinds := func(all ...string) []schema.GroupKind {
		var found []schema.GroupKind
		for _, kind := range all {
			found = append(found, schema.GroupKind{Kind: kind})
		}
		return found
	}
	f.sync(oneMap)
	f.sync(oneMap)
	withSecret := oneMap + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\n"
	f.sync(withSecret)
	f.sync(withSecret)
	f.sync(oneMap)
	f.sync(oneMap)
	want := [][]schema.GroupKind{kinds("ConfigMap"), kinds("ConfigMap", "Secret"), kinds("ConfigMap")}
	if diff := cmp.Diff(want, f.recorded); diff != "" {
		t.Fatalf("recorded (-want +got):\n%s", diff)
	}
}

// The value was computed apart, after the words of KEP-3659.
func TestApplySetID(t *testing.T) {
	const want = "applyset-vW_8fd9hmNpz1VsDZLRs8uQpLS-evnOajX4drlNZxkA-v1"
	if got := apply.ApplySetID("prod", "mesh", "Mooring", "mooring.dev"); got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}
