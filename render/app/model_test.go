package app_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/app"
)

// schema is that of spec, from the CRD.
func schema(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(app.CRD, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// visit calls f for every field below a schema. In a path [] is a list's item and * a mapping's value.
func visit(s apiextensionsv1.JSONSchemaProps, path string, f func(path string, s apiextensionsv1.JSONSchemaProps, leaf bool)) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		at, inner := path+"."+name, field
		for inner.Items != nil || inner.AdditionalProperties != nil {
			if inner.Items != nil {
				at, inner = at+"[]", *inner.Items.Schema
			} else {
				at, inner = at+".*", *inner.AdditionalProperties.Schema
			}
		}
		f(at, field, len(inner.Properties) == 0)
		visit(inner, at, f)
	}
}

// kubectl explain and mooring explain say what stands here, so every field says what it is, and every attribute what it becomes.
func TestEveryFieldIsDescribed(t *testing.T) {
	fields := 0
	visit(schema(t), "spec", func(path string, s apiextensionsv1.JSONSchemaProps, leaf bool) {
		fields++
		switch {
		case s.Description == "":
			t.Errorf("%s is not described", path)
		case leaf && !strings.Contains(s.Description, "ecomes ") && !says(path):
			t.Errorf("%s does not say what it becomes: %s", path, s.Description)
		}
	})
	if fields < 300 {
		t.Errorf("there are only %d fields", fields)
	}
}

// says lists attributes that become nothing by themselves: they choose or name something.
func says(path string) bool {
	for _, end := range []string{".patch", ".raw", ".unsafe", ".dryRun", ".allRequests", "wholeNamespace", ".default", ".absent", ".present"} {
		if strings.HasSuffix(path, end) {
			return true
		}
	}
	return false
}

// Every attribute is in an archive that renders, so that one without a test is noticed.
func TestEveryAttributeIsTested(t *testing.T) {
	used := map[string]bool{}
	for _, a := range archivesThatRender(t) {
		for _, f := range a.Files {
			for _, doc := range strings.Split(string(f.Data), "\n---\n") {
				var object map[string]any
				if strings.HasPrefix(f.Name, "want.") || yaml.Unmarshal([]byte(doc), &object) != nil || object["kind"] != app.Kind {
					continue
				}
				collect(object["spec"], "spec", used)
			}
		}
	}
	visit(schema(t), "spec", func(path string, _ apiextensionsv1.JSONSchemaProps, leaf bool) {
		// The policy of a subset and a version is that of the rule; the policies with a name are as the one without.
		path = regexp.MustCompile(`^spec\.(versions\.\*|destinationRule\.subsets\[\])\.trafficPolicy`).ReplaceAllString(path, "spec.destinationRule.trafficPolicy")
		path = strings.Replace(path, "trafficPolicy.ports[].", "trafficPolicy.", 1)
		path = strings.Replace(path, "spec.authorizationPolicies[].", "spec.authorizationPolicy.", 1)
		if leaf && !used[path] && !used[strings.TrimSuffix(path, ".*")] && !strings.HasSuffix(path, "trafficPolicy.port") && path != "spec.authorizationPolicy.name" {
			t.Errorf("%s is in no archive", path)
		}
	})
}

// collect notes the paths of all that is written.
func collect(v any, path string, used map[string]bool) {
	used[path] = true
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			collect(e, path+"."+key, used)
			collect(e, path+".*", used)
		}
	case []any:
		for _, e := range v {
			collect(e, path+"[]", used)
		}
	}
	// The policies of subsets and versions count for that of the rule.
	for _, from := range []string{`spec.versions.*.trafficPolicy`, `spec.destinationRule.subsets[].trafficPolicy`} {
		if rest, ok := strings.CutPrefix(path, from); ok {
			used["spec.destinationRule.trafficPolicy"+rest] = true
		}
	}
	if strings.Contains(path, "trafficPolicy.ports[].") {
		used[strings.Replace(path, "trafficPolicy.ports[].", "trafficPolicy.", 1)] = true
	}
	if rest, ok := strings.CutPrefix(path, "spec.authorizationPolicies[]."); ok {
		used["spec.authorizationPolicy."+rest] = true
	}
}

func archivesThatRender(t testing.TB) []*txtar.Archive {
	t.Helper()
	var list []*txtar.Archive
	for _, name := range archiveNames(t) {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(a.Files, func(f txtar.File) bool { return f.Name == "want.yaml" }) {
			list = append(list, a)
		}
	}
	return list
}

// What is given to an expander belongs to a cache and to other goroutines.
func TestObjectsAreNotWrittenTo(t *testing.T) {
	for _, a := range archivesThatRender(t) {
		repository, dir := unpacked(a)
		set, err := new(render.Renderer).Render(t.Context(), repository, dir)
		if err != nil {
			t.Fatal(err)
		}
		var before []any
		for _, o := range set.Objects {
			before = append(before, o.Unstructured().DeepCopy().Object)
		}
		expanded, _, err := app.Expander{}.Expand(t.Context(), set.Objects)
		if err != nil || len(expanded) == 0 {
			t.Fatal(err)
		}
		for _, o := range expanded { // whoever gets these may write
			o.Unstructured().SetName("other")
			o.Unstructured().SetLabels(map[string]string{"other": "other"})
		}
		var after []any
		for _, o := range set.Objects {
			if o.GetKind() == app.Kind {
				after = append(after, o.Unstructured().Object)
			} else {
				after = append(after, nil)
			}
		}
		for i := range after {
			if after[i] == nil {
				continue
			}
			if diff := cmp.Diff(before[i], after[i]); diff != "" {
				t.Errorf("-before +after:\n%s", diff)
			}
		}
	}
}

// Names are those of RFC 1123 and of at most 63 characters, and two keys never share one.
func TestNames(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	for _, length := range []int{1, 20, 54, 55, 61, 62, 63} {
		name := strings.Repeat("a", length)
		var entries strings.Builder
		for i := range 40 {
			fmt.Fprintf(&entries, "  - {name: %s-%d, address: 10.0.0.1}\n", strings.Repeat("k", length%50+1), i)
		}
		repository := fstest.MapFS{"app.yaml": {Data: []byte("apiVersion: mooring.dev/v1alpha1\nkind: AppConfiguration\nmetadata: {name: " + name +
			", namespace: apps}\nspec:\n  workloadEntries:\n" + entries.String())}}
		set, err := renderer().Render(t.Context(), repository, ".") // refuses two of one name
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Objects) != 40 {
			t.Errorf("%d objects of 40", len(set.Objects))
		}
		for _, o := range set.Objects {
			if got := o.GetName(); len(got) > 63 || !valid.MatchString(got) {
				t.Errorf("the name is %q", got)
			}
		}
	}
}

// FuzzExpand looks for panics, and for faults without a place.
func FuzzExpand(f *testing.F) {
	for _, name := range archiveNames(f) {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if strings.HasSuffix(file.Name, "app.yaml") {
				f.Add(string(file.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		repository := fstest.MapFS{"app.yaml": {Data: []byte(text)}}
		_, err := renderer().Render(t.Context(), repository, ".")
		for _, fault := range render.Errors(err) {
			if strings.Contains(fault.Error(), "a library failed") {
				t.Error(fault)
			}
		}
	})
}
