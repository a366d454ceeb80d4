package mesh

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// placeholder is the version that the charts have in the sources of Istio; a release puts its own there.
const placeholder = "1.0.0"

// ownerLabel names the IstioOperator that an object is of. The charts say unknown; istioctl install knows better, and so do we.
const ownerLabel = "install.operator.istio.io/owning-resource"

// seal is what the labels of an installation say of it.
type seal struct {
	version, owner string
}

// stamp puts the version into the labels where the charts have the placeholder, as a release of Istio does with its charts, and the owner where they
// have none.
func (s seal) stamp(u *unstructured.Unstructured) {
	if u.GetKind() == "CustomResourceDefinition" {
		s.labels(u.Object["metadata"]) // the rest is a schema, a large one
		return
	}
	s.labels(u.Object)
}

func (s seal) labels(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			if labels, ok := e.(map[string]any); ok && key == "labels" {
				s.press(labels)
				continue
			}
			s.labels(e)
		}
	case []any:
		for _, e := range v {
			s.labels(e)
		}
	}
}

func (s seal) press(labels map[string]any) {
	if labels[ownerLabel] == "unknown" {
		labels[ownerLabel] = s.owner
		if len(validation.IsValidLabelValue(s.owner)) > 0 {
			delete(labels, ownerLabel) // a name may be longer than a label
		}
	}
	chart, _ := labels["helm.sh/chart"].(string)
	name, placed := strings.CutSuffix(chart, "-"+placeholder)
	if !placed {
		return
	}
	labels["helm.sh/chart"] = name + "-" + s.version
	if labels["app.kubernetes.io/version"] == placeholder {
		labels["app.kubernetes.io/version"] = s.version
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
