package render_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "rewrite want.yaml and want.err in testdata")

// TestRender renders every archive in testdata. An archive says why it exists, and holds the files of a repository, the folder
// that is rendered ("path", "." when there is none) and what comes out: want.yaml with where each object comes from, or want.err.
func TestRender(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in testdata: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(a.Comment)) == 0 {
				t.Error("the archive does not say why it exists")
			}
			repo, dir := unpack(a)
			got := "want.yaml"
			set, err := new(render.Renderer).Render(t.Context(), repo, dir)
			text := ""
			if err != nil {
				got, text = "want.err", err.Error()+"\n"
			} else {
				text = print(t, set)
			}
			compare(t, name, a, got, text)
		})
	}
}

// unpack gives the repository in an archive and the folder that is rendered.
func unpack(a *txtar.Archive) (fs.FS, string) {
	repo, dir := fstest.MapFS{}, "."
	for _, f := range a.Files {
		switch {
		case f.Name == "path":
			dir = strings.TrimSpace(string(f.Data))
		case strings.HasPrefix(f.Name, "want."):
		case strings.HasSuffix(f.Name, "@"):
			repo[strings.TrimSuffix(f.Name, "@")] = &fstest.MapFile{Data: bytes.TrimSpace(f.Data), Mode: fs.ModeSymlink | 0o777}
		default:
			repo[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		}
	}
	return repo, dir
}

// print writes a set with the origin of every object.
func print(t *testing.T, set *render.Set) string {
	t.Helper()
	var b strings.Builder
	for _, o := range set.Objects {
		b.WriteString("--- # " + o.Origin.String() + "\n")
		one := render.Set{Objects: []render.Object{o}}
		if err := one.YAML(&b); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// compare holds the result against the archive's, or writes it there.
func compare(t *testing.T, name string, a *txtar.Archive, got, text string) {
	t.Helper()
	for i, f := range a.Files {
		if !strings.HasPrefix(f.Name, "want.") {
			continue
		}
		if *update {
			a.Files = append(a.Files[:i], a.Files[i+1:]...)
			break
		}
		if f.Name != got {
			t.Fatalf("the archive has %s, and there is a %s:\n%s", f.Name, got, text)
		}
		if diff := cmp.Diff(string(f.Data), text); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		return
	}
	if !*update {
		t.Fatalf("the archive has neither want.yaml nor want.err; there is a %s:\n%s", got, text)
	}
	a.Files = append(a.Files, txtar.File{Name: got, Data: []byte(text)})
	if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}
