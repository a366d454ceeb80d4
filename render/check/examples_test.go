package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// TestExamples finds nothing to warn of in what users are shown in plain Istio.
func TestExamples(t *testing.T) {
	const examples = "../../examples"
	var folders []string
	for _, pattern := range []string{"recipes/*/istio", "recipes/*/*/istio", "shop/overlays/*", "shop/moorings", "mesh/*/overlays/*"} {
		found, err := filepath.Glob(filepath.Join(examples, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no folder is like %s: %v", pattern, err)
		}
		folders = append(folders, found...)
	}
	for _, folder := range folders {
		dir, err := filepath.Rel(examples, folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(dir, func(t *testing.T) {
			set, err := new(render.Renderer).Render(t.Context(), os.DirFS(examples), filepath.ToSlash(dir))
			if err != nil {
				t.Fatal(err)
			}
			found, err := check.Check(t.Context(), set)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				if f.Level.AtLeast(check.Warning) {
					t.Error(f)
				}
			}
		})
	}
}
