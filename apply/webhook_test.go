package apply_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

var gateways = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "gateways"}

// installed is a fixture whose mesh has an istiod that answers, and objects that it let through.
func installed(t *testing.T) (*istiod, string) {
	t.Helper()
	f := newFixture(t)
	f.istio()
	i := newIstiod(f)
	i.cleanWebhooks()
	all := i.stream("Ignore") + "---\n" + mesh
	i.control()
	f.sync(all)
	i.isArmed()
	f.settled(all)
	return i, all
}

// Istiod is down. The commit is planned all the same: what its webhook is asked about is tried when its turn comes, fails with the cluster's fault, and
// the rest is done. Once istiod answers the next pass makes up for it.
func TestIstiodDown(t *testing.T) {
	i, all := installed(t)
	i.stop()
	i.settled(all)
	// An agent that starts now remembers nothing, and finds all as it should be; what somebody changed it sees.
	i.applier.Forget(i.unit.ID)
	i.settled(all)
	dropped := strings.Replace(all, "  - route:\n    - {destination: {host: reviews, subset: v1}, weight: 90}\n    - {destination: {host: reviews, subset: v2}, weight: 10}\n",
		"  - route: [{destination: {host: reviews}}]\n", 1)
	for _, other := range []string{dropped, strings.Replace(all, "  http:\n", "  exportTo: [\"*\"]\n  http:\n", 1)} {
		i.applier.Forget(i.unit.ID)
		i.want(i.plan(other), "update VirtualService/reviews")
	}
	changed := strings.NewReplacer("weight: 90", "weight: 80", "k: one", "k: changed").Replace(all) +
		"---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: more, namespace: $NS}\nspec: {hosts: [more.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}\n"
	p := i.plan(changed)
	i.want(p, "update VirtualService/reviews", "create ServiceEntry/more", "update ConfigMap/a")
	if !strings.Contains(p.String(), "not tried: webhook rev.validation.istio.io did not answer") {
		t.Errorf("the plan does not say why nothing was tried:\n%s", p)
	}
	r, err := i.applier.Run(t.Context(), p)
	faults := apply.ObjectErrors(err)
	if len(faults) != 2 {
		t.Fatalf("faults: %v", err)
	}
	for _, fault := range faults {
		hook, ok := errors.AsType[*apply.WebhookError](fault)
		if !ok || hook.Webhook != "rev.validation.istio.io" || hook.Service.String() != i.ns+"/istiod" || fault.Origin.File == "" {
			t.Errorf("fault: %v", fault)
		}
		if !strings.Contains(fault.Error(), "no fault of the commit") || !strings.Contains(fault.Error(), "Service/"+i.ns+"/istiod") || strings.Contains(fault.Error(), "timeout=") {
			t.Errorf("the error says too little or too much: %v", fault)
		}
	}
	if got := r.Counts(); got.Update != 1 {
		t.Errorf("done: %s", got)
	}
	if got := i.validator("failurePolicy"); got != "Fail" {
		t.Fatalf("the webhook is %s", got)
	}
	i.start()
	p, _ = i.sync(changed)
	i.want(p, "update VirtualService/reviews", "create ServiceEntry/more")
	i.settled(changed)
}

// A delete is nothing that the webhook is asked about.
func TestDeletesWhileIstiodIsDown(t *testing.T) {
	i, all := installed(t)
	i.stop()
	rule := all[:strings.Index(all, "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule")]
	p, _ := i.sync(rule + "---\n" + oneMap)
	i.want(p, "delete DestinationRule/reviews")
	// Beside something that fails, nothing is deleted.
	changed := strings.Replace(rule, "weight: 90", "weight: 80", 1)
	p = i.plan(changed)
	i.want(p, "update VirtualService/reviews", "delete ConfigMap/a")
	if _, err := i.applier.Run(t.Context(), p); err == nil {
		t.Fatal("the write went through")
	}
	i.configMap("a")
}

// What a user made and a commit takes over while istiod is down is not taken from somebody else who adopts it in between.
func TestAdoptionWhileIstiodIsDown(t *testing.T) {
	i, all := installed(t)
	const entry = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: more, namespace: $NS}\nspec: {hosts: [more.example.com], ports: [{number: 80, name: http, protocol: HTTP}]}\n"
	i.kubectl("create", "-f", i.write(entry))
	i.stop()
	p := i.plan(all + "---\n" + strings.Replace(entry, "more.example", "some.example", 1))
	i.want(p, "update ServiceEntry/more")
	i.start()
	i.kubectl("label", "serviceentry", "more", apply.PartOfLabel+"=another")
	if _, err := i.applier.Run(t.Context(), p); err == nil || !strings.Contains(err.Error(), "changed since it was planned") {
		t.Fatalf("want an error, got %v", err)
	}
	live := i.get("networking.istio.io", "v1", "serviceentries", "more")
	if hosts, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "hosts"); hosts[0] != "more.example.com" || live.GetLabels()[apply.PartOfLabel] != "another" {
		t.Fatalf("it was taken: %v", live.Object)
	}
}

// A wrong object is the commit's fault, and stays one: the webhook answered.
func TestIstiodRefuses(t *testing.T) {
	i, all := installed(t)
	err := i.refuse(strings.Replace(all, "hosts: [reviews]", "hosts: [wrong]", 1))
	if _, ok := errors.AsType[*apply.WebhookError](err); ok || !strings.Contains(err.Error(), "the test says so") {
		t.Fatalf("got %v", err)
	}
	if i.judged.Load() == 0 {
		t.Fatal("nobody asked istiod")
	}
	_, err = i.objects.Resource(gateways).Namespace(i.ns).Get(t.Context(), "invalid-gateway", metav1.GetOptions{})
	if err == nil {
		t.Fatal("istiod's probe was kept")
	}
}
