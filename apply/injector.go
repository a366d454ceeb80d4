package apply

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A gateway's pod has the image "auto", and the injector puts the proxy's in. A pod that comes while there is no injector keeps it, cannot be pulled, and stays
// so until somebody deletes it. So a workload with this image is not written before a webhook of an injector picks its pods and can be called.

// injects is an error when nobody would put an image in. What may not be read is not taken for absent: then the workload is written.
func (r *runner) injects(ctx context.Context, s Step) error {
	if s.want == nil || !hasImageAuto(s.want.get()) {
		return nil
	}
	webhooks := schema.GroupVersionResource{Group: kindMutating.Group, Version: "v1", Resource: "mutatingwebhookconfigurations"}
	found, err := r.objects.Resource(webhooks).List(ctx, metav1.ListOptions{LabelSelector: revisionLabel})
	if err != nil {
		return ctx.Err()
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	namespace, err := r.metadata.Resource(namespaces).Get(ctx, s.ID.Namespace, metav1.GetOptions{})
	if err != nil {
		return ctx.Err()
	}
	var unable string
	for i := range found.Items {
		for _, hook := range injectorHooks(&found.Items[i]) {
			if !selects(hook, "namespaceSelector", namespace.Labels) || !selects(hook, "objectSelector", podLabels(s.want.get())) {
				continue
			}
			if canBeCalled(hook) {
				return nil
			}
			unable = fmt.Sprintf("MutatingWebhookConfiguration/%s, webhook %v", found.Items[i].GetName(), hook["name"])
		}
	}
	if unable != "" {
		return fmt.Errorf("has the image auto, and istiod has not put its certificate into the webhook that would replace it (%s): is istiod of this revision running?", unable)
	}
	return fmt.Errorf("has the image auto, and no injector's webhook picks its pods to replace it: label Namespace/%s or the pod template "+
		"(istio-injection: enabled, sidecar.istio.io/inject: \"true\", or istio.io/rev with the revision), or apply Istio's control plane first", s.ID.Namespace)
}

// injectorHooks are the webhooks of a configuration that inject the proxy.
func injectorHooks(u *unstructured.Unstructured) []map[string]any {
	hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	var found []map[string]any
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		if name, _ := hook["name"].(string); strings.HasSuffix(name, "sidecar-injector.istio.io") {
			found = append(found, hook)
		}
	}
	return found
}

// canBeCalled is true for a webhook with a certificate, and for one with a URL, which may have one that all trust.
func canBeCalled(hook map[string]any) bool {
	bundle, _, _ := unstructured.NestedString(hook, "clientConfig", "caBundle")
	url, _, _ := unstructured.NestedString(hook, "clientConfig", "url")
	return bundle != "" || url != ""
}

// selects says whether one of a webhook's selectors picks these labels. None picks all; one that cannot be read is believed to.
func selects(hook map[string]any, field string, of map[string]string) bool {
	raw, _, err := unstructured.NestedMap(hook, field)
	if err != nil {
		return true
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(&selector)
	return err != nil || s.Matches(kubelabels.Set(of))
}

// podLabels of a workload, or of a Pod itself.
func podLabels(form *unstructured.Unstructured) map[string]string {
	if form.GetKind() == kindPod.Kind {
		return form.GetLabels()
	}
	found, _, _ := unstructured.NestedStringMap(form.Object, "spec", "template", "metadata", "labels")
	return found
}
