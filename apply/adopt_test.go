package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/apply"
)

// byTool is how a tool leaves an object: what it writes on it, and under which name.
type byTool struct {
	tool     apply.Tool
	meta     string // labels and annotations
	manager  string
	apply    bool // server-side
	says     []string
	stripped []string
}

func tools() map[string]byTool {
	return map[string]byTool{
		"Helm": {
			tool: apply.ToolHelm, manager: "helm",
			meta:     `labels: {app.kubernetes.io/managed-by: Helm}, annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: $NS}`,
			says:     []string{"managed by Helm (release shop in $NS, which wrote to it last on 2"},
			stripped: []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace", "app.kubernetes.io/managed-by"},
		},
		"Flux": {
			tool: apply.ToolFlux, manager: "kustomize-controller", apply: true,
			meta:     `labels: {kustomize.toolkit.fluxcd.io/name: apps, kustomize.toolkit.fluxcd.io/namespace: flux-system}`,
			says:     []string{"managed by Flux (Kustomization apps in flux-system"},
			stripped: []string{"kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace"},
		},
		"Flux with Helm": {
			tool: apply.ToolFlux, manager: "helm-controller",
			meta: `labels: {app.kubernetes.io/managed-by: Helm, helm.toolkit.fluxcd.io/name: shop, helm.toolkit.fluxcd.io/namespace: apps}, ` +
				`annotations: {meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: $NS}`,
			says:     []string{"managed by Flux (HelmRelease shop in apps"},
			stripped: []string{"helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace", "meta.helm.sh/release-name"},
		},
		"Argo CD by annotation": {
			tool: apply.ToolArgoCD, manager: "argocd-controller", apply: true,
			meta:     `annotations: {argocd.argoproj.io/tracking-id: "shop:/ConfigMap:$NS/a"}`,
			says:     []string{"managed by Argo CD (Application shop"},
			stripped: []string{"argocd.argoproj.io/tracking-id"},
		},
		"Argo CD by label": {
			tool: apply.ToolArgoCD, manager: "argocd-controller",
			meta:     `labels: {app.kubernetes.io/instance: shop}`,
			says:     []string{"managed by Argo CD (Application shop"},
			stripped: []string{"app.kubernetes.io/instance"},
		},
		"istioctl": {
			tool: apply.ToolIstioctl, manager: "istio-operator", apply: true,
			meta:     `labels: {operator.istio.io/managed: Reconcile, install.operator.istio.io/owning-resource: installed-state, operator.istio.io/component: Pilot}`,
			says:     []string{"managed by istioctl (IstioOperator installed-state"},
			stripped: []string{"operator.istio.io/managed", "install.operator.istio.io/owning-resource"},
		},
		"the Sail operator": {
			tool: apply.ToolSail, manager: "sail-operator",
			meta: `labels: {managed-by: sail-operator}, annotations: {meta.helm.sh/release-name: istio, meta.helm.sh/release-namespace: $NS}, ` +
				`ownerReferences: [{apiVersion: sailoperator.io/v1, kind: IstioRevision, name: default, uid: 7a5b1e0e-0000-4000-8000-000000000001, controller: true}]`,
			says:     []string{"managed by the Sail operator (IstioRevision default"},
			stripped: []string{"managed-by", "meta.helm.sh/release-name"},
		},
		"kubectl with an ApplySet": {
			tool: apply.ToolApplySet, manager: "kubectl-applyset", apply: true,
			meta: `labels: {applyset.kubernetes.io/part-of: applyset-bm9ib2R5-v1}`,
			says: []string{"managed by another ApplySet (applyset-bm9ib2R5-v1"},
		},
	}
}

// make leaves an object as the tool would: with a field that Git does not have.
func (b byTool) make(f *fixture) {
	f.Helper()
	file := f.write(strings.Replace(oneMap, "namespace: $NS}", "namespace: $NS, "+b.meta+"}", 1) + "  old: by the tool\n")
	if b.apply {
		f.kubectl("apply", "--server-side", "--field-manager="+b.manager, "-f", file)
	} else {
		f.kubectl("create", "--field-manager="+b.manager, "-f", file)
	}
}

