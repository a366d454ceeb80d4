package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// everyField is the whole of the API's design. A version need not act on all of it; it has to say so.
const everyField = `
source:
  url: ssh://git@git.example.com/mesh/config.git
  ref: {branch: env/prod, tag: v1.2.0, semver: ">=1.2", commit: 4f0c12ab34cd56ef78901234567890abcdef1234, name: refs/pull/7/head}
  secretRef: {name: git-auth}
  proxySecretRef: {name: proxy}
  verify: {mode: TagAndHead, secretRef: {name: git-keys}, descendantsOnly: true}
path: ./overlays/prod
interval: 7m
schedule: "*/10 8-18 * * MON-FRI"
timeZone: Europe/London
windows:
- {kind: Deny, schedule: "0 17 * * FRI", duration: 63h, timeZone: Europe/Berlin}
prune: {enabled: false, maxPercent: 26, maxObjects: 51}
drift: {mode: Alarm, ignore: [{target: {kind: Deployment}, paths: [/spec/replicas]}]}
check: {failOn: Warning, ignore: [IST0102], suppress: [{code: IST0118, resource: Service/apps/*}], policies: [{path: policies}, {configMapRef: {name: house, key: mesh.yaml}}]}
promotion: {from: {name: staging, namespace: mesh}, soak: 30m, mode: PullRequest, approval: Manual, readyExpr: "from.status.driftCount == 0", secretRef: {name: git-write}, metrics: [{name: rate, address: "https://prometheus.example.com", query: "up", min: "0.99", max: "1", secretRef: {name: prom}}], pullRequest: {provider: Gitea, url: "https://git.example.com", repository: mesh/config}}
pin: {revision: "main@sha1:4f0c12ab34cd56ef78901234567890abcdef1234", reason: incident}
onFailure: Rollback
dependsOn: [{name: istio, namespace: mesh, readyExpr: "dep.status.inventory.objects > 0"}]
wait: true
healthChecks: [{apiVersion: example.com/v1, kind: Machine, current: "status.phase == 'Up'", inProgress: "status.phase == 'Booting'", failed: "status.phase == 'Dead'"}]
timeout: 6m
serviceAccountName: mesh-deployer
kubeConfig: {secretRef: {name: cluster-b}}
mesh: {revision: 1-31}
propagation: {ask: Service, pause: 6s, timeout: 2m}
deletionPolicy: Orphan
suspend: true
`

// TestNoFieldIsDropped sends every field of the design by itself, to an API server that is told to ignore unknown
// fields, as many clients do. The field must come back as it was sent, or be refused by its name.
func TestNoFieldIsDropped(t *testing.T) {
	s := start(t)
	for _, field := range paths(parse(t, everyField), nil) {
		t.Run(strings.Join(field.path, "."), func(t *testing.T) {
			spec := parse(t, minimal)
			switch {
			case field.path[0] == "source" && field.path[1] == "ref":
				spec["source"].(map[string]any)["ref"] = map[string]any{}
			case field.path[0] == "source" && field.path[1] == "url":
				spec["source"].(map[string]any)["secretRef"] = map[string]any{"name": "git-auth"}
			case field.path[0] == "source" && field.path[1] == "verify":
				spec["source"].(map[string]any)["ref"] = map[string]any{"tag": "v1.2.0"}
			case field.path[0] == "onFailure":
				spec["wait"] = true
			}
			if err := unstructured.SetNestedField(spec, field.value, field.path...); err != nil {
				t.Fatal(err)
			}
			got, err := s.try(t, spec, metav1.FieldValidationIgnore)
			name := field.path[len(field.path)-1]
			if err != nil {
				if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "not supported by this version of Mooring") || !strings.Contains(err.Error(), name) {
					t.Errorf("refused without saying that it is not supported: %v", err)
				}
				return
			}
			if missing := lost("spec", spec, got.Object["spec"]); len(missing) > 0 {
				t.Errorf("dropped in silence: %s", strings.Join(missing, ", "))
			}
		})
	}
}

type fieldValue struct {
	path  []string
	value any
}

// paths takes the supported structs apart; of the others the whole value is one field.
func paths(m map[string]any, above []string) []fieldValue {
	var all []fieldValue
	for _, k := range slices.Sorted(maps.Keys(m)) {
		path := append(slices.Clone(above), k)
		inner, ok := m[k].(map[string]any)
		if ok && slices.Contains([]string{"source", "ref", "secretRef", "prune", "check", "drift"}, k) {
			all = append(all, paths(inner, path)...)
			continue
		}
		all = append(all, fieldValue{path, runtime.DeepCopyJSONValue(m[k])})
	}
	return all
}

