package check

import "k8s.io/apimachinery/pkg/runtime/schema"

// removedVersion is a version of a kind that newer releases do not serve.
type removedVersion struct {
	// in is the release that removed it, and instead the apiVersion to write.
	in, instead string
}

func (r removedVersion) mend() string {
	if r.instead == "" {
		return "label the namespace for the Pod Security admission instead"
	}
	return "write apiVersion: " + r.instead + ", and look for fields that have moved"
}

// removal says when a version was removed, for those of Kubernetes and of the Gateway API that often go along with a mesh
// (https://kubernetes.io/docs/reference/using-api/deprecation-guide/).
func removal(gvk schema.GroupVersionKind) (r removedVersion, removed bool) {
	old := gvk.GroupVersion().String()
	switch gvk.Kind {
	case "PodDisruptionBudget":
		return removedVersion{"Kubernetes 1.25", "policy/v1"}, old == "policy/v1beta1"
	case "HorizontalPodAutoscaler":
		switch old {
		case "autoscaling/v2beta1":
			return removedVersion{"Kubernetes 1.25", "autoscaling/v2"}, true
		case "autoscaling/v2beta2":
			return removedVersion{"Kubernetes 1.26", "autoscaling/v2"}, true
		}
	case "CronJob":
		return removedVersion{"Kubernetes 1.25", "batch/v1"}, old == "batch/v1beta1"
	case "EndpointSlice":
		return removedVersion{"Kubernetes 1.25", "discovery.k8s.io/v1"}, old == "discovery.k8s.io/v1beta1"
	case "Ingress":
		return removedVersion{"Kubernetes 1.22", "networking.k8s.io/v1"}, old == "networking.k8s.io/v1beta1" || old == "extensions/v1beta1"
	case "IngressClass":
		return removedVersion{"Kubernetes 1.22", "networking.k8s.io/v1"}, old == "networking.k8s.io/v1beta1"
	case "NetworkPolicy":
		return removedVersion{"Kubernetes 1.16", "networking.k8s.io/v1"}, old == "extensions/v1beta1"
	case "Deployment", "DaemonSet", "ReplicaSet", "StatefulSet":
		return removedVersion{"Kubernetes 1.16", "apps/v1"}, old == "extensions/v1beta1" || old == "apps/v1beta1" || old == "apps/v1beta2"
	case "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return removedVersion{"Kubernetes 1.22", "rbac.authorization.k8s.io/v1"}, old == "rbac.authorization.k8s.io/v1beta1"
	case "CustomResourceDefinition":
		return removedVersion{"Kubernetes 1.22", "apiextensions.k8s.io/v1"}, old == "apiextensions.k8s.io/v1beta1"
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return removedVersion{"Kubernetes 1.22", "admissionregistration.k8s.io/v1"}, old == "admissionregistration.k8s.io/v1beta1"
	case "PodSecurityPolicy":
		return removedVersion{"Kubernetes 1.25", ""}, old == "policy/v1beta1"
	case "Gateway", "GatewayClass", "HTTPRoute":
		return removedVersion{"the Gateway API", "gateway.networking.k8s.io/v1"}, old == "gateway.networking.k8s.io/v1alpha2"
	}
	return r, false
}