// What another tool manages is refused, with who and how to go on; nothing is written, at any pass.
func TestAnotherToolsObjectIsRefused(t *testing.T) {
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.unit.Moorings = wishes{}
			tool.make(f)
			version := f.configMap("a").GetResourceVersion()
			for range 2 {
				err := f.refuse(oneMap)
				var held *apply.HeldError
				if !errors.As(err, &held) || len(held.Holders) != 1 || held.Holders[0].Tool != tool.tool {
					t.Fatalf("want a HeldError of %s, got %v", tool.tool, err)
				}
				for _, part := range append(tool.says, "mooring adopt unit -n $NS --from "+string(tool.tool)) {
					if part = strings.ReplaceAll(part, "$NS", f.ns); !strings.Contains(err.Error(), part) {
						t.Errorf("the error does not say %q:\n%v", part, err)
					}
				}
			}
			f.policy.Adopt = []apply.Tool{"another"}
			_ = f.refuse(oneMap)
			if got := f.configMap("a").GetResourceVersion(); got != version {
				t.Error("the object was written to")
			}
		})
	}
}

// Adopted means: ours alone, what the tool had set and Git does not have is gone, and so is what the tool knows it by. The UID stays.
func TestAdoption(t *testing.T) {
	for name, tool := range tools() {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.unit.Moorings = wishes{}
			tool.make(f)
			before := f.configMap("a")
			f.policy.Adopt = []apply.Tool{tool.tool}
			p, r := f.sync(oneMap)
			f.want(p, "update ConfigMap/a")
			text := p.String()
			for _, key := range tool.stripped {
				if !strings.Contains(text, strings.ReplaceAll(key, "/", "~1")) {
					t.Errorf("the plan does not show that %s goes:\n%s", key, text)
				}
			}
			if !strings.Contains(text, `/data/old: "by the tool" → (none)`) || !strings.Contains(text, "adopts from") || r.Objects != 1 {
				t.Errorf("%d objects, plan:\n%s", r.Objects, text)
			}

			// The word was for once: no later pass has it, and none needs it.
			f.policy.Adopt = nil
			f.settled(oneMap)
			f.applier = f.newApplier(f.cluster.Config())
			f.settled(oneMap)
			after := f.configMap("a")
			data, _, _ := unstructured.NestedStringMap(after.Object, "data")
			if diff := cmp.Diff(map[string]string{"k": "one"}, data); diff != "" {
				t.Errorf("data:\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{apply.PartOfLabel: f.unit.ID}, after.GetLabels()); diff != "" {
				t.Errorf("labels:\n%s", diff)
			}
			if after.GetUID() != before.GetUID() || len(after.GetAnnotations()) != 0 {
				t.Errorf("uid %s, was %s; annotations %v", after.GetUID(), before.GetUID(), after.GetAnnotations())
			}
			if tool.tool == apply.ToolSail && len(after.GetOwnerReferences()) > 0 {
				t.Errorf("the operator still owns it: %v", after.GetOwnerReferences())
			}
			// And it is pruned like any other.
			f.policy.Prune = true
			p, _ = f.sync(noMap)
			f.want(p, "create ConfigMap/rest", "delete ConfigMap/a")
		})
	}
}

// An agent that dies between the two requests of an adoption leaves an object that the next pass adopts, without a second word.
func TestAdoptionSurvivesACrash(t *testing.T) {
	f := newFixture(t)
	tools()["Helm"].make(f)
	uid := f.configMap("a").GetUID()
	wire := &recorder{cut: func(write int) bool { return true }}
	f.applier = f.newApplier(wire.config(f.cluster.Config()))
	f.policy.Adopt = []apply.Tool{apply.ToolHelm}
	if _, err := f.applier.Run(t.Context(), f.plan(oneMap)); err == nil {
		t.Fatal("the wire was not cut")
	}
	f.applier, f.policy.Adopt = f.newApplier(f.cluster.Config()), nil
	p, _ := f.sync(oneMap)
	f.want(p, "update ConfigMap/a")
	f.settled(oneMap)
	live := f.configMap("a")
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	if diff := cmp.Diff(map[string]string{"k": "one"}, data); diff != "" || live.GetUID() != uid || len(live.GetAnnotations()) > 0 {
		t.Errorf("after the crash: %v\n%s", live.Object["metadata"], diff)
	}
}

