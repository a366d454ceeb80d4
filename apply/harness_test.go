package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// fixture is one unit in a namespace of its own.
type fixture struct {
	*testing.T
	cluster *kube.Cluster
	applier *apply.Applier
	objects dynamic.Interface
	ns      string
	policy  apply.Policy

	unit     apply.Unit
	recorded [][]schema.GroupKind // what Record was told, in order
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	cluster := kube.Start(t)
	return newFixtureAs(t, cluster, cluster.Config())
}

// newFixtureAs is a fixture whose applier uses this configuration.
func newFixtureAs(t *testing.T, cluster *kube.Cluster, cfg *rest.Config) *fixture {
	t.Helper()
	f := &fixture{T: t, cluster: cluster, ns: cluster.Namespace(t), policy: apply.Policy{Prune: true}}
	f.unit = apply.Unit{ID: apply.ApplySetID("unit", f.ns, "Mooring", "mooring.dev"), Name: f.ns + "/unit"}
	f.unit.Record = func(_ context.Context, kinds []schema.GroupKind) error {
		f.recorded = append(f.recorded, slices.Clone(kinds))
		f.unit.Kinds = slices.Clone(kinds)
		return nil
	}
	var err error
	if f.objects, err = dynamic.NewForConfig(cluster.Config()); err != nil {
		t.Fatal(err)
	}
	f.applier = f.newApplier(cfg)
	return f
}

func (f *fixture) newApplier(cfg *rest.Config) *apply.Applier {
	f.Helper()
	a, err := apply.New(cfg, apply.Options{GateTimeout: 20 * time.Second})
	if err != nil {
		f.Fatal(err)
	}
	return a
}

// set reads a stream of YAML. $NS stands for the test's namespace.
func (f *fixture) set(stream string) *render.Set {
	f.Helper()
	set := &render.Set{}
	line := 1
	for document := range strings.SplitSeq(strings.ReplaceAll(stream, "$NS", f.ns), "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			f.Fatalf("%v in:\n%s", err, document)
		}
		if u.Object != nil {
			set.Objects = append(set.Objects, render.Object{Content: render.ContentOf(u), Origin: render.Origin{File: "git.yaml", Line: line}})
		}
		line += strings.Count(document, "\n") + 1
	}
	return set
}

func (f *fixture) plan(stream string) *apply.Plan {
	f.Helper()
	p, err := f.applier.Plan(f.Context(), f.unit, f.set(stream), f.policy)
	if err != nil {
		f.Fatalf("plan: %v", err)
	}
	return p
}

// refuse plans what cannot be planned.
func (f *fixture) refuse(stream string) error {
	f.Helper()
	p, err := f.applier.Plan(f.Context(), f.unit, f.set(stream), f.policy)
	if err == nil {
		f.Fatalf("want an error and no plan, got:\n%s", p)
	}
	if p != nil {
		f.Fatalf("want no plan beside the error %v, got:\n%s", err, p)
	}
	return err
}

func (f *fixture) run(p *apply.Plan) *apply.Result {
	f.Helper()
	r, err := f.applier.Run(f.Context(), p)
	if err != nil {
		f.Fatalf("run: %v\nof:\n%s", err, p)
	}
	return r
}

// sync plans and runs, and wants both to go well.
func (f *fixture) sync(stream string) (*apply.Plan, *apply.Result) {
	f.Helper()
	p := f.plan(stream)
	return p, f.run(p)
}

// want compares what a plan does with lines as "create ConfigMap/a", sorted; the test's namespace is left out of the names.
// Unchanged objects are not named.
func (f *fixture) want(p *apply.Plan, lines ...string) {
	f.Helper()
	got := []string{}
	for s := range p.Steps() {
		if s.Action != apply.Unchanged {
			got = append(got, string(s.Action)+" "+f.short(s.ID))
		}
	}
	slices.Sort(got)
	slices.Sort(lines)
	if diff := cmp.Diff(append([]string{}, lines...), got); diff != "" {
		f.Fatalf("plan (-want +got):\n%s\n%s", diff, p)
	}
}

func (f *fixture) short(id render.ID) string {
	return strings.ReplaceAll(id.String(), f.ns+"/", "")
}

// settled wants a plan that does nothing.
func (f *fixture) settled(stream string) {
	f.Helper()
	f.want(f.plan(stream))
}

func (f *fixture) resource(group, version, resource string) dynamic.ResourceInterface {
	return f.objects.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).Namespace(f.ns)
}

func (f *fixture) get(group, version, resource, name string) *unstructured.Unstructured {
	f.Helper()
	u, err := f.resource(group, version, resource).Get(f.Context(), name, metav1.GetOptions{})
	if err != nil {
		f.Fatal(err)
	}
	return u
}

func (f *fixture) configMap(name string) *unstructured.Unstructured {
	f.Helper()
	return f.get("", "v1", "configmaps", name)
}

