package render_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"
)

// TestSchemaIsCurrent: what kustomize is told of AppConfiguration is what its CustomResourceDefinition says. With -update it writes it.
func TestSchemaIsCurrent(t *testing.T) {
	text, err := os.ReadFile("app/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := definitions(text)
	if err != nil {
		t.Fatal(err)
	}
	const name = "schema/appconfiguration.json"
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("go generate ./render writes it anew: -want +got:\n%s", diff)
	}
}

// definitions makes an OpenAPI document for kustomize from a CustomResourceDefinition, with nothing in it but the lists that have keys, and what leads
// to them.
func definitions(crd []byte) ([]byte, error) {
	var d struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal(crd, &d); err != nil {
		return nil, err
	}
	all := map[string]any{}
	for _, v := range d.Spec.Versions {
		s := merged(v.Schema.OpenAPIV3Schema)
		if s == nil {
			s = map[string]any{"type": "object"}
		}
		s["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": d.Spec.Group, "version": v.Name, "kind": d.Spec.Names.Kind}}
		all[strings.Join([]string{d.Spec.Group, v.Name, d.Spec.Names.Kind}, ".")] = s
	}
	text, err := json.MarshalIndent(map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": d.Spec.Names.Kind, "version": "v0"}, "paths": map[string]any{}, "definitions": all,
	}, "", "  ")
	return append(text, '\n'), err
}

// TestDefinitions: lists with keys are found at any depth, in lists and in mappings, and nothing else is kept.
func TestDefinitions(t *testing.T) {
	got, err := definitions([]byte(`spec:
  group: example.com
  names: {kind: Shelf}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          kind: {type: string}
          spec:
            type: object
            properties:
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              byRoom:
                type: object
                additionalProperties:
                  type: object
                  properties:
                    books:
                      description: all of them
                      type: array
                      x-kubernetes-list-type: map
                      x-kubernetes-list-map-keys: [name]
                      items:
                        type: object
                        properties:
                          name: {type: string, maxLength: 9}
                          pages: {type: array, items: {type: object}, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [number, side]}
`))
	if err != nil {
		t.Fatal(err)
	}
	keyed := func(keys ...any) map[string]any {
		return map[string]any{
			"type": "array", "items": map[string]any{"type": "object"}, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
			"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": keys[0],
		}
	}
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "properties": properties}
	}
	books := keyed("name")
	books["items"] = object(map[string]any{"pages": keyed("number", "side")})
	shelf := object(map[string]any{"spec": object(map[string]any{
		"byRoom": map[string]any{"type": "object", "additionalProperties": object(map[string]any{"books": books})},
	})})
	shelf["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": "example.com", "version": "v1", "kind": "Shelf"}}
	var all map[string]any
	if err := json.Unmarshal(got, &all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"example.com.v1.Shelf": shelf}, all["definitions"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestOrder: what a patch merges keeps the order in which it is written, at any depth, and nothing else is moved.
func TestOrder(t *testing.T) {
	const (
		list   = `{"x-kubernetes-list-map-keys": ["name"], "items": {"properties": {"to": {"x-kubernetes-list-map-keys": ["name"]}}}}`
		lists  = `{"properties": {"routes": ` + list + `, "rooms": {"additionalProperties": {"properties": {"routes": ` + list + `}}}, "plain": {}}}`
		routes = "[{name: a, to: [{name: p}, {name: q}]}, {name: b, to: [{name: p}, {name: q}]}, {name: c}]"
	)
	for name, tt := range map[string]struct{ base, merged, patch, want string }{
		"changed":           {routes, "[{name: c, i: 1}, {name: a}, {name: b}]", "[{name: c, i: 1}]", "[{name: a}, {name: b}, {name: c, i: 1}]"},
		"added":             {routes, "[{name: n}, {name: b}, {name: a}, {name: c}]", "[{name: n}, {name: b}]", "[{name: n}, {name: a}, {name: b}, {name: c}]"},
		"removed":           {routes, "[{name: c}, {name: b}]", "[{name: c}, {name: a, $patch: delete}]", "[{name: b}, {name: c}]"},
		"inner":             {routes, "[{name: b, to: [{name: q, w: 1}, {name: p}]}, {name: a}]", "[{name: b, to: [{name: q, w: 1}]}]", "[{name: a}, {name: b, to: [{name: p}, {name: q, w: 1}]}]"},
		"inner of another":  {routes, "[{name: b, to: [{name: q}, {name: p}]}, {name: a}]", "[{name: a}]", "[{name: a}, {name: b, to: [{name: q}, {name: p}]}]"},
		"not by this patch": {routes, "[{name: c}, {name: a}, {name: b}]", "", "[{name: c}, {name: a}, {name: b}]"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, around := range []string{"{routes: %s, plain: [b, a]}", "{rooms: {one: {routes: %s}}}"} {
				in := func(text string) string { return fmt.Sprintf(around, text) }
				read := func(text string) (v any) {
					if err := yaml.Unmarshal([]byte(in(text)), &v); err != nil {
						t.Fatal(err)
					}
					return v
				}
				v := read(tt.merged)
				patches := []string{"{plain: [b]}"}
				if tt.patch != "" {
					patches = append(patches, in(tt.patch))
				}
				got, err := render.Order(lists, v, in(tt.base), patches...)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(read(tt.want), got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if diff := cmp.Diff(read(tt.merged), v); diff != "" {
					t.Errorf("it writes into what it is given: -before +after:\n%s", diff)
				}
			}
		})
	}
}

// merged is a schema without what has no say in how lists are merged; nil when nothing is left.
func merged(s map[string]any) map[string]any {
	if s == nil {
		return nil
	}
	properties := map[string]any{}
	fields, _ := s["properties"].(map[string]any)
	for name, f := range fields {
		f, _ := f.(map[string]any)
		if inner := merged(f); inner != nil {
			properties[name] = inner
		}
	}
	out := map[string]any{}
	if typ, ok := s["type"]; ok {
		out["type"] = typ
	}
	items, _ := s["items"].(map[string]any)
	inner := merged(items)
	others, _ := s["additionalProperties"].(map[string]any)
	values := merged(others)
	keys, _ := s["x-kubernetes-list-map-keys"].([]any)
	switch {
	case s["x-kubernetes-list-type"] == "map" && len(keys) > 0:
		if inner == nil {
			inner = map[string]any{"type": "object"}
		}
		out["x-kubernetes-list-type"], out["x-kubernetes-list-map-keys"] = "map", keys
		out["x-kubernetes-patch-strategy"], out["x-kubernetes-patch-merge-key"] = "merge", keys[0]
	case inner == nil && values == nil && len(properties) == 0:
		return nil
	}
	if values != nil {
		out["additionalProperties"] = values
	}
	if inner != nil {
		out["items"] = inner
	}
	if len(properties) > 0 {
		out["properties"] = properties
	}
	return out
}

// application is an AppConfiguration and an overlay that patches it.
const (
	application = `apiVersion: mooring.dev/v1alpha1
kind: AppConfiguration
metadata: {name: reviews}
spec:
  envoyFilters:
  - {name: a, patch: {spec: {priority: 1}}}
  - {name: b, patch: {spec: {priority: 2}}}
  - {name: c, patch: {spec: {priority: 3}}}
`
	applicationPatch = `apiVersion: mooring.dev/v1alpha1
kind: AppConfiguration
metadata: {name: reviews}
spec:
  envoyFilters:
  - {name: b, patch: {spec: {priority: 20}}}
  - {name: c, $patch: delete}
  - {name: d, patch: {spec: {priority: 4}}}
`
)

// TestSchemaLeavesOthersAlone: with our schema, kustomize knows of every other kind what it knew.
func TestSchemaLeavesOthersAlone(t *testing.T) {
	text, err := os.ReadFile("schema/appconfiguration.json")
	if err != nil {
		t.Fatal(err)
	}
	var ours struct{ Definitions map[string]any }
	if err := json.Unmarshal(text, &ours); err != nil {
		t.Fatal(err)
	}
	if _, err := new(render.Renderer).Render(t.Context(), files("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", configMap), "."); err != nil {
		t.Fatal(err)
	}
	for name := range ours.Definitions {
		if !strings.HasPrefix(name, "mooring.dev.") {
			t.Errorf("the definition %s may be that of another kind", name)
		}
	}
	for _, kind := range []kyaml.TypeMeta{{APIVersion: "networking.istio.io/v1", Kind: "VirtualService"}, {APIVersion: "mooring.dev/v1alpha1", Kind: "Mooring"}} {
		if openapi.SchemaForResourceType(kind) != nil {
			t.Errorf("there is a schema for %v", kind)
		}
	}
	if s := openapi.SchemaForResourceType(kyaml.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}); s == nil {
		t.Error("there is no schema for a Deployment")
	} else if _, key := s.Lookup("spec", "template", "spec", "containers").PatchStrategyAndKey(); key != "name" {
		t.Errorf("containers are merged by %q", key)
	}
	if _, known := openapi.IsNamespaceScoped(kyaml.TypeMeta{APIVersion: "mooring.dev/v1alpha1", Kind: "AppConfiguration"}); known {
		t.Error("the schema says something about namespaces")
	}
}