func TestDefaults(t *testing.T) {
	s := start(t)
	want := func(change func(*v1alpha1.MooringSpec)) v1alpha1.MooringSpec {
		spec := v1alpha1.MooringSpec{
			Source:   v1alpha1.Source{URL: "https://git.example.com/mesh/config.git", Ref: v1alpha1.Ref{Branch: "main"}},
			Path:     ".",
			Interval: metav1.Duration{Duration: 5 * time.Minute},
			Timeout:  metav1.Duration{Duration: 5 * time.Minute},
			Prune:    v1alpha1.Prune{Enabled: new(true), MaxPercent: new(int32(25)), MaxObjects: new(int32(50))},
			Drift:    &v1alpha1.Drift{Mode: v1alpha1.DriftCorrect},

			Propagation: v1alpha1.Propagation{
				Ask: v1alpha1.AskPortForward, Pause: metav1.Duration{Duration: 5 * time.Second}, Timeout: metav1.Duration{Duration: time.Minute},
			},
			DeletionPolicy: v1alpha1.DeletionPrune,
			OnFailure:      v1alpha1.OnFailureKeep,
		}
		if change != nil {
			change(&spec)
		}
		return spec
	}
	for name, c := range map[string]struct {
		spec string
		want v1alpha1.MooringSpec
	}{
		"minimal":     {minimal, want(nil)},
		"empty prune": {with("prune: {}"), want(nil)},
		"no prune":    {with("prune: {enabled: false}"), want(func(s *v1alpha1.MooringSpec) { *s.Prune.Enabled = false })},
		"one limit":   {with("prune: {maxPercent: 90}"), want(func(s *v1alpha1.MooringSpec) { *s.Prune.MaxPercent = 90 })},
		"empty check": {with("check: {}"), want(func(s *v1alpha1.MooringSpec) { s.Check = &v1alpha1.Check{FailOn: v1alpha1.CheckError} })},
		"verify": {source("https://git.example.com/mesh/config.git", "ref: {branch: main}, verify: {secretRef: {name: k}}"), want(func(s *v1alpha1.MooringSpec) {
			s.Source.Verify = &v1alpha1.Verify{Mode: v1alpha1.VerifyHead, SecretRef: v1alpha1.LocalReference{Name: "k"}}
		})},
		"one way": {with("propagation: {ask: Never}"), want(func(s *v1alpha1.MooringSpec) { s.Propagation.Ask = v1alpha1.AskNever })},
		"null":    {with("prune: null, path: null, deletionPolicy: null"), want(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.try(t, parse(t, c.spec), metav1.FieldValidationStrict)
			if err != nil {
				t.Fatal(err)
			}
			served := typed(t, got.Object)
			if diff := cmp.Diff(c.want, served.Spec); diff != "" {
				t.Errorf("the API server's defaults (-want +got):\n%s", diff)
			}
			// A Mooring that was read from a file gets the same.
			read := typed(t, map[string]any{"spec": parse(t, c.spec)})
			read.Default()
			if diff := cmp.Diff(served.Spec, read.Spec); diff != "" {
				t.Errorf("Default differs from the API server (-served +Default):\n%s", diff)
			}
		})
	}
}