func (f *fixture) gone(group, version, resource, name string) {
	f.Helper()
	f.eventually(resource+"/"+name+" is gone", func() bool {
		_, err := f.resource(group, version, resource).Get(f.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// kubectl acts in the test's namespace.
func (f *fixture) kubectl(args ...string) string {
	f.Helper()
	out, err := f.cluster.Kubectl(f.Context(), append([]string{"-n", f.ns}, args...)...)
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// write puts a file with YAML where kubectl can read it.
func (f *fixture) write(stream string) string {
	f.Helper()
	file := f.TempDir() + "/file.yaml"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(stream, "$NS", f.ns)), 0o600); err != nil {
		f.Fatal(err)
	}
	return file
}

// edit is what kubectl edit does: a patch under its name.
func (f *fixture) edit(kind, name, patch string) {
	f.Helper()
	f.kubectl("patch", kind, name, "--type=merge", "--field-manager=kubectl-edit", "-p", patch)
}

func (f *fixture) eventually(what string, done func() bool) {
	f.Helper()
	poll.AwaitTrue(f, 30*time.Second, what, done)
}

func (f *fixture) istio() {
	f.Helper()
	if err := kube.InstallCRDs(f.Context(), f.cluster.Config()); err != nil {
		f.Fatal(err)
	}
}

// diffs of the only step that does something.
func (f *fixture) diffs(p *apply.Plan) []string {
	f.Helper()
	var all []string
	for s := range p.Steps() {
		for _, d := range s.Diff {
			all = append(all, d.String())
		}
	}
	return all
}

// recorder is a transport that notes each request, and may cut the wire.
type recorder struct {
	http.RoundTripper
	mu       sync.Mutex
	requests []string
	// cut is asked for each write that the server has answered; true loses the answer.
	cut func(write int) bool
	n   int
}

func (r *recorder) config(cfg *rest.Config) *rest.Config {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		r.RoundTripper = next
		return r
	})
	return cfg
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	write := req.Method != http.MethodGet && req.URL.Query().Get("dryRun") == ""
	line := req.Method + " " + req.URL.Path
	if req.URL.Query().Get("dryRun") != "" {
		line += " (dry run)"
	}
	if req.URL.Query().Get("labelSelector") != "" {
		line += " (labelled)"
	}
	if req.URL.Query().Get("watch") != "" {
		line += " (watch)"
	}
	r.mu.Lock()
	r.requests = append(r.requests, line)
	n := 0
	if write {
		r.n++
		n = r.n
	}
	r.mu.Unlock()
	res, err := r.RoundTripper.RoundTrip(req)
	if err == nil && write && r.cut != nil && r.cut(n) {
		_ = res.Body.Close()
		return nil, fmt.Errorf("the wire was cut after write %d: %s", n, line)
	}
	return res, err
}

// take gives the requests so far and forgets them.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}

// uncancelled is the test's context without its end, for a cleanup.
func uncancelled(t *testing.T) context.Context {
	return context.WithoutCancel(t.Context())
}

// cleanup deletes what has no namespace and is named after the test's.
func (f *fixture) cleanup(kinds ...string) {
	for _, kind := range kinds {
		if _, err := f.cluster.Kubectl(uncancelled(f.T), "delete", kind, f.ns, "--ignore-not-found", "--wait=false"); err != nil {
			f.Error(err)
		}
	}
}

func contains(kinds []schema.GroupKind, kind schema.GroupKind) bool {
	return slices.Contains(kinds, kind)
}

func refuseToRecord(context.Context, []schema.GroupKind) error {
	return fmt.Errorf("the parent cannot be written")
}

const denial = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: $NS}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [OPERATION], resourceNames: [NAME]}
  validations: [{expression: "false", message: "the test denies it"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: $NS}
spec:
  policyName: $NS
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}}
`

// denyUpdates makes an admission policy deny what changes this ConfigMap, and waits until it does.
func (f *fixture) denyUpdates(name string) {
	f.Helper()
	f.deny("UPDATE", name, "annotate", "configmap", name, "probe="+time.Now().String(), "--overwrite", "--dry-run=server")
}

// denyDeletes does so for its deletion.
func (f *fixture) denyDeletes(name string) {
	f.Helper()
	f.deny("DELETE", name, "delete", "configmap", name, "--dry-run=server")
}

func (f *fixture) deny(operation, name string, probe ...string) {
	f.Helper()
	f.kubectl("apply", "-f", f.write(strings.NewReplacer("OPERATION", operation, "NAME", name).Replace(denial)))
	f.Cleanup(func() { f.cleanup("validatingadmissionpolicybinding", "validatingadmissionpolicy") })
	f.eventually("the policy denies", func() bool {
		_, err := f.cluster.Kubectl(f.Context(), append([]string{"-n", f.ns}, probe...)...)
		return err != nil && strings.Contains(err.Error(), "the test denies it")
	})
}

// allow takes the policy away and waits until it is.
func (f *fixture) allow() {
	f.Helper()
	f.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", f.ns)
	f.eventually("the policy is gone", func() bool {
		_, err := f.cluster.Kubectl(f.Context(), "-n", f.ns, "annotate", "configmap", "--all", "probe=x", "--overwrite", "--dry-run=server")
		if err == nil {
			_, err = f.cluster.Kubectl(f.Context(), "-n", f.ns, "delete", "configmap", "--all", "--dry-run=server")
		}
		return err == nil
	})
}
