package check_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// TestExamplesAreAsked makes sure that the proxies of what users are shown were asked, and that nothing is wrong with their routes.
func TestExamplesAreAsked(t *testing.T) {
	const examples = "../../examples"
	var folders []string
	for _, pattern := range []string{"recipes/*/istio", "recipes/*/*/istio", "shop/overlays/*", "mesh/manifests/overlays/*"} {
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
			report, err := check.New().Check(t.Context(), check.Request{Set: set})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Findings {
				if strings.HasPrefix(f.Code, "MOOR05") {
					t.Error(f)
				}
			}
			for _, g := range report.Gaps {
				if strings.HasPrefix(g.Code, "MOOR05") {
					t.Error(g)
				}
			}
		})
	}
}
