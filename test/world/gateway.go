package world

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// addGateway puts there what the check of a commit looks for of Istio's ingress gateway: its namespace, its Service, and a Pod with its labels. Nothing runs
// in the Pod, for there is no kubelet; a mesh that has no such Pod has no gateway, and a Gateway that selects it is refused.
func (w *World) addGateway(ctx context.Context) error {
	labels := map[string]string{"app": "istio-ingressgateway", "istio": "ingressgateway"}
	meta := metav1.ObjectMeta{Namespace: "istio-system", Name: "istio-ingressgateway", Labels: labels}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace}},
		&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
			Selector: labels, Ports: []corev1.ServicePort{{Name: "http2", Port: 80}, {Name: "https", Port: 443}},
		}},
		&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "istio-proxy", Image: "istio/proxyv2:1.31.0"}},
		}},
	} {
		if err := w.client.Create(ctx, o); err != nil {
			return fmt.Errorf("make the ingress gateway: %w", err)
		}
	}
	return nil
}
