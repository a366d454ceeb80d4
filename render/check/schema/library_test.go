package schema_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"istio.io/istio/manifests"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render/check/schema"
)

// object reads one object; its metadata is added, since the definitions ask nothing of it.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	js, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(js); err != nil {
		t.Fatal(err)
	}
	o.SetName("web")
	o.SetNamespace("shop")
	return o
}

// apiVersions of the kinds in the table.
func istioObject(t testing.TB, kind, spec string) *unstructured.Unstructured {
	version := map[string]string{
		"EnvoyFilter": "networking.istio.io/v1alpha3", "ProxyConfig": "networking.istio.io/v1beta1",
		"AuthorizationPolicy": "security.istio.io/v1", "PeerAuthentication": "security.istio.io/v1",
		"RequestAuthentication": "security.istio.io/v1", "Telemetry": "telemetry.istio.io/v1",
		"WasmPlugin": "extensions.istio.io/v1alpha1", "TrafficExtension": "extensions.istio.io/v1alpha1",
	}[kind]
	if version == "" {
		version = "networking.istio.io/v1"
	}
	return object(t, "apiVersion: "+version+"\nkind: "+kind+"\nspec: "+spec)
}

// TestIstio holds a bad object for each kind and each sort of rule against Istio's definitions. Each has one fault, at one field.
func TestIstio(t *testing.T) {
	for i, tt := range bad {
		t.Run(fmt.Sprintf("%s/%d", tt.kind, i), func(t *testing.T) {
			one(t, schema.New(), istioObject(t, tt.kind, tt.spec), tt.field, tt.says)
		})
	}
}

// TestEveryRuleIsTried finds the rules in CEL of Istio's definitions that no bad object breaks.
func TestEveryRuleIsTried(t *testing.T) {
	data, err := fs.ReadFile(manifests.FS, "charts/base/files/crd-all.gen.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]string{}
	for _, tt := range bad {
		tried[tt.kind] += tt.says + "\n"
	}
	kinds := 0
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(document), &crd); err != nil {
			t.Fatal(err)
		}
		if crd.Name == "" {
			continue
		}
		kinds++
		kind := crd.Spec.Names.Kind
		if tried[kind] == "" {
			t.Errorf("no bad %s is tried", kind)
		}
		for message := range messages(crd.Spec.Versions[0].Schema.OpenAPIV3Schema) {
			if !strings.Contains(tried[kind], message) {
				t.Errorf("%s: no bad object breaks the rule %q", kind, message)
			}
		}
	}
	if kinds < 15 {
		t.Errorf("only %d kinds", kinds)
	}
}

// messages of the rules of a schema, at any depth.
func messages(s *apiextensions.JSONSchemaProps) map[string]bool {
	all := map[string]bool{}
	for _, r := range s.XValidations {
		all[r.Message] = true
	}
	for _, in := range s.Properties {
		maps.Copy(all, messages(&in))
	}
	if s.Items != nil && s.Items.Schema != nil {
		maps.Copy(all, messages(s.Items.Schema))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		maps.Copy(all, messages(s.AdditionalProperties.Schema))
	}
	return all
}

func one(t *testing.T, library *schema.Library, o *unstructured.Unstructured, field, says string) {
	t.Helper()
	found, err := library.Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(says, "\n")
	if len(found) != len(want) {
		t.Fatalf("found %+v, want %q", found, want)
	}
	for i, f := range found {
		if f.Field != field || !strings.Contains(f.Message, want[i]) {
			t.Errorf("found %+v, want %q at %s", f, want[i], field)
		}
	}
}

// What stops says why.
func TestStops(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the agent stops")
	cancel(reason)
	if found, err := schema.New().Check(ctx, istioObject(t, "DestinationRule", `{host: web}`)); !errors.Is(err, reason) {
		t.Errorf("got %v, %v", found, err)
	}
}

// Kinds that are not Istio's, and versions that it does not serve, are none of its business.
func TestOthers(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: ConfigMap\ndata: 1",
		"apiVersion: networking.istio.io/v2\nkind: VirtualService\nspec: 1",
	} {
		if found, err := schema.New().Check(t.Context(), object(t, text)); err != nil || found != nil {
			t.Errorf("%s: got %v, %v", text, found, err)
		}
	}
}

const catalogCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: shop.example.com
  names: {kind: Catalog, plural: catalogs}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - {rule: "self.low <= self.high", message: low is above high}
            - {rule: "self.high >= oldSelf.high", message: high may not sink}
            properties:
              low: {type: integer, default: 1}
              high: {type: integer, maximum: 100}
              tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
  - name: v1alpha1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

// TestDefinition brings a definition along. What it defaults is there for its rules, and rules on transitions are left out.
func TestDefinition(t *testing.T) {
	d, err := schema.Define(object(t, catalogCRD))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ version, spec, want string }{
		{"v1", "{high: 5, tags: [a, b]}", "[]"},
		{"v1", "{low: 7, high: 5}", "[{spec low is above high false}]"},
		{"v1", "{high: 0}", "[{spec low is above high false}]"},
		{"v1", "{high: 101}", "[{spec.high 101: should be less than or equal to 100 false}]"},
		{"v1", "{high: 5, tags: [a, a]}", `[{spec.tags[1] "a": is there twice false}]`},
		{"v1", "{high: 5, hihg: 6}", "[{spec.hihg the definition has no such field false}]"},
		{"v1alpha1", "{}", "[{apiVersion the definition serves v1, not v1alpha1 false}]"},
	} {
		found, err := d.Check(t.Context(), object(t, "apiVersion: shop.example.com/"+tt.version+"\nkind: Catalog\nspec: "+tt.spec))
		if got := fmt.Sprint(found); err != nil || got != tt.want {
			t.Errorf("%s %s: got %s, %v; want %s", tt.version, tt.spec, got, err, tt.want)
		}
	}
	broken := object(t, strings.Replace(catalogCRD, "type: object\n        properties", "type: [object]\n        properties", 1))
	if d, err := schema.Define(broken); err == nil {
		t.Errorf("a broken definition was read: %v", d)
	}
}
