package render_test

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
)

// inMemory copies a repository into kustomize's own file system. ok is false for one with symbolic links, which that does not have.
func inMemory(t testing.TB, repo fs.FS) (_ filesys.FileSystem, ok bool) {
	memory := filesys.MakeFsInMemory()
	for name, f := range repo.(fstest.MapFS) {
		if f.Mode&fs.ModeSymlink != 0 {
			return nil, false
		}
		if err := memory.WriteFile("/repo/"+name, f.Data); err != nil {
			return nil, false // it does not have all names either
		}
	}
	return memory, true
}

// direct is what kustomize makes of a repository without us.
func direct(t testing.TB, memory filesys.FileSystem, dir string) (_ []*unstructured.Unstructured, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	defer func() {
		if openapi.GetSchemaVersion() != openapi.DefaultOpenAPI {
			openapi.ResetOpenAPI() // kustomize leaves a schema of its own behind
		}
	}()
	m, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, path.Join("/repo", dir))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, r := range m.Resources() {
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		o := new(unstructured.Unstructured)
		if err := o.UnmarshalJSON(text); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// sorted gives objects as text in an order of their own.
func sorted(t testing.TB, objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}

// unlinked takes out of objects what may differ from what kustomize makes.
func unlinked(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		all[i] = render.Unlinked(o)
	}
	return all
}

// TestSameAsKustomize: what is rendered is what kustomize build writes, to the last byte. That we ask for origins, read through a file system of
// our own and put the root kustomization in another form must not show. In the archives about
// references that is so but for the fields that refer to renamed objects, which kustomize leaves behind.
func TestSameAsKustomize(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		repo, dir := unpack(a)
		memory, ok := inMemory(t, repo)
		if !ok || !strings.Contains(string(txtar.Format(a)), "\n-- want.yaml --\n") {
			continue
		}
		want, err := direct(t, memory, dir)
		if err != nil {
			continue // plain YAML
		}
		if strings.HasPrefix(filepath.Base(name), "schema") {
			continue // kustomize does not have our schema by itself, but may have it since a test before
		}
		compared++
		set, err := new(render.Renderer).Render(t.Context(), repo, dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []*unstructured.Unstructured
		for _, o := range set.Objects {
			got = append(got, o.Unstructured())
		}
		if base := filepath.Base(name); strings.HasPrefix(base, "references") || base == "configurations.txtar" {
			want, got = unlinked(want), unlinked(got)
		}
		if diff := cmp.Diff(sorted(t, want), sorted(t, got)); diff != "" {
			t.Errorf("%s: -kustomize +ours:\n%s", name, diff)
		}
	}
	if compared < 20 {
		t.Errorf("only %d archives were compared", compared)
	}
}

