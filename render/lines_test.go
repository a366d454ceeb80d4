package render_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestLines asks where fields were written. An archive in testdata/lines says why it exists, and holds the files of a repository, the folder that is rendered
// ("path", "." when there is none) and "lines": an object, a field in it, and "file:line: " with that line's text.
func TestLines(t *testing.T) {
	archives, err := filepath.Glob("testdata/lines/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
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
			set, err := new(render.Renderer).Render(t.Context(), repo, dir)
			if err != nil {
				t.Fatal(err)
			}
			last := &a.Files[len(a.Files)-1]
			if last.Name != "lines" {
				t.Fatal("the archive does not end with lines")
			}
			var got strings.Builder
			for line := range strings.Lines(string(last.Data)) {
				words := strings.Fields(line)
				got.WriteString(answer(t, a, set, words[0], words[1]) + "\n")
			}
			if *update {
				last.Data = []byte(got.String())
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(last.Data), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// answer asks for the place of one field, and quotes the line.
func answer(t *testing.T, a *txtar.Archive, set *render.Set, id, field string) string {
	t.Helper()
	for _, o := range set.Objects {
		if o.ID().String() != id {
			continue
		}
		path := strings.Split(field, "/")
		for i := range path {
			path[i] = strings.ReplaceAll(path[i], "~1", "/")
		}
		at := o.At(path...)
		text := "no such line"
		for _, f := range a.Files {
			if lines := strings.Split(string(f.Data), "\n"); f.Name == at.File && at.Line > 0 && at.Line <= len(lines) {
				text = strings.TrimSpace(lines[at.Line-1])
			}
		}
		return fmt.Sprintf("%s %s %s: %s", id, field, at, text)
	}
	t.Errorf("there is no %s", id)
	return ""
}

// TestLinesOfPartsAndKept: divided and kept builds know the same lines, and may be asked from many goroutines.
func TestLinesOfPartsAndKept(t *testing.T) {
	a, err := txtar.ParseFile("testdata/lines/overlay.txtar")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := unpack(a)
	repo, _ := files.(fstest.MapFS)
	text := strings.Replace(string(repo["prod/kustomization.yaml"].Data), "namePrefix: p-\n", "", 1) // with it, a build is not divided
	repo["prod/kustomization.yaml"] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	lines := func(r *render.Renderer) string {
		set, err := r.Render(t.Context(), repo, "prod")
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, o := range set.Objects {
			fields(o.Unstructured().Object, nil, func(path []string) { fmt.Fprintln(&b, o.ID(), path, o.At(path...)) })
		}
		return b.String()
	}
	want := lines(new(render.Renderer).Divide(0, 0, 0))
	if !strings.Contains(want, "prod/ops.yaml:3") {
		t.Fatalf("no line of a patch:\n%s", want)
	}
	c := render.NewCache(1 << 24)
	r := (&render.Renderer{Cache: c}).Divide(1, 1, 2)
	if diff := cmp.Diff(want, lines(r)); diff != "" {
		t.Errorf("-undivided +divided:\n%s", diff)
	}
	if counts := c.Counts(); counts.Undivided > 0 {
		t.Errorf("it was not divided: %+v", counts)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if diff := cmp.Diff(want, lines(r)); diff != "" {
				t.Errorf("-undivided +kept:\n%s", diff)
			}
		})
	}
	group.Wait()
}

// fields calls visit with the paths of all fields.
func fields(v any, path []string, visit func([]string)) {
	path = slices.Clip(path)
	visit(path)
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			fields(v[k], append(path, k), visit)
		}
	case []any:
		for i, e := range v {
			fields(e, append(path, strconv.Itoa(i)), visit)
		}
	}
}
