package check

import (
	"context"

	security "istio.io/api/security/v1beta1"
)

// peerInRoot finds PeerAuthentications that Istio leaves out because they select pods in the namespace of the mesh-wide policies.
var peerInRoot = meshRule{
	Rule: Rule{
		Code: "MOOR042", Level: Warning,
		Title: "a PeerAuthentication with a selector counts for nothing in the root namespace",
		Mend:  "write it in the namespace of the pods, or drop the selector where it is meant for the whole mesh",
	},
	check: func(_ context.Context, v *view) {
		root := v.rootNamespace()
		for o, p := range specs[*security.PeerAuthentication](v, securityGroup, "PeerAuthentication") {
			if o.ID.Namespace == root && len(p.GetSelector().GetMatchLabels()) > 0 {
				v.report(o, problem{Field: "spec.selector"})
			}
		}
	},
}
