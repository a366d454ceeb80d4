package check_test

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"istio.io/istio/manifests"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/collections"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// istioCRDs reads the definitions that Istio ships.
func istioCRDs(t *testing.T) []apiextensions.CustomResourceDefinition {
	t.Helper()
	data, err := fs.ReadFile(manifests.FS, "charts/base/files/crd-all.gen.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crds []apiextensions.CustomResourceDefinition
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(doc), &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Name != "" {
			crds = append(crds, crd)
		}
	}
	if len(crds) < 15 {
		t.Fatalf("only %d definitions", len(crds))
	}
	return crds
}

// TestEveryFieldOfTheDefinitions writes every field that Istio's definitions have, with a value of the type that they
// want, one object for each branch, and expects that no field is unknown, no type wrong and no value out of an enum. So
// what the API server takes is never refused here, in any version that is served.
func TestEveryFieldOfTheDefinitions(t *testing.T) {
	fields := 0
	for _, crd := range istioCRDs(t) {
		for _, v := range crd.Spec.Versions {
			spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
			var set render.Set
			for _, value := range samples(&spec) {
				fields++
				set.Objects = append(set.Objects, render.Object{Content: render.ContentOf(&unstructured.Unstructured{Object: map[string]any{
					"apiVersion": crd.Spec.Group + "/" + v.Name,
					"kind":       crd.Spec.Names.Kind,
					"metadata":   map[string]any{"name": fmt.Sprintf("n%d", fields), "namespace": "shop"},
					"spec":       value,
				}})})
			}
			found, err := check.Check(t.Context(), &set)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, f := range found {
				// The codes from MOOR015 on are about what the values mean, and the samples mean nothing.
				if strings.HasPrefix(f.Code, "MOOR") && f.Code < "MOOR015" && !seen[f.Field+f.Message] {
					seen[f.Field+f.Message] = true
					t.Errorf("%s %s: %s", crd.Spec.Names.Kind, v.Name, f)
				}
			}
		}
	}
	if fields < 2000 {
		t.Errorf("only %d fields were tried", fields)
	}
}

// samples gives a list of values of the schema, which together hold each of its fields once, each value with one field at
// each level.
func samples(s *apiextensions.JSONSchemaProps) []any {
	switch {
	case len(s.Enum) > 0:
		var list []any
		for _, e := range s.Enum {
			var v any
			if err := yaml.Unmarshal(e.Raw, &v); err != nil {
				panic(err)
			}
			list = append(list, v)
		}
		return list
	case s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields && len(s.Properties) == 0:
		return []any{map[string]any{"anything": []any{int64(1), nil}}}
	}
	switch s.Type {
	case "object":
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			var list []any
			for _, v := range samples(s.AdditionalProperties.Schema) {
				list = append(list, map[string]any{"8080": v})
			}
			return list
		}
		list := []any{map[string]any{}}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			field := s.Properties[name]
			for _, v := range samples(&field) {
				list = append(list, map[string]any{name: v})
			}
			if field.Nullable {
				list = append(list, map[string]any{name: nil})
			}
		}
		return list
	case "array":
		var list []any
		for _, v := range samples(s.Items.Schema) {
			list = append(list, []any{v})
		}
		return list
	case "integer":
		return []any{int64(1), float64(1)}
	case "number":
		return []any{int64(1), 1.5}
	case "boolean":
		return []any{true}
	default:
		return []any{text(s.Format)}
	}
}

// text of the form that the schema wants. Some of the definitions' durations do not say that they are, so all plain strings are.
func text(format string) string {
	switch format {
	case "date-time":
		return "2006-01-02T15:04:05Z"
	case "byte":
		return "aGVsbG8="
	default:
		return "1m30s"
	}
}

// TestWrongValuesAreFound puts values of wrong types and sizes into every field of the definitions. Each must be found by strict
// reading: were the library the first to notice, the finding would be MOOR001, without a field and with all faults but
// one left out.
func TestWrongValuesAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2)) // the same values each time
	wrong := []any{
		nil, "", "x", "7", "true", int64(0), int64(-1), int64(math.MaxUint32 + 1), int64(math.MaxInt64), 1.5, 1e300, true,
		[]any{},
		[]any{nil},
		[]any{"x"},
		map[string]any{},
		map[string]any{"x": "y"},
		map[string]any{"seconds": int64(1)},
	}
	for _, crd := range istioCRDs(t) {
		v := crd.Spec.Versions[0]
		spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
		var set render.Set
		for i, value := range samples(&spec) {
			for range 3 {
				o := object(crd.Spec.Group+"/"+v.Name, crd.Spec.Names.Kind, fmt.Sprintf("n%d", i), replaceOne(rng, value, wrong))
				set.Objects = append(set.Objects, o)
			}
		}
		found, err := check.Check(t.Context(), &set)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Code == "MOOR001" {
				t.Error(f)
			}
		}
	}
}

// replaceOne gives a copy in which one value, at any depth, is another.
func replaceOne(rng *rand.Rand, v any, others []any) any {
	if rng.IntN(4) == 0 {
		return others[rng.IntN(len(others))]
	}
	switch v := v.(type) {
	case map[string]any:
		m := maps.Clone(v)
		for k := range m { // samples have one field at each level
			m[k] = replaceOne(rng, m[k], others)
		}
		return m
	case []any:
		list := slices.Clone(v)
		for i := range list {
			list[i] = replaceOne(rng, list[i], others)
		}
		return list
	default:
		return others[rng.IntN(len(others))]
	}
}

// TestEveryFieldThatIsTakenIsDefined is the other direction: each field and enum value that Istio's types have is in the
// definitions, so nothing that passes here is dropped by the API server.
func TestEveryFieldThatIsTakenIsDefined(t *testing.T) {
	for _, crd := range istioCRDs(t) {
		for _, v := range crd.Spec.Versions {
			gvk := config.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
			s, ok := collections.Pilot.FindByGroupVersionAliasesKind(gvk)
			if !ok {
				t.Errorf("%s is defined, and not known to the library", gvk)
				continue
			}
			md := s.MustNewInstance().(proto.Message).ProtoReflect().Descriptor()
			spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
			defined(t, crd.Spec.Names.Kind+"/"+v.Name, md, &spec)
		}
	}
}

func defined(t *testing.T, path string, md protoreflect.MessageDescriptor, s *apiextensions.JSONSchemaProps) {
	if md.FullName().Parent() == "google.protobuf" {
		return
	}
	for i := range md.Fields().Len() {
		fd := md.Fields().Get(i)
		at := path + "." + fd.JSONName()
		field, ok := s.Properties[fd.JSONName()]
		if !ok {
			t.Errorf("%s is not defined", at)
			continue
		}
		of := &field
		if fd.IsMap() {
			fd, of = fd.MapValue(), of.AdditionalProperties.Schema
		} else if fd.IsList() {
			of = of.Items.Schema
		}
		if fd.Message() != nil {
			defined(t, at, fd.Message(), of)
		}
		if fd.Enum() != nil && fd.Enum().Values().Len() != len(of.Enum) {
			t.Errorf("%s: %d values are known, %d defined", at, fd.Enum().Values().Len(), len(of.Enum))
		}
	}
}
