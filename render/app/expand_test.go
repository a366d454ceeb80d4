package app_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/collections"
	_ "istio.io/istio/pkg/config/validation/envoyfilter" // the validator of EnvoyFilter registers itself
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/app"
)

var update = flag.Bool("update", false, "rewrite want.* of the archives in testdata")

// TestExpand renders every archive of testdata. An archive is a sentence that says why it exists, the files of a repository, and what is
// wanted: want.yaml, want.warn (with or without it) or want.err. The folder that is rendered is the one that the file path names,
// else overlay if there is one, else the root.
func TestExpand(t *testing.T) {
	for _, name := range archiveNames(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "testdata/"), ".txtar"), func(t *testing.T) { expandArchive(t, name) })
	}
}

func archiveNames(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal("no archives", err)
	}
	return names
}

func renderer() *render.Renderer {
	return &render.Renderer{Expanders: []render.Expander{app.Expander{}}}
}

// unpacked gives the repository in an archive, and the folder that is rendered.
func unpacked(a *txtar.Archive) (repository fstest.MapFS, dir string) {
	repository, dir = fstest.MapFS{}, "."
	named := ""
	for _, f := range a.Files {
		switch {
		case strings.HasPrefix(f.Name, "want."):
		case f.Name == "path":
			named = strings.TrimSpace(string(f.Data))
		default:
			repository[f.Name] = &fstest.MapFile{Data: f.Data}
			if strings.HasPrefix(f.Name, "overlay/") {
				dir = "overlay"
			}
		}
	}
	return repository, cmp.Or(named, dir)
}

func expandArchive(t *testing.T, name string) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(bytes.TrimSpace(archive.Comment)) == 0 {
		t.Error("it does not say why it exists")
	}
	repository, dir := unpacked(archive)
	want := map[string]string{}
	var files []txtar.File
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "want.") {
			want[f.Name] = string(f.Data)
		} else {
			files = append(files, f)
		}
	}
	got := rendered(t, repository, dir)
	if diff := gocmp.Diff(got, rendered(t, repository, dir)); diff != "" {
		t.Errorf("a second render is another one (-first +second):\n%s", diff)
	}
	if *update {
		for _, n := range []string{"want.yaml", "want.warn", "want.err"} {
			if text, ok := got[n]; ok {
				files = append(files, txtar.File{Name: n, Data: []byte(text)})
			}
		}
		archive.Files = files
		if err := os.WriteFile(name, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// rendered gives what the archive should want, and holds every object against Istio.
func rendered(t *testing.T, repository fs.FS, dir string) map[string]string {
	t.Helper()
	set, err := renderer().Render(t.Context(), repository, dir)
	if err != nil {
		var placed *render.Error
		if !errors.As(err, &placed) || placed.Line == 0 {
			t.Errorf("the error has no place: %v", err)
		}
		return map[string]string{"want.err": strings.TrimSuffix(err.Error(), "\n") + "\n"}
	}
	got := map[string]string{}
	var out, warnings strings.Builder
	for _, o := range set.Objects {
		if o.From == (render.ID{}) {
			continue // stands beside the AppConfiguration
		}
		accepted(t, o)
		text, err := yaml.Marshal(o.Unstructured().Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("--- # " + o.Origin.String() + "\n" + string(text))
	}
	for _, w := range set.Warnings {
		warnings.WriteString(w.String() + "\n")
	}
	if out.Len() > 0 {
		got["want.yaml"] = out.String()
	}
	if warnings.Len() > 0 {
		got["want.warn"] = warnings.String()
	}
	return got
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// accepted reads an object strictly into Istio's own type and asks Istio whether it is right.
func accepted(t *testing.T, o render.Object) {
	t.Helper()
	if len(o.GetName()) > 63 || !dnsLabel.MatchString(o.GetName()) {
		t.Errorf("%s: the name is not one of RFC 1123", o.ID())
	}
	gvk := config.FromKubernetesGVK(o.GroupVersionKind())
	schema, ok := collections.Pilot.FindByGroupVersionAliasesKind(gvk)
	if !ok {
		t.Errorf("%s: Istio does not know the kind", o.ID())
		return
	}
	spec, err := schema.NewInstance()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o.Unstructured().Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	if err := config.ApplyJSONStrict(spec, string(text)); err != nil {
		t.Errorf("%s: %v", o.ID(), err)
		return
	}
	meta := config.Meta{
		GroupVersionKind: schema.GroupVersionKind(), Name: o.GetName(), Namespace: o.GetNamespace(), Labels: o.GetLabels(),
		Annotations: o.GetAnnotations(), Domain: "cluster.local",
	}
	if _, err := schema.ValidateConfig(config.Config{Meta: meta, Spec: spec}); err != nil {
		t.Errorf("%s: Istio refuses it: %v", o.ID(), err)
	}
}
