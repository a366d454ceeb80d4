package app_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/collections"
	_ "istio.io/istio/pkg/config/validation/envoyfilter" // the validator of EnvoyFilter registers itself

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/app"
)

// policyKinds are the folders of testdata that TestPolicyArchives reads.
var policyKinds = []string{
	"authorizationpolicy", "peerauthentication", "requestauthentication", "telemetry", "envoyfilter", "proxyconfig", "wasmplugin",
}

var rewrite = flag.Bool("update", false, "rewrite want.yaml and want.err in testdata")

// TestPolicyArchives renders every archive of these kinds: its comment says why it exists, "path" the folder that is rendered. Each object that comes
// out has to pass Istio's own validation, unknown fields refused.
func TestPolicyArchives(t *testing.T) {
	for _, kind := range policyKinds {
		archives, err := filepath.Glob(filepath.Join("testdata", kind, "*.txtar"))
		if err != nil || len(archives) < 5 {
			t.Fatalf("%s has %d archives, %v", kind, len(archives), err)
		}
		for _, name := range archives {
			t.Run(kind+"/"+strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) { policyArchive(t, name) })
		}
	}
}

func policyArchive(t *testing.T, name string) {
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(a.Comment)) == 0 {
		t.Error("the archive does not say why it exists")
	}
	repo, dir, want := fstest.MapFS{}, ".", ""
	kept := &txtar.Archive{Comment: a.Comment}
	for _, f := range a.Files {
		if strings.HasPrefix(f.Name, "want.") {
			want += f.Name + "\n" + string(f.Data)
			continue
		}
		kept.Files = append(kept.Files, f)
		if f.Name == "path" {
			dir = strings.TrimSpace(string(f.Data))
		} else {
			repo[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
		}
	}
	r := &render.Renderer{Expanders: []render.Expander{app.Expander{}}}
	set, err := r.Render(t.Context(), repo, dir)
	file, text := "want.yaml", ""
	if err != nil {
		file, text = "want.err", err.Error()+"\n"
	} else {
		text = written(t, set)
	}
	if *rewrite {
		kept.Files = append(kept.Files, txtar.File{Name: file, Data: []byte(text)})
		if err := os.WriteFile(name, txtar.Format(kept), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, file+"\n"+text); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// written gives the objects with their origins, then the warnings, and holds each object of Istio's against Istio.
func written(t *testing.T, set *render.Set) string {
	t.Helper()
	var b strings.Builder
	for _, o := range set.Objects {
		b.WriteString("--- # " + o.Origin.String() + "\n")
		one := render.Set{Objects: []render.Object{o}}
		if err := one.YAML(&b); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(o.GroupVersionKind().Group, "istio.io") {
			acceptedByIstio(t, o)
		}
	}
	for _, w := range set.Warnings {
		b.WriteString("# warning: " + w.String() + "\n")
	}
	return b.String()
}

// acceptedByIstio decodes a spec strictly and runs Istio's ValidateConfig.
func acceptedByIstio(t *testing.T, o render.Object) {
	t.Helper()
	gvk := o.GroupVersionKind()
	schema, ok := collections.Pilot.FindByGroupVersionAliasesKind(config.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
	if !ok {
		t.Fatalf("Istio knows no %s", gvk)
	}
	spec, err := schema.NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if err := config.ApplyJSONStrict(spec, string(text)); err != nil {
		t.Errorf("%s: %v", o.ID(), err)
	}
	_, err = schema.ValidateConfig(config.Config{Spec: spec, Meta: config.Meta{
		GroupVersionKind: schema.GroupVersionKind(), Name: o.GetName(), Namespace: o.GetNamespace(), Annotations: o.GetAnnotations(),
	}})
	if err != nil {
		t.Errorf("%s: %v", o.ID(), err)
	}
}
