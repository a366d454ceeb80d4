package render_test

import (
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
func direct(t testing.TB, memory filesys.FileSystem, dir string) ([]*unstructured.Unstructured, error) {
	openapi.ResetOpenAPI()
	defer openapi.ResetOpenAPI()
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

// TestSameAsKustomize: what is rendered is what kustomize build writes, to the last byte. That we ask for origins, read through a file system of
// our own and put the root kustomization in another form must not show.
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
		compared++
		set, err := new(render.Renderer).Render(t.Context(), repo, dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []*unstructured.Unstructured
		for _, o := range set.Objects {
			got = append(got, o.Unstructured)
		}
		if diff := cmp.Diff(sorted(t, want), sorted(t, got)); diff != "" {
			t.Errorf("%s: -kustomize +ours:\n%s", name, diff)
		}
	}
	if compared < 20 {
		t.Errorf("only %d archives were compared", compared)
	}
}
