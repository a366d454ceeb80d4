package mesh_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/app"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/test/mesh"
)

const examples = "../../examples"

// without says of recipes whose Istio objects change nothing by themselves why that is so.
var without = map[string]string{
	"permissive-to-strict/step-1": "PERMISSIVE is Istio's default; the step is there for meshes and namespaces that set another",
}

// TestRecipes holds the two forms of every recipe against each other: proxies are told the same.
func TestRecipes(t *testing.T) {
	dir := os.DirFS(examples)
	for _, recipe := range recipes(t, dir) {
		t.Run(recipe, func(t *testing.T) {
			options := meshConfig(t, dir, recipe)
			short := objects(t, dir, path.Join("recipes", recipe, "app"))
			plain := objects(t, dir, path.Join("recipes", recipe, "istio"))
			if diff := gocmp.Diff(workloads(plain), workloads(short)); diff != "" {
				t.Errorf("not the same applications (-istio +app):\n%s", diff)
			}
			want := mesh.Of(t, plain, options)
			if diff := difference(want, mesh.Of(t, short, options)); diff != "" {
				t.Errorf("proxies are told other things (-istio +app):\n%s", diff)
			}
			idle := difference(want, mesh.Of(t, workloads(plain), options)) == ""
			if why := without[recipe]; idle != (why != "") {
				t.Errorf("proxies are told the same without Istio's objects: %v, but it is known that: %q", idle, why)
			}
		})
	}
}