func typed(t *testing.T, object map[string]any) *v1alpha1.Mooring {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	m := &v1alpha1.Mooring{}
	if err := json.Unmarshal(text, m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGoClient has a program write a Mooring through the types and set no more than it has to: the zero values of the others
// must not be sent, since the API server would take them for the user's wish.
func TestGoClient(t *testing.T) {
	s := start(t)
	m := &v1alpha1.Mooring{Spec: v1alpha1.MooringSpec{
		Source: v1alpha1.Source{URL: "https://git.example.com/mesh/config.git", Ref: v1alpha1.Ref{Branch: "main"}},
	}}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	for encoder, spec := range map[string]map[string]any{
		"encoding/json": parse(t, string(text))["spec"].(map[string]any),
		"unstructured":  object["spec"].(map[string]any),
	} {
		got, err := s.try(t, spec, metav1.FieldValidationStrict)
		if err != nil {
			t.Errorf("%s: %v", encoder, err)
			continue
		}
		if served := typed(t, got.Object).Spec; served.Interval.Duration != 5*time.Minute || served.DeletionPolicy != v1alpha1.DeletionPrune {
			t.Errorf("%s: not defaulted: %+v", encoder, served)
		}
	}
}

// TestExplained makes sure that kubectl explain has a word for every field.
func TestExplained(t *testing.T) {
	s := start(t)
	crd, err := s.Kubectl(t.Context(), "get", "crd", "moorings.mooring.dev", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	versions, _, err := unstructured.NestedSlice(parse(t, crd), "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("versions of the CRD: %v, %v", versions, err)
	}
	schema, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema")
	if err != nil {
		t.Fatal(err)
	}
	properties := 0
	var walk func(path string, node map[string]any)
	walk = func(path string, node map[string]any) {
		if items, ok := node["items"].(map[string]any); ok {
			walk(path+"[]", items)
		}
		inner, _ := node["properties"].(map[string]any)
		for name, p := range inner {
			properties++
			p := p.(map[string]any)
			if text, _ := p["description"].(string); text == "" && path+"."+name != ".metadata" {
				t.Errorf("%s.%s has no description", path, name)
			}
			walk(path+"."+name, p)
		}
	}
	walk("", schema)
	if properties < 40 {
		t.Errorf("only %d fields were looked at", properties)
	}
	out, err := s.Kubectl(t.Context(), "explain", "mooring.spec.source.ref")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "exactly one of its fields") {
		t.Errorf("kubectl explain says:\n%s", out)
	}
}

// TestColumns is what somebody sees who asks kubectl.
func TestColumns(t *testing.T) {
	s := start(t)
	made, err := s.Create(t.Context(), mooring(s.namespace, parse(t, minimal)), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	revision := "main@sha1:" + id
	made.Object["status"] = map[string]any{
		"lastAppliedRevision": revision,
		"inventory":           map[string]any{"objects": int64(412), "id": "applyset-x-v1"},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "PruneGuarded", "message": "12 of 20 objects would go",
			"lastTransitionTime": "2026-01-02T03:04:05Z",
		}},
	}
	if _, err := s.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"moorings", "mooring", "moor", "moorings.mooring.dev"} {
		out, err := s.Kubectl(t.Context(), "get", kind, "-n", s.namespace)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if len(lines) != 2 {
			t.Fatalf("kubectl get %s:\n%s", kind, out)
		}
		if got, want := strings.Fields(lines[0]), []string{"NAME", "READY", "REASON", "APPLIED", "OBJECTS", "AGE"}; !slices.Equal(got, want) {
			t.Errorf("kubectl get %s has the columns %v, want %v", kind, got, want)
		}
		got := strings.Fields(lines[1])
		if want := []string{made.GetName(), "False", "PruneGuarded", revision, "412"}; len(got) != 6 || !slices.Equal(got[:5], want) {
			t.Errorf("kubectl get %s has the row %v, want %v", kind, got, want)
		}
	}
	wide, err := s.Kubectl(t.Context(), "get", "moor", "-n", s.namespace, "-o", "wide")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(wide, "MESSAGE") || !strings.Contains(wide, "12 of 20 objects would go") {
		t.Errorf("-o wide:\n%s", wide)
	}
}

// TestKubectlApply goes the way that a user goes, with a file and kubectl's own validation.
func TestKubectlApply(t *testing.T) {
	s := start(t)
	file := fmt.Sprintf("%s/mooring.yaml", t.TempDir())
	write(t, file, `apiVersion: mooring.dev/v1alpha1
kind: Mooring
metadata: {name: prod}
spec:
  source: {url: "https://git.example.com/config", ref: {branch: main, tag: v1}}
  intervall: 1m
`)
	_, err := s.Kubectl(t.Context(), "apply", "-n", s.namespace, "-f", file)
	if err == nil || !strings.Contains(err.Error(), `unknown field "spec.intervall"`) {
		t.Errorf("an unknown field: %v", err)
	}
	write(t, file, `apiVersion: mooring.dev/v1alpha1
kind: Mooring
metadata: {name: prod}
spec:
  source: {url: "https://git.example.com/config", ref: {branch: main}}
`)
	// Twice: the second time nothing differs, as it would if a default were fought over.
	for _, want := range []string{"mooring.mooring.dev/prod serverside-applied", "mooring.mooring.dev/prod serverside-applied"} {
		out, err := s.Kubectl(t.Context(), "apply", "--server-side", "-n", s.namespace, "-f", file)
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("got %q, %v", out, err)
		}
	}
	got, err := s.Get(t.Context(), "prod", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetGeneration() != 1 {
		t.Errorf("applying the same again changed the spec: generation %d", got.GetGeneration())
	}
}
