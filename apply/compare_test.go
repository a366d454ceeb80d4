package apply_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
)

func setOf(t *testing.T, documents ...string) *render.Set {
	t.Helper()
	set := &render.Set{}
	for _, d := range documents {
		o := map[string]any{}
		if err := yaml.Unmarshal([]byte(d), &o); err != nil {
			t.Fatal(err)
		}
		set.Objects = append(set.Objects, render.Object{Content: render.ContentOf(&unstructured.Unstructured{Object: o})})
	}
	return set
}

func TestCompare(t *testing.T) {
	const (
		secret = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}, stringData: {password: %s}}"
		route  = "{apiVersion: networking.istio.io/%s, kind: VirtualService, metadata: {name: cart, namespace: shop}, spec: {hosts: [%s]}}"
		same   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: same, namespace: shop}, data: {a: b}}"
	)
	fill := func(text string, values ...string) string {
		for _, v := range values {
			text = strings.Replace(text, "%s", v, 1)
		}
		return text
	}
	before := setOf(t, fill(secret, "hunter2"), fill(route, "v1beta1", "cart"), same, "{apiVersion: v1, kind: ConfigMap, metadata: {name: old, namespace: shop}}")
	after := setOf(t, fill(secret, "swordfish"), fill(route, "v1", "basket"), same, "{apiVersion: v1, kind: ConfigMap, metadata: {name: new, namespace: shop}}")
	was, is := before.Digest(), after.Digest()
	want := `differences:
  + ConfigMap/shop/new
  - ConfigMap/shop/old
  ~ Secret/shop/s
      /stringData/password: "*** (before)" → "*** (after)"
  ~ VirtualService/shop/cart
      /apiVersion: "networking.istio.io/v1beta1" → "networking.istio.io/v1"
      /spec/hosts/0: "cart" → "basket"
1 to create, 2 to update, 1 to delete, 1 unchanged
`
	if diff := cmp.Diff(want, apply.Compare(before, after).String()); diff != "" {
		t.Errorf("comparison (-want +got):\n%s", diff)
	}
	if before.Digest() != was || after.Digest() != is {
		t.Error("a set was changed")
	}
	if plan := apply.Compare(before, before); plan.Changes() {
		t.Errorf("a set differs from itself:\n%s", plan)
	}
	if got := apply.Compare(setOf(t), setOf(t)).String(); got != "no objects\n" {
		t.Errorf("nothing against nothing: %q", got)
	}
}
