package apply_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

// What the cluster itself makes in every namespace is nobody's: it is not applied when a copy of it is in Git, and not deleted when the copy goes, not
// even where an agent of before applied it.
func TestRootCertificatesAreNobodys(t *testing.T) {
	for _, name := range []string{"istio-ca-root-cert", "kube-root-ca.crt"} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.kubectl("create", "configmap", name, "--from-literal=root-cert.pem=istiods", "--dry-run=client", "-o", "yaml")
			f.kubectl("apply", "--server-side", "--field-manager=pilot-discovery", "--force-conflicts", "-f", f.write(
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", namespace: $NS, labels: {istio.io/config: \"true\"}}\ndata: {root-cert.pem: istiods}\n"))
			exported := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: $NS, labels: {LABELS}}\ndata: {root-cert.pem: exported}\n"
			inGit := strings.Replace(exported, "LABELS", "from: git", 1)
			p, _ := f.sync(oneMap + "---\n" + inGit)
			f.want(p, "create ConfigMap/a", "skip ConfigMap/"+name)
			if got := f.kubectl("get", "configmap", name, "-o", "jsonpath={.data.root-cert\\.pem}"); got != "istiods" {
				t.Fatalf("it is %q", got)
			}
			// As an agent of before would have left it.
			f.kubectl("apply", "--server-side", "--field-manager="+apply.FieldManager, "--force-conflicts", "-f", f.write(
				strings.Replace(exported, "LABELS", apply.PartOfLabel+": "+f.unit.ID, 1)))
			uid := f.configMap(name).GetUID()
			p, r := f.sync(oneMap)
			f.want(p, "update ConfigMap/"+name)
			live := f.configMap(name)
			if live.GetUID() != uid || live.GetLabels()[apply.PartOfLabel] != "" || r.Objects != 1 {
				t.Fatalf("it is still ours, or another: %v", live.Object["metadata"])
			}
			f.settled(oneMap)
		})
	}
}

// The webhook of a revision tag is made by istioctl, and by nobody's commit. It is not ours, nor is one that carries our label because somebody exported and
// created it again.
func TestRevisionTagsAreNotOurs(t *testing.T) {
	f := newFixture(t)
	newIstiod(f).control() // whoever applies a tag waits for its certificate
	const tag = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-revision-tag-NAME-$NS, labels: {istio.io/tag: NAME, istio.io/rev: $NS, app: sidecar-injector LABEL}}
webhooks:
- name: rev.namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: $NS, path: /inject}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
  namespaceSelector: {matchLabels: {istio.io/rev: $NS}}
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`
	ours := strings.NewReplacer("NAME", "git", " LABEL", "").Replace(tag)
	f.sync(oneMap + "---\n" + ours)
	f.kubectl("create", "--field-manager=istioctl", "-f", f.write(strings.NewReplacer("NAME", "made", " LABEL", "").Replace(tag)))
	f.kubectl("create", "--field-manager=istioctl", "-f", f.write(strings.NewReplacer("NAME", "copied", " LABEL", ", "+apply.PartOfLabel+": "+f.unit.ID).Replace(tag)))
	t.Cleanup(func() {
		for _, name := range []string{"git", "made", "copied"} {
			_, _ = f.cluster.Kubectl(uncancelled(t), "delete", "mutatingwebhookconfiguration", "istio-revision-tag-"+name+"-"+f.ns, "--ignore-not-found")
		}
	})
	p, _ := f.sync(oneMap)
	f.want(p, "delete MutatingWebhookConfiguration/istio-revision-tag-git-"+f.ns, "skip MutatingWebhookConfiguration/istio-revision-tag-copied-"+f.ns)
	f.kubectl("get", "mutatingwebhookconfiguration", "istio-revision-tag-made-"+f.ns, "istio-revision-tag-copied-"+f.ns)
	p, err := f.applier.PlanDelete(t.Context(), f.unit)
	if err != nil {
		t.Fatal(err)
	}
	f.run(p)
	f.kubectl("get", "mutatingwebhookconfiguration", "istio-revision-tag-made-"+f.ns, "istio-revision-tag-copied-"+f.ns)
}

// The conversion webhook of a kind is dead. Who has objects of that kind gets no plan, because nothing is known of them, and nothing is taken for absent; all
// others go on.
func TestDeadConversionWebhook(t *testing.T) {
	f := newFixture(t)
	f.widgets()
	f.sync(twoMaps + "---\n" + widget)
	crd := "widgets." + f.ns + ".test.mooring.dev"
	f.kubectl("patch", "crd", crd, "--type=json", "-p", `[
		{"op":"add","path":"/spec/versions/-","value":{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},
		{"op":"replace","path":"/spec/conversion","value":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],
			"clientConfig":{"url":"https://127.0.0.1:1/convert","caBundle":"`+f.certificate()+`"}}}}]`)
	// The API server takes the change up in a moment; what it has read of the kind before it still gives for as long.
	f.eventually("the kind cannot be listed", func() bool {
		_, err := f.newApplier(f.cluster.Config()).Plan(t.Context(), f.unit, f.set(twoMaps), f.policy)
		return err != nil && strings.Contains(err.Error(), "conversion webhook")
	})
	f.applier = f.newApplier(f.cluster.Config())
	owner := f.unit
	for _, stream := range []string{twoMaps + "---\n" + widget, oneMap} {
		if err := f.refuse(stream); !strings.Contains(err.Error(), "list Widget") || !strings.Contains(err.Error(), "conversion webhook") {
			t.Fatalf("got %v", err)
		}
	}
	f.configMap("b")
	if !contains(f.unit.Kinds, schema.GroupKind{Group: f.ns + ".test.mooring.dev", Kind: "Widget"}) {
		t.Fatalf("the kind is forgotten: %v", f.unit.Kinds)
	}

	f.unit = apply.Unit{ID: apply.ApplySetID("second", f.ns, "Mooring", "mooring.dev"), Name: f.ns + "/second"}
	other := strings.Replace(oneMap, "name: a", "name: c", 1)
	f.sync(other)
	f.settled(other)

	f.unit = owner
	f.kubectl("patch", "crd", crd, "--type=merge", "-p", `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	f.eventually("the kind can be listed", func() bool {
		_, err := f.applier.Plan(t.Context(), f.unit, f.set(oneMap), f.policy)
		return err == nil
	})
	p, _ := f.sync(oneMap)
	f.want(p, "delete ConfigMap/b", "delete Widget/w")
}

