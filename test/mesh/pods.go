package mesh

import (
	"fmt"

	"istio.io/istio/pkg/config/constants"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ingressGateway is the Service of the gateway that Istio's default profile installs.
func ingressGateway() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: constants.IstioSystemNamespace, Name: "istio-ingressgateway"},
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeLoadBalancer,
			Selector: map[string]string{"app": "istio-ingressgateway", "istio": "ingressgateway"},
			Ports: []corev1.ServicePort{
				{Name: "status-port", Port: 15021, TargetPort: intstr.FromInt32(15021)},
				{Name: "http2", Port: 80, TargetPort: intstr.FromInt32(8080)},
				{Name: "https", Port: 443, TargetPort: intstr.FromInt32(8443)},
			},
		},
	}
}

// addPod adds the pod that a controller would make from a template.
func (w *world) addPod(namespace, name string, template corev1.PodTemplateSpec) {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = namespace, name+"-0"
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "istio-proxy", Image: "auto"}}
	}
	if pod.Spec.ServiceAccountName == "" {
		pod.Spec.ServiceAccountName = "default"
	}
	address := fmt.Sprintf("10.1.0.%d", len(w.pods)+1)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	w.pods = append(w.pods, pod)
}

// endpoints is the slice that a controller would make for a Service.
func (w *world) endpoints(s *corev1.Service) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: s.Name + "-0", Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, pod := range w.pods {
		if pod.Namespace != s.Namespace || len(s.Spec.Selector) == 0 || !has(pod.Labels, s.Spec.Selector) {
			continue
		}
		ready := true
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
		})
		if slice.Ports == nil {
			slice.Ports = ports(s, pod)
		}
	}
	return slice
}

// ports are those of a Service as a pod serves them.
func ports(s *corev1.Service, pod *corev1.Pod) []discoveryv1.EndpointPort {
	out := []discoveryv1.EndpointPort{}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		number := p.TargetPort.IntVal
		if p.TargetPort.Type == intstr.String {
			number = named(pod, p.TargetPort.StrVal)
		}
		if number == 0 {
			number = p.Port
		}
		protocol := p.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		out = append(out, discoveryv1.EndpointPort{Name: &p.Name, Port: &number, Protocol: &protocol, AppProtocol: p.AppProtocol})
	}
	return out
}

func named(pod *corev1.Pod, name string) int32 {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == name {
				return p.ContainerPort
			}
		}
	}
	return 0
}
