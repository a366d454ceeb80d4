package check_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

var update = flag.Bool("update", false, "write what was found into the archives")

// TestArchives renders the YAML files of each archive as plain YAML, and compares what the check finds with its want.
func TestArchives(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			repo := fstest.MapFS{}
			want := -1
			for i, f := range archive.Files {
				if f.Name == "want" {
					want = i
					continue
				}
				repo[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
			}
			if want < 0 {
				t.Fatal("the archive has no file want")
			}
			set, err := new(render.Renderer).Render(t.Context(), repo, ".")
			if err != nil { // a render refuses more than the check relies on
				set = &render.Set{}
				for _, f := range slices.Delete(slices.Clone(archive.Files), want, want+1) {
					set.Objects = append(set.Objects, objects(t, f.Name, f.Data)...)
				}
			}
			var got strings.Builder
			found, err := check.Check(t.Context(), set)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				fmt.Fprintln(&got, f)
			}
			if *update {
				archive.Files[want].Data = []byte(got.String())
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[want].Data), got.String()); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// objects reads a file of YAML documents as a render would, remembering on which line each begins.
func objects(t testing.TB, name string, data []byte) []render.Object {
	t.Helper()
	var list []render.Object
	line := 1
	for _, doc := range bytes.SplitAfter(data, []byte("\n---\n")) {
		begin := line
		line += bytes.Count(doc, []byte("\n"))
		text := bytes.TrimSuffix(doc, []byte("---\n"))
		js, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%s:%d: %v", name, begin, err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(js); err != nil {
			t.Fatalf("%s:%d: %v", name, begin, err)
		}
		list = append(list, render.Object{Content: render.ContentOf(u), Origin: render.Origin{File: name, Line: begin}})
	}
	return list
}
