package mesh_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"istio.io/istio/istioctl/pkg/cli"
	istioctl "istio.io/istio/operator/cmd/mesh"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/mesh"
)

// renderer is the one that the agent has, as far as installations go.
func renderer() *render.Renderer {
	return &render.Renderer{Expanders: []render.Expander{mesh.Expander{}}}
}

// operator is an IstioOperator with this spec, in YAML's flow style or indented by two.
func operator(spec string) string {
	return "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nmetadata: {name: mesh, namespace: istio-system}\nspec: " + spec + "\n"
}

func expand(t testing.TB, files ...string) (*render.Set, error) {
	t.Helper()
	repo := fstest.MapFS{}
	for n, text := range files {
		repo[fmt.Sprintf("%d.yaml", n)] = &fstest.MapFile{Data: []byte(text)}
	}
	return renderer().Render(t.Context(), repo, ".")
}

func mustExpand(t testing.TB, files ...string) *render.Set {
	t.Helper()
	set, err := expand(t, files...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// inputs are installations as people write them, beside the bare profile.
var inputs = map[string]string{
	"bare":             ``,
	"revision":         `, revision: 1-31-4`,
	"tags":             `, revision: canary, values: {revisionTags: [prod, "2"], defaultRevision: canary}`,
	"validator":        `, values: {defaultRevision: default}`,
	"mesh":             `, meshConfig: {accessLogFile: /dev/stdout, enableTracing: true, defaultConfig: {holdApplicationUntilProxyStarts: true, proxyMetadata: {A: "true"}}}`,
	"images":           `, hub: example.com/mirror, tag: 1.31.2-distroless, components: {pilot: {hub: example.com/other, tag: 1.31.3}}`,
	"images by values": `, values: {global: {hub: example.com/mirror, tag: 1.31.1}}`,
	"components": `, components: {cni: {enabled: true, namespace: kube-system}, egressGateways: [{name: istio-egressgateway, enabled: true}, {name: other, namespace: apps, enabled: true, label: {app: other}}],
  pilot: {k8s: {replicaCount: 2, resources: {requests: {cpu: 500m, memory: 2Gi}}, env: [{name: PILOT_TRACE_SAMPLING, value: "1"}], hpaSpec: {minReplicas: 2, maxReplicas: 5},
    podDisruptionBudget: {maxUnavailable: 1}, podAnnotations: {a: b}, nodeSelector: {zone: a}, tolerations: [{key: k, operator: Exists}], strategy: {rollingUpdate: {maxSurge: 2}}}}}`,
	"values":          `, values: {pilot: {autoscaleEnabled: false, env: {PILOT_ENABLE_STATUS: true}}, global: {proxy: {resources: {requests: {cpu: 10m}}}, network: n1, meshID: m, multiCluster: {clusterName: c}}}`,
	"gateway service": `, components: {ingressGateways: [{name: public, enabled: true, label: {istio: public}, k8s: {service: {type: NodePort, ports: [{name: https, port: 443, targetPort: 8443}]}, serviceAnnotations: {a: b}}}]}`,
	"overlays": `, components: {pilot: {k8s: {overlays: [{kind: ServiceAccount, name: istiod, patches: [{path: metadata.annotations.a, value: b}]},
  {kind: Deployment, name: istiod, patches: [{path: "spec.template.spec.containers.[name:discovery].args.[-1]", value: --x}, {path: spec.replicas, value: 3},
    {path: "spec.template.spec.containers.[name:discovery].resources", value: {limits: {cpu: "1"}}}, {path: spec.strategy}]}]}}}`,
	"unvalidated": `, unvalidatedValues: {pilot: {extraContainerArgs: [--x]}, base: {validationFailurePolicy: Fail}}`,
	"bundle":      `, values: {base: {validationCABundle: QUJD}}`,
	"namespace":   `, values: {global: {istioNamespace: mesh-system}}`,
	"no CRDs":     `, values: {base: {enableIstioConfigCRDs: false}}`,
	"older":       `, compatibilityVersion: "1.30"`,
	"platform":    `, values: {global: {platform: openshift}}`,
}

// generated is what istioctl manifest generate writes.
func generated(t *testing.T, spec string) map[render.ID]*unstructured.Unstructured {
	t.Helper()
	// istioctl knows its own hub and tag when it is built for a release; flags would win over the file, so they go below what it has.
	var object map[string]any
	if err := yaml.Unmarshal([]byte(operator(spec)), &object); err != nil {
		t.Fatal(err)
	}
	given := object["spec"].(map[string]any)
	args := &istioctl.ManifestGenerateArgs{Output: filepath.Join(t.TempDir(), "out.yaml")}
	for name, value := range map[string]string{"hub": mesh.DefaultHub, "tag": mesh.DefaultTag} {
		if _, found := given[name]; !found {
			args.Set = append(args.Set, name+"="+value)
		}
	}
	file := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(file, []byte(operator(spec)), 0o600); err != nil {
		t.Fatal(err)
	}
	args.InFilenames = []string{file}
	command := istioctl.ManifestGenerateCmd(cli.NewCLIContext(nil), &istioctl.RootArgs{}, args)
	command.SetArgs(nil)
	if err := command.RunE(command, nil); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(args.Output)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[render.ID]*unstructured.Unstructured{}
	for part := range strings.SplitSeq(string(text), istioctl.YAMLSeparator) {
		u := new(unstructured.Unstructured)
		if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			objects[render.IDOf(u)] = u
		}
	}
	return objects
}

var placeholder = regexp.MustCompile(`(app\.kubernetes\.io/version: |helm\.sh/chart: \S+-)1\.0\.0\n`)

// text of an object, with the differences that the package comment names: istioctl's as they would be.
func text(t testing.TB, u *unstructured.Unstructured, istioctl bool) string {
	t.Helper()
	out, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	if !istioctl {
		return string(out)
	}
	if u.GetKind() == "ValidatingWebhookConfiguration" {
		out = bytes.ReplaceAll(out, []byte("  failurePolicy: Ignore\n"), nil)
	}
	out = bytes.ReplaceAll(out, []byte("install.operator.istio.io/owning-resource: unknown\n"), []byte("install.operator.istio.io/owning-resource: mesh\n"))
	return placeholder.ReplaceAllString(string(out), "${1}"+mesh.DefaultVersion+"\n")
}

// TestSameAsIstioctl: object for object, all profiles with some of the inputs, and the default profile with all.
func TestSameAsIstioctl(t *testing.T) {
	if got := strings.Join(mesh.Profiles(), " "); got != "ambient default demo empty minimal openshift openshift-ambient preview remote stable" {
		t.Errorf("profiles are %s", got)
	}
	for _, profile := range mesh.Profiles() {
		for name, input := range inputs {
			if profile != "default" && name != "bare" && name != "components" {
				continue
			}
			t.Run(profile+"/"+name, func(t *testing.T) {
				spec := "{profile: " + profile + input + "}"
				want := map[string]string{}
				for id, u := range generated(t, spec) {
					want[id.String()] = text(t, u, true)
				}
				got := map[string]string{}
				for _, o := range mustExpand(t, operator(spec)).Objects {
					got[o.ID().String()] = text(t, o.Unstructured(), false)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-istioctl +ours:\n%s", diff)
				}
			})
		}
	}
}

// TestValidatorOfAllObjects: istiod is asked about the objects that have the revision's label, and about all where spec.values.defaultRevision says so.
func TestValidatorOfAllObjects(t *testing.T) {
	for spec, want := range map[string]string{
		"{}":                                   "istio-validator-istio-system with the label",
		"{values: {defaultRevision: default}}": "istio-validator-istio-system with the label, istiod-default-validator",
		"{revision: a, values: {defaultRevision: a}}": "istio-validator-a-istio-system with the label, istiod-default-validator",
	} {
		var got []string
		for _, o := range mustExpand(t, operator(spec)).Objects {
			if o.GetKind() != "ValidatingWebhookConfiguration" {
				continue
			}
			name := o.GetName()
			hooks, _, _ := unstructured.NestedSlice(o.Unstructured().Object, "webhooks")
			if _, found := hooks[0].(map[string]any)["objectSelector"]; found {
				name += " with the label"
			}
			got = append(got, name)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %q, want %s", spec, got, want)
		}
	}
}

// TestNothingOfTheSources: a module of Istio's sources is not a release, and says testing, latest, unknown and 1.0.0 where a release says what it is.
func TestNothingOfTheSources(t *testing.T) {
	bad := regexp.MustCompile(`/testing\b|:latest\b|"?(hub|tag|version)"?: "?(latest|unknown)|operator\.istio\.io/[a-z-]+: "?(unknown|testing|latest)|1\.0\.0\b`)
	for _, profile := range mesh.Profiles() {
		set := mustExpand(t, operator("{profile: "+profile+", components: {cni: {enabled: true}, ztunnel: {enabled: true}, egressGateways: [{name: istio-egressgateway, enabled: true}]}}"))
		images := 0
		for _, o := range set.Objects {
			if o.GetKind() == "CustomResourceDefinition" {
				continue // its examples are text
			}
			out := text(t, o.Unstructured(), false)
			if found := bad.FindAllString(out, -1); found != nil {
				t.Errorf("%s: %s has %q", profile, o.ID(), found)
			}
			images += strings.Count(out, mesh.DefaultHub)
			if labels, _, _ := unstructured.NestedMap(o.Unstructured().Object, "spec", "selector", "matchLabels"); labels["app.kubernetes.io/version"] != nil {
				t.Errorf("%s: %s selects by version, which cannot change", profile, o.ID())
			}
			if hooks, _, _ := unstructured.NestedSlice(o.Unstructured().Object, "webhooks"); strings.HasPrefix(o.GetKind(), "Validating") {
				for _, h := range hooks {
					if policy := h.(map[string]any)["failurePolicy"]; policy == "Ignore" {
						t.Errorf("%s: %s fails open", profile, o.ID())
					}
				}
			}
		}
		if images == 0 {
			t.Errorf("%s: no image is from %s", profile, mesh.DefaultHub)
		}
	}
}

// TestOrigins: what was made is of the IstioOperator that it was made from.
func TestOrigins(t *testing.T) {
	set := mustExpand(t, operator("{profile: minimal}"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system}\n")
	from := render.ID{Group: "install.istio.io", Kind: "IstioOperator", Namespace: "istio-system", Name: "mesh"}
	for _, o := range set.Objects {
		want, file := from, "0.yaml"
		if o.GetKind() == "Namespace" {
			want, file = render.ID{}, "1.yaml"
		}
		if o.From != want || o.Origin.File != file || o.Origin.Line != 1 {
			t.Errorf("%s is from %v, %v", o.ID(), o.From, o.Origin)
		}
	}
	if len(set.Warnings) > 0 || len(set.Objects) < 30 {
		t.Errorf("%d objects, warnings %v", len(set.Objects), set.Warnings)
	}
}

// TestManyAtOnce: the same bytes every time, also side by side, and from objects that others read at the same time.
func TestManyAtOnce(t *testing.T) {
	repo := fstest.MapFS{"a.yaml": {Data: []byte(operator("{profile: demo" + inputs["overlays"] + "}"))}}
	built, err := new(render.Renderer).Render(t.Context(), repo, ".")
	if err != nil {
		t.Fatal(err)
	}
	before := text(t, built.Objects[0].Unstructured(), false)
	digests := make([]string, 4)
	var group sync.WaitGroup
	for n := range digests {
		group.Go(func() {
			for range 3 {
				objects, _, err := mesh.Expander{}.Expand(t.Context(), built.Objects)
				if err != nil {
					t.Error(err)
					return
				}
				digest := (&render.Set{Objects: objects}).Digest()
				if digests[n] != "" && digests[n] != digest {
					t.Error("not the same twice")
				}
				digests[n] = digest
			}
		})
	}
	group.Wait()
	if slices.Sort(digests); digests[0] != digests[len(digests)-1] {
		t.Errorf("not the same side by side: %v", digests)
	}
	if after := text(t, built.Objects[0].Unstructured(), false); after != before {
		t.Errorf("the IstioOperator was changed: %s", cmp.Diff(before, after))
	}
}

func BenchmarkExpand(b *testing.B) {
	for _, profile := range []string{"minimal", "default", "ambient"} {
		b.Run(profile, func(b *testing.B) {
			built, err := new(render.Renderer).Render(b.Context(), fstest.MapFS{"a.yaml": {Data: []byte(operator("{profile: " + profile + "}"))}}, ".")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := (mesh.Expander{}).Expand(b.Context(), built.Objects); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
