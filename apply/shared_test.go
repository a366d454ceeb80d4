package apply_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apilabels "k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

var scaled = strings.Replace(deployment, "spec:\n  selector", "spec:\n  replicas: 2\n  selector", 1)

const autoscaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: d, namespace: $NS}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}
  minReplicas: 1
  maxReplicas: 9
`

func (f *fixture) replicas() int64 {
	f.Helper()
	n, _, err := unstructured.NestedInt64(f.get("apps", "v1", "deployments", "d").Object, "spec", "replicas")
	if err != nil {
		f.Fatal(err)
	}
	return n
}

// scale is what an autoscaler does: it writes to the scale subresource.
func (f *fixture) scale(to string) {
	f.Helper()
	f.kubectl("patch", "deployment", "d", "--subresource=scale", "--type=merge", "--field-manager=kube-controller-manager", "-p", `{"spec":{"replicas":`+to+`}}`)
}

// The count of an autoscaled workload is the autoscaler's, whether that is in Git or not, whether Git says a count or not; it never jumps.
func TestAutoscaledReplicasAreLeft(t *testing.T) {
	for _, inGit := range []bool{true, false} {
		f := newFixture(t)
		f.sync(scaled)
		withHPA := func(stream string) string { return stream + "---\n" + autoscaler }
		if !inGit {
			withHPA = func(stream string) string { return stream }
			f.kubectl("create", "-f", f.write(autoscaler))
		}
		f.sync(withHPA(scaled))
		f.settled(withHPA(scaled))
		// The autoscaler has not written yet: giving the field up would let the server put 1 there.
		f.sync(withHPA(strings.Replace(deployment, "example.com/c:1", "example.com/c:2", 1)))
		if got := f.replicas(); got != 2 {
			t.Fatalf("in Git: %v: %d replicas, want 2 as before", inGit, got)
		}
		f.scale("5")
		f.sync(withHPA(scaled))
		f.settled(withHPA(scaled))
		f.sync(withHPA(strings.Replace(scaled, "example.com/c:1", "example.com/c:3", 1)))
		f.settled(withHPA(strings.Replace(scaled, "example.com/c:1", "example.com/c:3", 1)))
		f.sync(withHPA(deployment))
		f.settled(withHPA(deployment))
		f.applier = f.newApplier(f.cluster.Config())
		f.settled(withHPA(deployment))
		f.sync(withHPA(scaled))
		if got := f.replicas(); got != 5 {
			t.Fatalf("in Git: %v: %d replicas, want the autoscaler's 5", inGit, got)
		}
		if inGit { // and when Git drops the autoscaler, Git's count is in force again
			f.sync(scaled)
			f.settled(scaled)
			if got := f.replicas(); got != 2 {
				t.Fatalf("%d replicas, want Git's 2", got)
			}
		}
	}
}

// At rest nobody asks for autoscalers.
func TestAutoscalersCostNothingAtRest(t *testing.T) {
	f := newFixture(t)
	wire := &recorder{}
	f.applier = f.newApplier(wire.config(f.cluster.Config()))
	stream := scaled + "---\n" + autoscaler
	f.sync(stream)
	f.settled(stream)
	wire.take()
	f.settled(stream)
	for _, line := range wire.take() {
		if !strings.HasSuffix(line, "(labelled)") {
			t.Errorf("at rest: %s", line)
		}
	}
}

const anyKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: KIND, plural: PLURAL, singular: SINGULAR, listKind: KINDList}
  versions:
  - name: VERSION
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func (f *fixture) define(group, version, kind string) {
	f.Helper()
	singular := strings.ToLower(kind)
	plural := singular + "s"
	if strings.HasSuffix(singular, "y") {
		plural = strings.TrimSuffix(singular, "y") + "ies"
	}
	f.kubectl("apply", "-f", f.write(strings.NewReplacer("GROUP", group, "VERSION", version, "KIND", kind, "PLURAL", plural, "SINGULAR", singular).Replace(anyKind)))
	f.eventually(kind+" is served", func() bool {
		_, err := f.cluster.Kubectl(f.Context(), "get", plural+"."+group)
		return err == nil
	})
}

const canaried = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: $NS}
spec:
  hosts: [reviews]
  http:
  - match: [{uri: {prefix: /old}}]
    route:
    - {destination: {host: ratings}}
  - name: primary
    timeout: 5s
    route:
    - {destination: {host: reviews, subset: stable}, weight: 100}
    - {destination: {host: reviews, subset: canary}, weight: 0}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: $NS}
spec:
  host: reviews
  subsets: [{name: stable, labels: {app: reviews}}, {name: canary, labels: {app: reviews}}]
`

