package apply_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	istiomesh "github.com/mooring-dev/mooring/render/mesh"
)

// What Istio's own charts render, and which of it the order takes for the control plane, or makes wait for it.
func TestControlPlaneOfAnInstallation(t *testing.T) {
	operator := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: install.istio.io/v1alpha1
kind: IstioOperator
metadata: {name: mesh}
spec:
  profile: default
  revision: 1-31
  components: {egressGateways: [{name: istio-egressgateway, enabled: true}]}
  values: {revisionTags: [prod]}
`), &operator.Object); err != nil {
		t.Fatal(err)
	}
	all, _, err := istiomesh.Expander{}.Expand(t.Context(), []render.Object{{Content: render.ContentOf(operator)}})
	if err != nil {
		t.Fatal(err)
	}
	var plane []string
	for _, o := range all {
		if apply.IsControlPlane(o.Unstructured()) {
			plane = append(plane, o.ID().String())
		}
		if apply.NeedsIstiod(apply.Create, o.Unstructured()) {
			t.Errorf("%s is taken for something that waits for istiod", o.ID())
		}
	}
	if diff := cmp.Diff([]string{
		"ConfigMap/istio-system/istio-1-31",
		"ConfigMap/istio-system/istio-sidecar-injector-1-31",
		"ConfigMap/istio-system/values-1-31",
		"Service/istio-system/istiod-1-31",
		"Service/istio-system/istiod-revision-tag-prod",
		"MutatingWebhookConfiguration/istio-revision-tag-prod",
		"MutatingWebhookConfiguration/istio-sidecar-injector-1-31",
		"ValidatingWebhookConfiguration/istio-validator-1-31-istio-system",
		"Deployment/istio-system/istiod-1-31",
		"HorizontalPodAutoscaler/istio-system/istiod-1-31",
	}, plane); diff != "" {
		t.Errorf("control plane (-want +got):\n%s", diff)
	}
}

func TestWhatWaitsForIstiod(t *testing.T) {
	for _, test := range []struct {
		name, object string
		action       apply.Action
		waits        bool
	}{
		{"an object of Istio's kinds", "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: a, namespace: b}}", apply.Update, true},
		{"one of the charts, whose labels are istiod's", "{apiVersion: networking.istio.io/v1alpha3, kind: EnvoyFilter, metadata: {name: a, namespace: b, labels: {app: istiod}}}", apply.Create, true},
		{"its deletion", "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: a, namespace: b}}", apply.Delete, false},
		{"one that is as it should be", "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: a, namespace: b}}", apply.Unchanged, false},
		{"a gateway that is injected", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {template: {spec: {containers: [{name: log, image: log:1}, {name: istio-proxy, image: auto}]}}}}", apply.Create, true},
		{"a Pod that is injected", "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: istio-proxy, image: auto}]}}", apply.Create, true},
		{"a workload", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {template: {spec: {containers: [{name: a, image: a:auto}]}}}}", apply.Create, false},
		{"a Gateway of Kubernetes, which istiod's webhook does not judge", "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: a, namespace: b}}", apply.Create, false},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(test.object), &u.Object); err != nil {
			t.Fatal(err)
		}
		if got := apply.NeedsIstiod(test.action, u); got != test.waits {
			t.Errorf("%s: waits is %v", test.name, got)
		}
		if apply.IsControlPlane(u) {
			t.Errorf("%s is taken for the control plane", test.name)
		}
	}
}

// The API server's words, as they were seen, and what a person reads of them: the same at every try.
func TestWebhookErrorsReadTheSame(t *testing.T) {
	const post = `Post "https://istiod.istio-system.svc:443/validate?timeout=10s": `
	for _, test := range []struct{ said, cause, service string }{
		{post + `no endpoints available for service "istiod"`, `no endpoints available for service "istiod"`, "istio-system/istiod"},
		{post + `service "istiod" not found`, `service "istiod" not found`, "istio-system/istiod"},
		{post + `dial tcp 10.244.0.7:15017: connect: connection refused`, "connect: connection refused", "istio-system/istiod"},
		{post + `dial tcp [fd00::7]:15017: connect: connection refused`, "connect: connection refused", "istio-system/istiod"},
		{post + `dial tcp 10.244.0.7:15017: i/o timeout`, "no answer in time", "istio-system/istiod"},
		{post + `context deadline exceeded`, "no answer in time", "istio-system/istiod"},
		{post + `net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)`, "no answer in time", "istio-system/istiod"},
		{
			post + `tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-28T09:00:00Z is after 2026-11-27T09:00:00Z`,
			"tls: failed to verify certificate: x509: certificate has expired or is not yet valid", "istio-system/istiod",
		},
		{`Post "https://127.0.0.1:4443/validate?timeout=10s": EOF`, "EOF", "/"},
		{"the server is currently unable to handle the request", "the server is currently unable to handle the request", "/"},
	} {
		err := fmt.Errorf("wrapped: %w", apierrors.NewInternalError(errors.New(`failed calling webhook "validation.istio.io": failed to call webhook: `+test.said)))
		hook, ok := apply.AsWebhookError(err)
		if !ok || hook.Webhook != "validation.istio.io" || hook.Cause != test.cause || hook.Service.String() != test.service {
			t.Errorf("%s: %+v", test.said, hook)
		}
	}
	for _, err := range []error{
		nil,
		errors.New(`failed calling webhook "validation.istio.io": EOF`),
		apierrors.NewInternalError(errors.New("etcdserver: no leader")),
		apierrors.NewForbidden(schema.GroupResource{}, "a", errors.New(`admission webhook "validation.istio.io" denied the request`)),
	} {
		if _, ok := apply.AsWebhookError(err); ok {
			t.Errorf("taken for a webhook that does not answer: %v", err)
		}
	}
}