// TestRecipesExplained wants a few lines about every recipe, and a line in the table of all.
func TestRecipesExplained(t *testing.T) {
	dir := os.DirFS(examples)
	index, err := fs.ReadFile(dir, "recipes/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, recipe := range recipes(t, dir) {
		folder, _, _ := strings.Cut(recipe, "/")
		text, err := fs.ReadFile(dir, path.Join("recipes", folder, "README.md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if command := "mooring render examples/recipes/" + recipe + "/app"; !bytes.Contains(text, []byte(command)) {
			t.Errorf("recipes/%s/README.md does not say: %s", folder, command)
		}
		if !bytes.Contains(index, []byte("]("+folder+"/README.md)")) {
			t.Errorf("recipes/README.md does not lead to %s", folder)
		}
	}
}

// TestComparisonCanFail changes one value in one form of a recipe, and expects that the proxies named, and only such, are told something else.
func TestComparisonCanFail(t *testing.T) {
	for _, tt := range []struct{ recipe, file, from, to, want string }{
		{"canary", "istio/virtual-service.yaml", "weight: 10", "weight: 11", "sidecar elsewhere app=some-client: Routes[\"80\"]"},
		{"tcp-routing", "istio/virtual-service.yaml", "weight: 20", "weight: 21", "Listeners"},
		{"circuit-breaking", "istio/destination-rule.yaml", "maxConnections: 100", "maxConnections: 101", "Clusters"},
		{"ingress-tls", "istio/gateway.yaml", "TLSV1_2", "TLSV1_3", "gateway istio-system istio=ingressgateway: Listeners"},
		{"ingress-tls", "istio/gateway.yaml", "httpsRedirect: true", "httpsRedirect: false", "gateway istio-system istio=ingressgateway: Routes"},
		{"egress-tls-origination", "istio/destination-rule.yaml", "mode: SIMPLE", "mode: DISABLE", "Clusters"},
		{"permissive-to-strict/step-2", "istio/peer-authentication.yaml", "STRICT", "PERMISSIVE", "app=orders: Listeners[\"virtualInbound\"]"},
		{"jwt", "istio/request-authentication.yaml", "- orders", "- order", "app=orders: Listeners[\"virtualInbound\"]"},
		{"deny-all-allow-some", "istio/allow-web-to-orders.yaml", "- POST", "- PUT", "app=orders: Listeners[\"virtualInbound\"]"},
		{"deny-all-allow-some", "istio/deny-all.yaml", "spec: {}", "spec: {rules: [{}]}", "app=some-client: Listeners[\"virtualInbound\"]"},
		{"tracing-and-access-logs", "istio/telemetry.yaml", "Percentage: 5", "Percentage: 6", "app=orders: Listeners"},
		{"tracing-and-access-logs", "istio/telemetry.yaml", ">= 400", ">= 500", "app=orders: Listeners"},
	} {
		t.Run(tt.recipe+" "+tt.to, func(t *testing.T) {
			dir := os.DirFS(examples)
			options := meshConfig(t, dir, tt.recipe)
			whole := path.Join("recipes", tt.recipe, "istio")
			changed := copyOf(t, dir, whole)
			file := changed[path.Join("recipes", tt.recipe, tt.file)]
			if file == nil || bytes.Count(file.Data, []byte(tt.from)) != 1 {
				t.Fatalf("%s does not hold %q once", tt.file, tt.from)
			}
			file.Data = bytes.Replace(file.Data, []byte(tt.from), []byte(tt.to), 1)
			diff := difference(mesh.Of(t, objects(t, dir, whole), options), mesh.Of(t, objects(t, changed, whole), options))
			if !strings.Contains(diff, tt.want) {
				t.Errorf("the difference does not say %s:\n%s", tt.want, diff)
			}
		})
	}
}

// TestOrderMeansNothing gives the same objects in another order, under other names of the policies.
func TestOrderMeansNothing(t *testing.T) {
	dir := os.DirFS(examples)
	for _, set := range []string{"shop/overlays/prod", "recipes/deny-all-allow-some/istio"} {
		t.Run(set, func(t *testing.T) {
			list := objects(t, dir, set)
			want := mesh.Of(t, list)
			random := rand.New(rand.NewPCG(1, 2))
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			for i, o := range list {
				if o.GetKind() == "AuthorizationPolicy" || o.GetKind() == "DestinationRule" {
					list[i] = o.DeepCopy()
					list[i].SetName(strings.Repeat("z", random.IntN(5)) + o.GetName() + "-other")
				}
			}
			if diff := difference(want, mesh.Of(t, list)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// recipes are the folders with both forms, by their path below examples/recipes.
func recipes(t *testing.T, dir fs.FS) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(dir, "recipes", func(p string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		_, errApp := fs.Stat(dir, path.Join(p, "app"))
		_, errPlain := fs.Stat(dir, path.Join(p, "istio"))
		switch {
		case errApp == nil && errPlain == nil:
			found = append(found, strings.TrimPrefix(p, "recipes/"))
			return fs.SkipDir
		case errApp == nil || errPlain == nil:
			t.Errorf("%s has one form only", p)
			return fs.SkipDir
		}
		inner, err := fs.ReadDir(dir, p)
		folders := 0
		for _, e := range inner {
			if e.IsDir() {
				folders++
			}
		}
		if folders == 0 {
			t.Errorf("%s has neither form", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 16 {
		t.Errorf("only %d recipes: %v", len(found), found)
	}
	return found
}

// objects renders a folder and expects that nobody has anything to say about it.
func objects(t *testing.T, dir fs.FS, folder string) []*unstructured.Unstructured {
	t.Helper()
	set, err := (&render.Renderer{Expanders: []render.Expander{app.Expander{}}}).Render(t.Context(), dir, folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range set.Warnings {
		t.Errorf("%s: %v", folder, w)
	}
	findings, err := check.Check(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Level != check.Info {
			t.Errorf("%s: %v", folder, f)
		}
	}
	var out []*unstructured.Unstructured
	for _, o := range set.Objects {
		out = append(out, o.Unstructured())
	}
	return out
}

// workloads are the objects that are not Istio's.
func workloads(list []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range list {
		if !strings.HasSuffix(o.GroupVersionKind().Group, "istio.io") {
			out = append(out, o)
		}
	}
	return out
}

// meshConfig is what a recipe wants of the installation.
func meshConfig(t *testing.T, dir fs.FS, recipe string) mesh.Options {
	t.Helper()
	text, err := fs.ReadFile(dir, path.Join("recipes", recipe, "meshconfig.yaml"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return mesh.Options{MeshConfig: string(text)}
}

func copyOf(t *testing.T, source fs.FS, folder string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(source, folder, func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(source, p)
		files[p] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
