package render_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fuzzLimits are small, so that what is bounded by them is seen to be.
func fuzzLimits() render.Limits {
	return render.Limits{Files: 50, Bytes: 1 << 20, FileBytes: 1 << 18, Objects: 200, OutputBytes: 1 << 21, Depth: 50, Timeout: 20 * time.Second}
}

// robust renders and looks at what must be true of whatever comes out.
func robust(t *testing.T, repo fstest.MapFS) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r := &render.Renderer{Limits: fuzzLimits()}
	set, err := r.Render(ctx, repo, ".")
	if ctx.Err() != nil {
		t.Fatal("it takes too long")
	}
	if err != nil {
		if len(render.Errors(err)) == 0 {
			t.Fatalf("not told as a fault of the commit: %v", err)
		}
		if strings.Contains(err.Error(), "takes longer") {
			t.Fatal(err)
		}
		return
	}
	seen := map[render.ID]bool{}
	for _, o := range set.Objects {
		id := o.ID()
		if id.Kind == "" || id.Name == "" || o.GetAPIVersion() == "" || seen[id] {
			t.Fatalf("object %v", o)
		}
		seen[id] = true
		if o.Origin.File != "" && repo[o.Origin.File] == nil {
			t.Fatalf("%s comes from %s, which does not exist", id, o.Origin)
		}
		if text := string(fileOf(repo, o)); o.Origin.Line > strings.Count(text, "\n")+1 {
			t.Fatalf("%s comes from %s, which has fewer lines", id, o.Origin)
		}
		asked := 0
		fields(o.Unstructured().Object, nil, func(path []string) {
			const most = 50 // each question parses the document anew
			if asked++; asked > most {
				return
			}
			at := o.At(path...)
			if f := repo[at.File]; at.File != "" && (f == nil || at.Line > strings.Count(string(f.Data), "\n")+1) {
				t.Fatalf("%s %v is in %s", id, path, at)
			}
		})
	}
	if repo["kustomization.yaml"] != nil {
		likeKustomize(t, repo, set)
	}
	again, err := r.Render(ctx, repo, ".")
	if err != nil || again.Digest() != set.Digest() {
		t.Fatalf("not the same again: %v", err)
	}
}

// likeKustomize compares with kustomize itself, apart from references, which follow here. That is safe: what it must not do was refused before.
func likeKustomize(t *testing.T, repo fstest.MapFS, set *render.Set) {
	memory, ok := inMemory(t, repo)
	if !ok {
		return
	}
	want, err := direct(t, memory, ".")
	if err != nil {
		t.Fatalf("kustomize: %v", err)
	}
	var got []*unstructured.Unstructured
	for _, o := range set.Objects {
		got = append(got, o.Unstructured())
	}
	if diff := cmp.Diff(sorted(t, unlinked(want)), sorted(t, unlinked(got))); diff != "" {
		t.Fatalf("-kustomize +ours:\n%s", diff)
	}
}

func fileOf(repo fstest.MapFS, o render.Object) []byte {
	if f := repo[o.Origin.File]; f != nil {
		return f.Data
	}
	return nil
}

// seeds calls add with the files of all archives that suit.
func seeds(f *testing.F, suits func(name string) bool, add func(text []byte)) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(text).Files {
			if suits(file.Name) {
				add(file.Data)
			}
		}
	}
}

// FuzzPlain reads anything as plain YAML.
func FuzzPlain(f *testing.F) {
	seeds(f, func(name string) bool { return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".json") }, func(text []byte) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text []byte) {
		robust(t, fstest.MapFS{"a.yaml": {Data: text}})
	})
}

// FuzzKustomization takes anything for a kustomization that has some files and a base to refer to.
func FuzzKustomization(f *testing.F) {
	seeds(f, func(name string) bool { return filepath.Base(name) == "kustomization.yaml" }, func(text []byte) { f.Add(text) })
	f.Fuzz(func(t *testing.T, text []byte) {
		robust(t, surroundings(map[string][]byte{"kustomization.yaml": text}))
	})
}

// FuzzResource takes anything for a resource, a patch, and what else a kustomization may name.
func FuzzResource(f *testing.F) {
	seeds(f, func(name string) bool { return !strings.HasPrefix(filepath.Base(name), "kustomization.") }, func(text []byte) {
		f.Add(byte(0), text)
		f.Add(byte(len(text)), text)
	})
	uses := []string{
		"resources: [x]\nnamePrefix: p-\nlabels: [{pairs: {a: b}, includeSelectors: true}]\n", "resources: [a.yaml]\npatches: [{path: x}]\n",
		"resources: [a.yaml]\npatches: [{path: x, target: {kind: .*}}]\n", "resources: [a.yaml]\nconfigurations: [x]\nnamePrefix: p-\n",
		"resources: [a.yaml]\ncrds: [x]\nnamePrefix: p-\n", "resources: [a.yaml]\nreplacements: [{path: x}]\n", "resources: [a.yaml]\ntransformers: [x]\n",
	}
	f.Fuzz(func(t *testing.T, use byte, text []byte) {
		robust(t, surroundings(map[string][]byte{"kustomization.yaml": []byte(uses[int(use)%len(uses)]), "x": text}))
	})
}

// surroundings gives the files that fuzzed kustomizations may refer to.
func surroundings(more map[string][]byte) fstest.MapFS {
	repo := files(
		"a.yaml", configMap, "b.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: reviews}\nspec: {hosts: [reviews]}\n",
		"base/kustomization.yaml", "resources: [c.yaml]\n", "base/c.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: reviews}\nspec: {template: {spec: {containers: [{name: c, image: i}]}}}\n",
		"c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: c-\n", "p.yaml", configMap+"data: {a: b}\n", "data.txt", "x=y\n")
	for name, text := range more {
		repo[name] = &fstest.MapFile{Data: text}
	}
	return repo
}