// What a tool holds as well is not deleted, neither for a commit nor with the Mooring.
func TestHeldIsNotPruned(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.kubectl("label", "configmap", "b", "kustomize.toolkit.fluxcd.io/name=apps", "kustomize.toolkit.fluxcd.io/namespace=flux-system")
	f.settled(twoMaps)
	p, _ := f.sync(oneMap)
	f.want(p, "skip ConfigMap/b")
	if text := p.String(); !strings.Contains(text, "managed by Flux (Kustomization apps in flux-system)") {
		t.Errorf("the plan does not say who:\n%s", text)
	}
	p, err := f.applier.PlanDelete(t.Context(), f.unit)
	if err != nil {
		t.Fatal(err)
	}
	f.want(p, "delete ConfigMap/a", "update ConfigMap/b")
	f.run(p)
	if live := f.configMap("b"); live.GetLabels()[apply.PartOfLabel] != "" {
		t.Errorf("still labelled: %v", live.GetLabels())
	}
}

// Manifests that were exported with a tool's labels say in Git what they say: that is no sign of the tool, and is not fought over.
func TestSignsInGitAreGits(t *testing.T) {
	f := newFixture(t)
	exported := strings.Replace(oneMap, "namespace: $NS}", "namespace: $NS, "+tools()["Helm"].meta+"}", 1)
	f.sync(exported)
	f.settled(exported)
	p, _ := f.sync(noMap)
	f.want(p, "create ConfigMap/rest", "delete ConfigMap/a")

	tools()["Helm"].make(f)
	_ = f.refuse(exported)
	f.policy.Adopt = []apply.Tool{apply.ToolHelm}
	f.sync(exported)
	f.policy.Adopt = nil
	f.settled(exported)
}

// What a controller made is not adopted at all.
func TestControlledIsRefused(t *testing.T) {
	f := newFixture(t)
	f.kubectl("create", "configmap", "owner")
	f.kubectl("create", "-f", f.write(oneMap))
	uid := f.kubectl("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
	f.kubectl("patch", "configmap", "a", "--type=merge", "-p",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":"`+uid+`","controller":true}]}}`)
	f.policy.Adopt = apply.Tools()
	if err := f.refuse(oneMap); !strings.Contains(err.Error(), "a controller (ConfigMap owner)") {
		t.Errorf("got %v", err)
	}
}

// A tool that is at work is named, with the command that stops it.
func TestToolAtWorkIsNamed(t *testing.T) {
	f := newFixture(t)
	f.kubectl("apply", "-f", f.write(fluxKinds))
	f.eventually("the kind is served", func() bool {
		_, err := f.cluster.Kubectl(t.Context(), "get", "kustomizations.kustomize.toolkit.fluxcd.io")
		return err == nil
	})
	f.kubectl("apply", "-f", f.write("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: $NS}\nspec: {suspend: false}\n"))
	flux := tools()["Flux"]
	flux.meta = strings.ReplaceAll(flux.meta, "flux-system", "$NS")
	flux.make(f)
	const stop = "flux suspend kustomization apps -n "
	if err := f.refuse(oneMap); !strings.Contains(err.Error(), stop+f.ns) {
		t.Errorf("the error does not say how to stop Flux: %v", err)
	}
	f.kubectl("patch", "kustomizations.kustomize.toolkit.fluxcd.io", "apps", "--type=merge", "-p", `{"spec":{"suspend":true}}`)
	if err := f.refuse(oneMap); strings.Contains(err.Error(), stop) {
		t.Errorf("it is suspended: %v", err)
	}
}

const fluxKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}
spec:
  group: kustomize.toolkit.fluxcd.io
  scope: Namespaced
  names: {kind: Kustomization, plural: kustomizations, singular: kustomization, listKind: KustomizationList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`
