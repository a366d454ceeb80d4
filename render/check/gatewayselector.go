package check

import (
	networking "istio.io/api/networking/v1alpha3"
)

// emptyGatewaySelector finds Gateways that every proxy of the mesh that serves as a gateway would take.
var emptyGatewaySelector = rule{
	Rule: Rule{
		Code: "MOOR025", Level: Warning,
		Title: "the selector is empty: all gateways of the mesh serve these hosts and ports, the egress gateway too",
		Mend:  "select the pods of one gateway, as in selector: {istio: ingressgateway}",
	},
	check: func(s *subject) []problem {
		if s.config == nil {
			return nil
		}
		if gw, ok := s.config.Spec.(*networking.Gateway); ok && len(gw.GetSelector()) == 0 {
			return []problem{{Field: "spec.selector"}}
		}
		return nil
	},
}
