package mesh

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// placeholder is the version that the charts have in the sources of Istio; a release puts its own there.
const placeholder = "1.0.0"

// stamp puts the version into the labels where the charts have the placeholder, as a release of Istio does with its charts.
func stamp(u *unstructured.Unstructured, version string) {
	if u.GetKind() == "CustomResourceDefinition" {
		stampLabels(u.Object["metadata"], version) // the rest is a schema, a large one
		return
	}
	stampLabels(u.Object, version)
}

func stampLabels(v any, version string) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if labels, ok := e.(map[string]any); ok && key == "labels" {
				stampMap(labels, version)
				continue
			}
			stampLabels(e, version)
		}
	case []any:
		for _, e := range v {
			stampLabels(e, version)
		}
	}
}

func stampMap(labels map[string]any, version string) {
	chart, _ := labels["helm.sh/chart"].(string)
	name, placed := strings.CutSuffix(chart, "-"+placeholder)
	if !placed {
		return
	}
	labels["helm.sh/chart"] = name + "-" + version
	if labels["app.kubernetes.io/version"] == placeholder {
		labels["app.kubernetes.io/version"] = version
	}
}

// leaveToIstiod takes the failurePolicy Ignore out of istiod's validating webhooks: see "Webhooks" in the package comment.
func leaveToIstiod(u *unstructured.Unstructured) {
	if u.GetKind() != "ValidatingWebhookConfiguration" {
		return
	}
	hooks, _ := u.Object["webhooks"].([]any)
	for _, h := range hooks {
		if hook, ok := h.(map[string]any); ok && hook["failurePolicy"] == "Ignore" {
			delete(hook, "failurePolicy")
		}
	}
}
