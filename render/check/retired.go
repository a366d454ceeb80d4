package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// retiredKind finds the kinds that Istio has removed. The API server takes them as long as somebody left their definitions behind,
// and then nobody reads them.
var retiredKind = rule{
	Rule: Rule{
		Code: "MOOR008", Level: Error,
		Title: "nobody reads this kind any more",
		Mend:  "see https://istio.io/latest/docs/reference/config/ for what there is today",
	},
	check: func(s *subject) []problem {
		gk := s.GroupVersionKind().GroupKind()
		mend := replacement(gk)
		if mend == "" {
			return nil
		}
		return []problem{{
			Field:   "apiVersion",
			Message: fmt.Sprintf("Istio has removed %s of %s: nobody reads it any more", gk.Kind, gk.Group),
			Mend:    mend,
		}}
	},
}

// replacement says what does today what the kind did; empty for a kind that was not removed.
func replacement(gk schema.GroupKind) string {
	const (
		authorize = "write a security.istio.io/v1 AuthorizationPolicy"
		peers     = "write a security.istio.io/v1 PeerAuthentication"
	)
	switch gk.Group {
	case "config.istio.io": // Mixer, gone with Istio 1.8
		return authorize + " for lists and denials, a telemetry.istio.io/v1 Telemetry for metrics and logs, " +
			"and a rate limit service behind an EnvoyFilter for quotas"
	case "authentication.istio.io": // gone with Istio 1.6
		if gk.Kind == "MeshPolicy" {
			return peers + " named default in the root namespace (istio-system)"
		}
		return peers + " for peers, and a RequestAuthentication for origins"
	case "rbac.istio.io": // gone with Istio 1.6
		switch gk.Kind {
		case "ClusterRbacConfig", "RbacConfig":
			return authorize + " with an empty spec in each namespace that should deny by default"
		default:
			return authorize + ": roles become rules[].to and bindings rules[].from"
		}
	case "networking.istio.io":
		switch gk.Kind {
		case "RouteRule":
			return "write a networking.istio.io/v1 VirtualService"
		case "DestinationPolicy":
			return "write a networking.istio.io/v1 DestinationRule"
		case "EgressRule":
			return "write a networking.istio.io/v1 ServiceEntry"
		}
	}
	return ""
}
