package mesh_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

var update = flag.Bool("update", false, "rewrite what the archives want")

// TestArchives: what comes of a repository, in short, or why nothing does.
func TestArchives(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 10 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			repo := fstest.MapFS{}
			var want string
			kept := slices.DeleteFunc(slices.Clone(a.Files), func(f txtar.File) bool { return strings.HasPrefix(f.Name, "want.") })
			for _, f := range a.Files {
				if strings.HasPrefix(f.Name, "want.") {
					want = f.Name + "\n" + string(f.Data)
				} else {
					repo[f.Name] = &fstest.MapFile{Data: f.Data}
				}
			}
			file, got := "want.txt", ""
			if set, err := renderer().Render(t.Context(), repo, "."); err != nil {
				file, got = "want.err", err.Error()+"\n"
			} else {
				got = summary(set)
			}
			if *update {
				a.Files = append(kept, txtar.File{Name: file, Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(want, file+"\n"+got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// summary has a line for each object, with its images and replicas, and then the warnings. CRDs are counted.
func summary(set *render.Set) string {
	var b strings.Builder
	definitions := 0
	for _, o := range set.Objects {
		if o.GetKind() == "CustomResourceDefinition" {
			definitions++
			continue
		}
		fmt.Fprint(&b, o.ID())
		if replicas, found, _ := unstructured.NestedFieldNoCopy(o.Unstructured().Object, "spec", "replicas"); found {
			fmt.Fprintf(&b, " ×%v", replicas)
		}
		containers, _, _ := unstructured.NestedSlice(o.Unstructured().Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			fmt.Fprintf(&b, " %v", c.(map[string]any)["image"])
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "and %d CustomResourceDefinitions\n", definitions)
	for _, w := range set.Warnings {
		fmt.Fprintln(&b, "warning:", w)
	}
	return b.String()
}