func (f *fixture) virtualService() string {
	f.Helper()
	return f.kubectl("get", "virtualservice", "reviews", "-o",
		`jsonpath={range .spec.http[*]}{.name}/{.timeout}:{range .route[*]}{.weight},{end} {end}`)
}

// Argo Rollouts moves weights and marks subsets while commits go on.
func TestRolloutsWeightsAreLeft(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.define("argoproj.io", "v1alpha1", "Rollout")
	f.kubectl("create", "-f", f.write(`
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: reviews, namespace: $NS}
spec:
  strategy:
    canary:
      trafficRouting:
        managedRoutes: [{name: by-header}]
        istio:
          virtualService: {name: reviews, routes: [primary]}
          destinationRule: {name: reviews, stableSubsetName: stable, canarySubsetName: canary}
`))
	f.sync(canaried)
	f.kubectl("patch", "virtualservice", "reviews", "--type=json", "--field-manager=rollouts-controller", "-p", `[
		{"op":"replace","path":"/spec/http/1/route/0/weight","value":80},{"op":"add","path":"/spec/http/1/route/1/weight","value":20},
		{"op":"add","path":"/spec/http/0","value":{"name":"by-header","match":[{"headers":{"x":{"exact":"y"}}}],"route":[{"destination":{"host":"reviews","subset":"canary"},"weight":100}]}}]`)
	f.kubectl("patch", "destinationrule", "reviews", "--type=json", "--field-manager=rollouts-controller", "-p", `[
		{"op":"add","path":"/spec/subsets/0/labels/rollouts-pod-template-hash","value":"abc"},
		{"op":"add","path":"/spec/subsets/1/labels/rollouts-pod-template-hash","value":"def"}]`)
	f.settled(canaried)
	p, _ := f.sync(strings.Replace(canaried, "timeout: 5s", "timeout: 7s", 1))
	f.want(p, "update VirtualService/reviews")
	if diff := cmp.Diff([]string{`/spec/http/2/timeout: "5s" → "7s" (set by rollouts-controller)`}, f.diffs(p)); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if got, want := f.virtualService(), "by-header/:100, /:, primary/7s:80,20, "; got != want {
		t.Errorf("VirtualService: %q, want %q", got, want)
	}
	if got := f.kubectl("get", "destinationrule", "reviews", "-o", "jsonpath={.spec.subsets[*].labels.rollouts-pod-template-hash}"); got != "abc def" {
		t.Errorf("hashes: %q", got)
	}

	// Somebody else's change beside the weights is drift as ever.
	f.edit("virtualservice", "reviews", `{"spec":{"hosts":["elsewhere"]}}`)
	changed := strings.Replace(canaried, "timeout: 5s", "timeout: 7s", 1)
	p, _ = f.sync(changed)
	f.want(p, "update VirtualService/reviews")
	f.settled(changed)
	if got, want := f.virtualService(), "by-header/:100, /:, primary/7s:80,20, "; got != want {
		t.Errorf("VirtualService: %q, want %q", got, want)
	}
}

// Flagger does the same, and scales its target.
func TestFlaggersWeightsAreLeft(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.define("flagger.app", "v1beta1", "Canary")
	f.kubectl("create", "-f", f.write(`
apiVersion: flagger.app/v1beta1
kind: Canary
metadata: {name: d, namespace: $NS}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: d}, service: {name: reviews, port: 80}}
`))
	all := scaled + "---\n" + canaried
	f.sync(all)
	f.kubectl("patch", "virtualservice", "reviews", "--type=json", "--field-manager=flagger", "-p", `[
		{"op":"replace","path":"/spec/http/1/route/0/weight","value":60},{"op":"add","path":"/spec/http/1/route/1/weight","value":40}]`)
	f.kubectl("patch", "deployment", "d", "--type=merge", "--field-manager=flagger", "-p", `{"spec":{"replicas":0}}`)
	f.settled(all)
	if got := f.virtualService(); got != "/:, primary/5s:60,40, " {
		t.Errorf("VirtualService: %q", got)
	}
	if got := f.replicas(); got != 0 {
		t.Errorf("%d replicas", got)
	}
}