// TestOriginsDoNotShow has what would come out otherwise, or fail otherwise, in objects that carry one annotation more while they are built.
func TestOriginsDoNotShow(t *testing.T) {
	object := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: c, image: i}]}}}\n"
	annotated := strings.Replace(object, "name: a}", "name: a, annotations: {mine: x}}", 1)
	patch := func(ops string) string {
		return "resources: [a.yaml]\npatches:\n- target: {kind: Deployment}\n  patch: |-\n    - " + ops + "\n"
	}
	tests := map[string][2]string{
		"add one to none":         {patch("{op: add, path: /metadata/annotations/x, value: y}"), object},
		"add one":                 {patch("{op: add, path: /metadata/annotations/x, value: y}"), annotated},
		"add all":                 {patch("{op: add, path: /metadata/annotations, value: {x: y}}"), object},
		"test all":                {patch("{op: test, path: /metadata/annotations, value: {mine: x}}"), annotated},
		"test metadata":           {patch("{op: test, path: /metadata, value: {name: a}}"), object},
		"remove all from none":    {patch("{op: remove, path: /metadata/annotations}"), object},
		"remove all":              {patch("{op: remove, path: /metadata/annotations}"), annotated},
		"copy all":                {patch("{op: copy, from: /metadata/annotations, path: /spec/template/metadata}"), annotated},
		"copy metadata":           {patch("{op: copy, from: /metadata, path: /spec/template/metadata}"), annotated},
		"copy the whole":          {patch("{op: copy, from: '', path: /spec/x}"), annotated},
		"replace with merge":      {"resources: [a.yaml]\npatches:\n- patch: |-\n    {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {$patch: replace, x: y}}}\n", annotated},
		"delete with merge":       {"resources: [a.yaml]\npatches:\n- patch: |-\n    {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: null}}\n", annotated},
		"replacement from all":    {"resources: [a.yaml]\nreplacements:\n- source: {kind: Deployment, fieldPath: metadata.annotations}\n  targets: [{select: {kind: Deployment}, fieldPaths: [spec.x], options: {create: true}}]\n", annotated},
		"replacement from meta":   {"resources: [a.yaml]\nreplacements:\n- source: {kind: Deployment, fieldPath: metadata}\n  targets: [{select: {kind: Deployment}, fieldPaths: [spec.x], options: {create: true}}]\n", annotated},
		"replacement into one":    {"resources: [a.yaml]\nreplacements:\n- source: {kind: Deployment}\n  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.x]}]\n", object},
		"labels only where":       {"resources: [a.yaml]\nlabels:\n- pairs: {x: y}\n  fields: [{path: metadata/annotations}]\n", object},
		"empty annotations":       {"resources: [a.yaml]\n", strings.Replace(object, "name: a}", "name: a, annotations: {}}", 1)},
		"null annotations":        {"resources: [a.yaml]\n", strings.Replace(object, "name: a}", "name: a, annotations: }", 1)},
		"annotations of numbers":  {"resources: [a.yaml]\n", strings.Replace(object, "name: a}", "name: a, annotations: {a: 1, b: true, c: 1.50, d: null, e: 2024-01-01}}", 1)},
		"list of annotations":     {"resources: [a.yaml]\n", strings.Replace(object, "name: a}", "name: a, annotations: [a]}", 1)},
		"origin of the user":      {"resources: [a.yaml]\n", strings.Replace(object, "name: a}", "name: a, annotations: {config.kubernetes.io/origin: mine}}", 1)},
		"origin of a patch":       {"resources: [a.yaml]\npatches:\n- patch: |-\n    {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {config.kubernetes.io/origin: 'path: /etc/passwd'}}}\n", object},
		"hash of other kinds":     {"resources: [a.yaml]\n", strings.Replace(object, "name: a}", "name: a, annotations: {internal.config.kubernetes.io/needsHashSuffix: enabled}}", 1)},
		"hash through a patch":    {"resources: [a.yaml]\npatches:\n- patch: |-\n    {apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {internal.config.kubernetes.io/needsHashSuffix: enabled}}}\n", object},
		"selected by annotations": {"resources: [a.yaml]\npatches:\n- target: {annotationSelector: '!mine'}\n  patch: |-\n    - {op: add, path: /spec/x, value: y}\n", annotated},
		"metadata the user wants": {"buildMetadata: [originAnnotations, transformerAnnotations]\nresources: [a.yaml]\nnamePrefix: p-\n", annotated},
		"transformations only":    {"buildMetadata: [transformerAnnotations]\nresources: [a.yaml]\nnamePrefix: p-\n", annotated},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			repo := files("kustomization.yaml", test[0], "a.yaml", test[1])
			memory, _ := inMemory(t, repo)
			want, wantErr := direct(t, memory, ".")
			set, err := new(render.Renderer).Render(t.Context(), repo, ".")
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("kustomize: %v\nours: %v", wantErr, err)
			}
			if err != nil {
				return
			}
			var got []*unstructured.Unstructured
			for _, o := range set.Objects {
				got = append(got, o.Unstructured())
			}
			if diff := cmp.Diff(sorted(t, want), sorted(t, got)); diff != "" {
				t.Errorf("-kustomize +ours:\n%s", diff)
			}
		})
	}
}
