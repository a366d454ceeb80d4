package check

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// missingNamespace finds objects that must live in a namespace and name none. Applied as they are they would land wherever the
// agent's context happens to point.
var missingNamespace = rule{
	Rule: Rule{
		Code: "MOOR009", Level: Error,
		Title: "no namespace",
		Mend:  "write metadata.namespace in the file, or namespace: in the kustomization",
	},
	check: func(s *subject) []problem {
		meta, _ := s.root()["metadata"].(map[string]any)
		if ns, written := meta["namespace"]; written && ns != "" && ns != nil {
			return nil // whether it is a good one is for MOOR010
		}
		gk := s.GroupVersionKind().GroupKind()
		if s.kinds[gk] == nil && !isNamespaced(gk) {
			return nil
		}
		return []problem{{Field: "metadata.namespace", Message: gk.Kind + " lives in a namespace, and none is written"}}
	},
}

// isNamespaced knows those kinds of Kubernetes and of the Gateway API that live in namespaces. Of all others only the cluster knows.
func isNamespaced(gk schema.GroupKind) bool {
	switch gk.Group {
	case "":
		switch gk.Kind {
		case "ConfigMap", "Endpoints", "Event", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate",
			"ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount":
			return true
		}
	case "apps", "batch", "discovery.k8s.io", "coordination.k8s.io":
		return true // all of their kinds
	case "autoscaling":
		return gk.Kind == "HorizontalPodAutoscaler"
	case "policy":
		return gk.Kind == "PodDisruptionBudget"
	case "networking.k8s.io":
		return gk.Kind == "Ingress" || gk.Kind == "NetworkPolicy"
	case "rbac.authorization.k8s.io":
		return gk.Kind == "Role" || gk.Kind == "RoleBinding"
	case "gateway.networking.k8s.io":
		return gk.Kind != "GatewayClass"
	case "mooring.dev":
		return gk.Kind == "Mooring"
	}
	return false
}
