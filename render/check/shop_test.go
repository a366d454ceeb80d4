package check_test

import (
	"bytes"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

const shop = "../../examples/shop"

// TestShop renders what users are shown as an example, and finds nothing wrong with it. All environments fit on one cluster.
func TestShop(t *testing.T) {
	owner := map[render.ID]string{}
	for _, env := range []string{"dev", "staging", "prod"} {
		t.Run(env, func(t *testing.T) {
			set := renderAndCheck(t, os.DirFS(shop), "overlays/"+env, "")
			for _, o := range set.Objects {
				if other := owner[o.ID()]; other != "" {
					t.Errorf("%s is in %s too", o.ID(), other)
				}
				owner[o.ID()] = env
				if ns := "shop-" + env; o.GetNamespace() != ns && o.GetName() != ns {
					t.Errorf("%s is not in %s", o.ID(), ns)
				}
			}
			if len(set.Objects) < 30 {
				t.Errorf("only %d objects", len(set.Objects))
			}
		})
	}
	t.Run("moorings", func(t *testing.T) {
		renderAndCheck(t, os.DirFS(shop), "moorings", "")
	})
}

// TestBrokenShop breaks one file after the other, as the demo does, and expects that the finding names that file and the line, also where it is a patch.
func TestBrokenShop(t *testing.T) {
	for _, tt := range []struct{ name, file, from, to, want string }{
		{
			"unknown field", "base/web/route.yaml", "timeout: 15s", "timeOut: 15s",
			"base/web/route.yaml:13: error MOOR002 VirtualService/shop-prod/web: spec.http[0].timeOut: unknown field; did you mean timeout?",
		},
		{
			"enum", "overlays/prod/gateway.yaml", "mode: SIMPLE", "mode: SIMPEL",
			"overlays/prod/gateway.yaml:25: error MOOR004 Gateway/shop-prod/shop: spec.servers[1].tls.mode: unknown value \"SIMPEL\"; did you mean SIMPLE?",
		},
		{
			"field in a patch", "overlays/prod/canary.yaml", "weight: 10", "weighting: 10",
			"overlays/prod/canary.yaml:17: error MOOR002 VirtualService/shop-prod/catalog: spec.http[0].route[1].weighting: unknown field; did you mean weight?",
		},
		{
			"refused by Istio", "overlays/prod/fraud-check.yaml", "number: 443", "number: 70000",
			"overlays/prod/fraud-check.yaml:14: error IST0106 ServiceEntry/shop-prod/fraud-check: spec.ports[0].number: port number 70000",
		},
		{
			"unquoted label", "overlays/prod/namespace.yaml", "istio-injection: enabled", "istio.io/rev: 1.7",
			"overlays/prod/namespace.yaml:6: error MOOR011 Namespace/shop-prod: metadata.labels[istio.io/rev]: must be a string",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := copyOf(t, shop)
			broken := bytes.Replace(fsys[tt.file].Data, []byte(tt.from), []byte(tt.to), 1)
			if bytes.Equal(broken, fsys[tt.file].Data) {
				t.Fatalf("%s holds no %q", tt.file, tt.from)
			}
			fsys[tt.file].Data = broken
			renderAndCheck(t, fsys, "overlays/prod", tt.want)
		})
	}
}

// renderAndCheck expects no finding, or one that holds the text.
func renderAndCheck(t *testing.T, fsys fs.FS, dir, want string) *render.Set {
	t.Helper()
	set, err := (&render.Renderer{}).Render(t.Context(), fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := check.Check(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("found %v", found)
	case want != "" && (len(found) != 1 || !strings.Contains(found[0].String(), want)):
		t.Errorf("found %v, want %s", found, want)
	}
	return set
}

func copyOf(t *testing.T, dir string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	source := os.DirFS(dir)
	err := fs.WalkDir(source, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(source, path)
		files[path] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