// TestSchemaSideBySide patches an AppConfiguration in builds side by side, some of which replace kustomize's schema.
func TestSchemaSideBySide(t *testing.T) {
	plain := files("kustomization.yaml", "resources: [a.yaml]\npatches: [{path: p.yaml}]\n", "a.yaml", application, "p.yaml", applicationPatch)
	replaced := files("kustomization.yaml", "resources: [a.yaml]\npatches: [{path: p.yaml}]\nopenapi: {path: o.json}\n", "a.yaml", application, "p.yaml", applicationPatch,
		"o.json", `{"definitions": {}}`)
	defined := files("kustomization.yaml", "resources: [a.yaml]\npatches: [{path: p.yaml}]\nopenapi: {path: o.json}\n", "a.yaml", application, "p.yaml", applicationPatch,
		"o.json", `{"definitions": {"their.AppConfiguration": {"x-kubernetes-group-version-kind": [{"group": "mooring.dev", "version": "v1alpha1", "kind": "AppConfiguration"}]}}}`)
	names := func(repo fstest.MapFS) string {
		set, err := new(render.Renderer).Render(t.Context(), repo, ".")
		if err != nil {
			return err.Error()
		}
		list, _, err := unstructured.NestedSlice(set.Objects[0].Unstructured().Object, "spec", "envoyFilters")
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, e := range list {
			priority, _, _ := unstructured.NestedFieldNoCopy(e.(map[string]any), "patch", "spec", "priority")
			all = append(all, fmt.Sprint(e.(map[string]any)["name"], priority))
		}
		return strings.Join(all, " ")
	}
	var group sync.WaitGroup
	for i := range 24 {
		group.Go(func() {
			repo, want := plain, "a1 b20 d4"
			switch i % 4 {
			case 1:
				repo = replaced
			case 3:
				repo, want = defined, "b20 c<nil> d4" // their schema says nothing of keys, so the list is replaced
			}
			got := strings.Fields(names(repo))
			slices.Sort(got)
			if s := strings.Join(got, " "); s != want {
				t.Errorf("build %d: got %s, want %s", i, s, want)
			}
		})
	}
	group.Wait()
}
