package render_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
	"github.com/rogpeppe/go-internal/txtar"
)

// archived is the repository of an archive in testdata.
func archived(t testing.TB, name string) (fs.FS, string) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return unpack(a)
}

// outcome is everything that a render gives, as text.
func outcome(t testing.TB, r *render.Renderer, repo fs.FS, dir string) string {
	set, err := r.Render(t.Context(), repo, dir)
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	fmt.Fprintln(&b, set.Digest())
	for _, o := range set.Objects {
		fmt.Fprintln(&b, o.ID(), o.Origin)
	}
	for _, f := range set.Files {
		fmt.Fprintln(&b, f.Path, f.Hash)
	}
	if err := set.YAML(&b); err != nil {
		t.Error(err)
	}
	return b.String()
}

// TestConcurrent renders the same and different repositories at once, with one Renderer and with several, among them some that change the schema
// that kustomize has for the whole process.
func TestConcurrent(t *testing.T) {
	names := []string{"overlay", "transformers", "configurations", "patches", "generators", "plain", "openapi-circle", "openapi-broken", "generator-empty-key", "many-faults"}
	want := map[string]string{}
	for _, name := range names {
		repo, dir := archived(t, name)
		want[name] = outcome(t, new(render.Renderer), repo, dir)
	}
	shared := new(render.Renderer)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for j := range len(names) {
				name, r := names[(i+j)%len(names)], shared
				if i%2 == 0 {
					r = new(render.Renderer)
				}
				repo, dir := archived(t, name)
				if diff := cmp.Diff(want[name], outcome(t, r, repo, dir)); diff != "" {
					t.Errorf("%s: -alone +with others:\n%s", name, diff)
				}
			}
		})
	}
	group.Wait()
}

// TestDeterministic: the same commit gives the same bytes, whatever was rendered before: all archives twice, the larger ones 20 times.
func TestDeterministic(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	first := map[string]string{}
	for round := range 20 {
		for _, path := range archives {
			name := strings.TrimSuffix(filepath.Base(path), ".txtar")
			often := []string{"overlay", "transformers", "generators", "plain", "many-faults", "plain-many-faults", "remote-fields", "vars", "diamond", "configurations"}
			if round >= 2 && !slices.Contains(often, name) {
				continue
			}
			repo, dir := archived(t, name)
			got := outcome(t, new(render.Renderer), repo, dir)
			if want, ok := first[name]; !ok {
				first[name] = got
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: -first time +again:\n%s", name, diff)
			}
		}
	}
}

// TestSchemaDoesNotLeak: kustomize keeps the schema of one build for the next, where lists would then be merged by a key that their
// kustomization says nothing of.
func TestSchemaDoesNotLeak(t *testing.T) {
	with, dir := archived(t, "configurations")
	without := files("kustomization.yaml", `resources: [a.yaml]
patches:
- patch: |
    apiVersion: example.com/v1
    kind: Shelf
    metadata: {name: shelf}
    spec: {books: [{name: b}]}
`, "a.yaml", "apiVersion: example.com/v1\nkind: Shelf\nmetadata: {name: shelf}\nspec: {books: [{name: a}, {name: b}]}\n")
	r := new(render.Renderer)
	before := outcome(t, r, without, ".")
	outcome(t, r, with, dir)
	if diff := cmp.Diff(before, outcome(t, r, without, ".")); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if strings.Contains(before, "name: a\n") {
		t.Errorf("the list was merged without a schema:\n%s", before)
	}
}

// TestLogGoesOn: kustomize's log.Fatal is held back, and nothing else.
func TestLogGoesOn(t *testing.T) {
	old := log.Writer()
	defer log.SetOutput(old)
	var b bytes.Buffer
	log.SetOutput(&b)
	repo, dir := archived(t, "generator-empty-key")
	_, err := new(render.Renderer).Render(t.Context(), repo, dir)
	var p *render.Panic
	if faults := render.Errors(err); len(faults) != 1 {
		t.Fatalf("got %v", err)
	} else if !errors.As(faults[0], &p) || !strings.Contains(fmt.Sprint(p.Value), "log.Fatal") || !strings.Contains(string(p.Stack), "SetDataMap") {
		t.Errorf("got %#v", p)
	}
	log.Print("hello")
	if got := b.String(); !strings.HasSuffix(got, "hello\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("the log has %q", got)
	}
}