// spec.drift.ignore: fields in maps and in lists, by kind, name and label; what another manager or a person writes there stays.
func TestIgnoredFields(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.policy.Ignore = []apply.IgnoreRule{
		{Target: apply.Target{Kind: "VirtualService", Name: "reviews"}, Paths: []string{"/spec/http/*/route/*/weight"}},
		{Target: apply.Target{Kind: "ConfigMap"}, Paths: []string{"/data/a", "/metadata/annotations/example.com~1note"}},
	}
	const kept = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, namespace: $NS, annotations: {example.com/note: git}}\ndata: {a: git, c: git}\n"
	all := canaried + "---\n" + kept
	f.sync(all)
	f.kubectl("patch", "virtualservice", "reviews", "--type=json", "--field-manager=kubectl-edit", "-p", `[{"op":"replace","path":"/spec/http/1/route/0/weight","value":60}]`)
	f.edit("configmap", "m", `{"metadata":{"annotations":{"example.com/note":"hand"}},"data":{"a":"hand","c":"hand"}}`)
	p, _ := f.sync(all)
	f.want(p, "update ConfigMap/m")
	f.settled(all)
	if got := f.virtualService(); got != "/:, primary/5s:60,, " && got != "/:, primary/5s:60,0, " {
		t.Errorf("VirtualService: %q", got)
	}
	data, _, _ := unstructured.NestedStringMap(f.configMap("m").Object, "data")
	if diff := cmp.Diff(map[string]string{"a": "hand", "c": "git"}, data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if note := f.configMap("m").GetAnnotations()["example.com/note"]; note != "hand" {
		t.Errorf("note: %q", note)
	}
	// The rule goes, and Git is right again.
	f.policy.Ignore = f.policy.Ignore[:1]
	p, _ = f.sync(all)
	f.want(p, "update ConfigMap/m")
	f.settled(all)
}

// A rule that says nothing of anything is told of.
func TestIgnoredFieldsThatAreNone(t *testing.T) {
	f := newFixture(t)
	labelled, err := apilabels.Parse("team=none")
	if err != nil {
		t.Fatal(err)
	}
	f.policy.Ignore = []apply.IgnoreRule{
		{Target: apply.Target{Kind: "ConfigMap"}, Paths: []string{"/data/k", "/data/typo", "/spec/list/*/x"}},
		{Target: apply.Target{Labels: labelled}, Paths: []string{"/data/k"}},
	}
	want := []string{
		"spec.drift.ignore[0]: /data/typo is in none of the objects that the target picks",
		"spec.drift.ignore[0]: /spec/list/*/x is in none of the objects that the target picks",
		"spec.drift.ignore[1]: the target picks no object of the path",
	}
	if diff := cmp.Diff(want, f.plan(oneMap).Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// Who may not look at the autoscalers is told so.
func TestUnseenAutoscalersAreToldOf(t *testing.T) {
	cluster := kube.Start(t)
	cfg := cluster.Config()
	cfg.Impersonate.UserName = "restricted"
	f := newFixtureAs(t, cluster, cfg)
	f.kubectl("create", "role", "restricted", "--verb=get,list,create,patch,delete", "--resource=deployments.apps")
	f.kubectl("create", "rolebinding", "restricted", "--role=restricted", "--user=restricted")
	f.kubectl("create", "clusterrole", f.ns, "--verb=list", "--resource=deployments.apps")
	f.kubectl("create", "clusterrolebinding", f.ns, "--clusterrole="+f.ns, "--user=restricted")
	f.Cleanup(func() { f.cleanup("clusterrolebinding", "clusterrole") })
	const want = "HorizontalPodAutoscaler (autoscaling) may not be listed, so fields that one of them has a say in are not left to it; deploy/rbac/others.yaml gives the right"
	var notes []string
	f.eventually("the rights count", func() bool {
		p, err := f.applier.Plan(t.Context(), f.unit, f.set(scaled), f.policy)
		if p != nil {
			notes = p.Notes
		}
		return err == nil
	})
	if !slices.Contains(notes, want) {
		t.Errorf("notes: %q", notes)
	}
}

// A weight, and a count, that moves between the plan and its run is not set back to what the plan saw.
func TestWhatMovesDuringARunIsLeft(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.policy.Ignore = []apply.IgnoreRule{{Target: apply.Target{Kind: "VirtualService"}, Paths: []string{"/spec/http/*/route/*/weight"}}}
	all := canaried + "---\n" + scaled + "---\n" + autoscaler
	f.sync(all)
	changed := strings.NewReplacer("timeout: 5s", "timeout: 7s", "example.com/c:1", "example.com/c:2").Replace(all)
	p := f.plan(changed)
	f.want(p, "update Deployment/d", "update VirtualService/reviews")
	f.kubectl("patch", "virtualservice", "reviews", "--type=json", "--field-manager=somebody", "-p", `[{"op":"replace","path":"/spec/http/1/route/0/weight","value":60}]`)
	f.scale("6")
	f.run(p)
	f.settled(changed)
	if got := f.virtualService(); !strings.Contains(got, "primary/7s:60,") {
		t.Errorf("VirtualService: %q", got)
	}
	if got := f.replicas(); got != 6 {
		t.Errorf("%d replicas, want 6", got)
	}
}
