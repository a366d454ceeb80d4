package mesh_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// rendered is what the example's base of manifests was made from.
const rendered = "{profile: minimal, meshConfig: {accessLogFile: /dev/stdout}, components: {base: {enabled: false}}}"

// TestExampleManifests: examples/mesh/manifests/base/istiod.yaml is what the profile minimal gives. -update writes it.
func TestExampleManifests(t *testing.T) {
	set := mustExpand(t, operator(rendered))
	var b strings.Builder
	b.WriteString("# Istio 1.31, profile minimal, without its chart base: the CRDs are installed once for a cluster. Rendered once, and kept in Git as it is.\n---\n")
	if err := set.YAML(&b); err != nil {
		t.Fatal(err)
	}
	name := "../../examples/mesh/manifests/base/istiod.yaml"
	if *update {
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(file)); diff != "" {
		t.Errorf("render it again with -update: -rendered +file:\n%s", diff)
	}
}

// TestExample: every environment of the example renders, without a warning and without a fault.
func TestExample(t *testing.T) {
	repo := os.DirFS("../../examples/mesh")
	folders, err := filepath.Glob("../../examples/mesh/*/*/*/kustomization.yaml")
	if err != nil || len(folders) != 6 {
		t.Fatalf("%d overlays, %v", len(folders), err)
	}
	for _, folder := range append(folders, "../../examples/mesh/operator/base/kustomization.yaml", "../../examples/mesh/manifests/base/kustomization.yaml") {
		dir, err := filepath.Rel("../../examples/mesh", filepath.Dir(folder))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(dir, func(t *testing.T) {
			set, err := renderer().Render(t.Context(), repo, dir)
			if err != nil {
				t.Fatal(err)
			}
			if len(set.Warnings) > 0 || len(set.Objects) < 15 {
				t.Errorf("%d objects, warnings %v", len(set.Objects), set.Warnings)
			}
			for _, f := range findings(t, set) {
				t.Error(f)
			}
		})
	}
}

// findings are those that stop an environment.
func findings(t *testing.T, set *render.Set) []check.Finding {
	t.Helper()
	var bad []check.Finding
	all, err := check.Check(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Level == check.Error {
			bad = append(bad, f)
		}
	}
	return bad
}