// Labels of a namespace decide about injection, and have several owners. Git has the keys that it declares, and no others.
func TestNamespaceLabelsOfSeveralOwners(t *testing.T) {
	f := newFixture(t)
	name := f.ns + "-extra"
	t.Cleanup(func() { _, _ = f.cluster.Kubectl(uncancelled(t), "delete", "namespace", name, "--wait=false") })
	f.kubectl("apply", "--server-side", "--field-manager=terraform", "-f", f.write("apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-extra, labels: {istio-injection: enabled, cost: x}}\n"))
	f.kubectl("label", "namespace", name, "by-hand=yes")
	labels := func() string {
		t.Helper()
		u, err := f.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, key := range []string{"istio-injection", "istio.io/rev", "cost", "by-hand", "team"} {
			if value, ok := u.GetLabels()[key]; ok {
				found = append(found, key+"="+value)
			}
		}
		return strings.Join(found, " ")
	}
	for _, test := range []struct{ declared, want string }{
		{"team: a", "istio-injection=enabled cost=x by-hand=yes team=a"},
		{"team: b, cost: z", "istio-injection=enabled cost=z by-hand=yes team=b"},
		{"note: none", "istio-injection=enabled by-hand=yes"},
	} {
		stream := "apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-extra, labels: {" + test.declared + "}}\n"
		f.sync(stream)
		f.settled(stream)
		if got := labels(); got != test.want {
			t.Errorf("Git declares %s: %s, want %s", test.declared, got, test.want)
		}
	}
	first := f.unit
	f.unit = apply.Unit{ID: apply.ApplySetID("second", f.ns, "Mooring", "mooring.dev"), Name: f.ns + "/second"}
	if err := f.refuse("apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-extra, labels: {istio-injection: disabled}}\n"); !strings.Contains(err.Error(), first.Name) {
		t.Fatal(err)
	}
}

const gateway = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: gateway, namespace: $NS}
spec:
  selector: {matchLabels: {istio: gateway}}
  template:
    metadata: {labels: {istio: gateway}}
    spec: {containers: [{name: istio-proxy, image: auto}]}
`

// A gateway whose image the injector fills in is written when an injector picks its pods and can be called, and not before.
func TestGatewayWaitsForTheInjector(t *testing.T) {
	f := newFixture(t)
	i := newIstiod(f)
	i.cleanWebhooks()
	try := func(words ...string) {
		t.Helper()
		r, err := f.applier.Run(t.Context(), f.plan(gateway+"---\n"+oneMap))
		if err == nil {
			t.Fatalf("the gateway was applied, want %q", words)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("the error lacks %q: %v", word, err)
			}
		}
		if len(r.Failed()) != 1 {
			t.Errorf("failed: %+v", r.Failed())
		}
		f.gone("apps", "v1", "deployments", "gateway")
		f.configMap("a")
	}
	try("no injector's webhook picks its pods", "Namespace/"+f.ns)
	injector := i.stream("")
	begin, end := strings.Index(injector, "apiVersion: admissionregistration"), strings.LastIndex(injector, "---\n")
	elsewhere := strings.Replace(injector[begin:end], "kubernetes.io/metadata.name: "+f.ns, "kubernetes.io/metadata.name: another", 1)
	f.kubectl("apply", "-f", f.write(elsewhere))
	try("no injector's webhook picks its pods")
	f.kubectl("apply", "-f", f.write(injector[begin:end]))
	try("has not put its certificate", "istio-sidecar-injector-"+f.ns, "namespace.sidecar-injector.istio.io")
	if err := i.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.sync(gateway + "---\n" + oneMap)
	f.settled(gateway + "---\n" + oneMap)
}
