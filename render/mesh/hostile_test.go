package mesh_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/mesh"
)

// made is an IstioOperator with a spec that no YAML is needed for.
func made(spec any) []render.Object {
	return []render.Object{{
		Content: render.ContentOf(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "install.istio.io/v1alpha1", "kind": "IstioOperator", "metadata": map[string]any{"name": "mesh"}, "spec": spec,
		}}),
		Origin: render.Origin{File: "mesh.yaml", Line: 3},
	}}
}

// TestHostile: whatever an IstioOperator holds, it ends in objects or in an error that names the file, and soon.
func TestHostile(t *testing.T) {
	deep := any("x")
	for range 10_000 {
		deep = map[string]any{"a": deep}
	}
	k8s := func(v any) any {
		return map[string]any{"profile": "minimal", "components": map[string]any{"pilot": map[string]any{"k8s": v}}}
	}
	patch := func(kind, name, path string, value any) any {
		return k8s(map[string]any{"overlays": []any{map[string]any{
			"kind": kind, "name": name, "patches": []any{map[string]any{"path": path, "value": value}},
		}}})
	}
	for name, tt := range map[string]struct {
		spec any
		want string // empty when anything but a crash will do
	}{
		"text":               {"x", "is no mapping"},
		"deep":               {map[string]any{"unvalidatedValues": deep}, "is nested deeper than"},
		"large":              {map[string]any{"values": map[string]any{"x": strings.Repeat("x", 2<<20)}}, "is larger than"},
		"values are text":    {map[string]any{"values": "x"}, "spec.values: is no mapping"},
		"components":         {map[string]any{"components": []any{"x"}}, "spec.components: is a list, not a mapping"},
		"gateways":           {map[string]any{"components": map[string]any{"ingressGateways": map[string]any{"name": "x"}}}, "spec.components.ingressGateways"},
		"null gateway":       {map[string]any{"components": map[string]any{"ingressGateways": []any{nil}}}, ""},
		"null spec parts":    {map[string]any{"components": nil, "values": nil, "meshConfig": nil}, ""},
		"chart takes no map": {map[string]any{"profile": "minimal", "unvalidatedValues": map[string]any{"global": "x"}}, "mesh.yaml:3: "},
		"number for a map":   {map[string]any{"profile": "minimal", "unvalidatedValues": map[string]any{"pilot": int64(1)}}, "mesh.yaml:3: "},
		"overlay kind":       {k8s(map[string]any{"overlays": []any{map[string]any{"kind": int64(1)}}}), "overlays.0.kind: is 1, not text"},
		"overlay regexp":     {patch("Deployment", "istiod", "spec.template.spec.containers.[0].args.[((((((a+)+)+)+)+)+$]", "x"), "not found"},
		"overlay bad regexp": {patch("Deployment", "istiod", "spec.template.spec.containers.[0].args.[(]", "x"), "not found"},
		"overlay far index":  {patch("Deployment", "istiod", "spec.template.spec.containers.[999999999].x.[999999999].y", "x"), ""},
		"overlay no path":    {patch("Deployment", "istiod", "", "x"), ""},
		"overlay root":       {patch("Deployment", "istiod", "", nil), ""},
		"overlay kills kind": {patch("Deployment", "istiod", "kind", nil), ""},
		"overlay scalar":     {patch("Deployment", "istiod", "kind.x.y", "x"), ""},
		"mesh config enum":   {map[string]any{"meshConfig": map[string]any{"accessLogEncoding": "XML"}}, "spec.meshConfig.accessLogEncoding"},
		"mesh config value":  {map[string]any{"meshConfig": map[string]any{"connectTimeout": "-1s"}}, "mesh.yaml:3: "},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, _, err := mesh.Expander{}.Expand(ctx, made(tt.spec))
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if err == nil {
				return
			}
			if ctx.Err() != nil {
				t.Error("it takes more than a minute")
			}
			for _, e := range render.Errors(err) {
				if e.File != "mesh.yaml" || len(e.Error()) > 2000 || strings.Contains(e.Error(), "goroutine") {
					t.Errorf("the error is %v", e)
				}
			}
			if len(render.Errors(err)) == 0 {
				t.Errorf("%v is nothing that an author can mend", err)
			}
		})
	}
}

// TestPanic: Istio takes a list for granted here.
func TestPanic(t *testing.T) {
	_, _, err := mesh.Expander{}.Expand(t.Context(), made(map[string]any{"components": map[string]any{"ingressGateways": nil}}))
	p, ok := errors.AsType[*mesh.Panic](err)
	if !ok || len(p.Stack) == 0 || !strings.HasPrefix(err.Error(), "mesh.yaml:3: IstioOperator/mesh: ") {
		t.Errorf("got %v", err)
	}
}

// TestContextEnds: nobody waits for Istio when nobody wants its answer.
func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := (mesh.Expander{}).Expand(ctx, made(map[string]any{})); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestMachineDoesNotMatter: neither the environment nor the folder that the program runs in changes a byte, and nothing is written.
func TestMachineDoesNotMatter(t *testing.T) {
	object := made(map[string]any{"profile": "minimal"})
	digest := func() string {
		t.Helper()
		objects, _, err := mesh.Expander{}.Expand(t.Context(), object)
		if err != nil {
			t.Fatal(err)
		}
		return (&render.Set{Objects: objects}).Digest()
	}
	before := digest()
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"HOME", "TMPDIR", "KUBECONFIG", "XDG_CACHE_HOME", "HELM_CONFIG_HOME"} {
		t.Setenv(name, filepath.Join(dir, "none"))
	}
	for name, value := range map[string]string{"HUB": "example.com/testing", "TAG": "latest", "AUTO_GKE_DETECTION": "true", "HELM_NAMESPACE": "x", "KUBERNETES_SERVICE_HOST": "192.0.2.1"} {
		t.Setenv(name, value)
	}
	if diff := cmp.Diff(before, digest()); diff != "" {
		t.Error(diff)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestOthersAreLeftAlone: what is no IstioOperator comes out as it went in, also a kind of that name in another group.
func TestOthersAreLeftAlone(t *testing.T) {
	u := made(nil)[0].Unstructured()
	u.SetAPIVersion("example.com/v1")
	other := []render.Object{{Content: render.ContentOf(u)}}
	got, warnings, err := mesh.Expander{}.Expand(t.Context(), other)
	if err != nil || len(warnings) > 0 || len(got) != 1 || got[0].Content != other[0].Content {
		t.Errorf("got %v, %v, %v", got, warnings, err)
	}
}

// TestDefaults: an agent may have a mirror of its own for all installations that name none.
func TestDefaults(t *testing.T) {
	e := mesh.Expander{Hub: "example.com/mirror", Tag: "1.31.2", Version: "1.31.2-a"}
	got, _, err := e.Expand(t.Context(), made(map[string]any{"profile": "minimal"}))
	if err != nil {
		t.Fatal(err)
	}
	set := &render.Set{Objects: got}
	if s := summary(set); !strings.Contains(s, "Deployment/istio-system/istiod example.com/mirror/pilot:1.31.2\n") {
		t.Error(s)
	}
	for _, o := range got {
		if v := o.GetLabels()["app.kubernetes.io/version"]; v != "1.31.2-a" {
			t.Errorf("%s is of version %q", o.ID(), v)
		}
	}
}
