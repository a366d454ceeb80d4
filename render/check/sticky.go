package check

import (
	"context"
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render/check/world"
)

// stickyWeights finds sticky sessions that weights tear apart.
var stickyWeights = meshRule{
	Rule: Rule{
		Code: "MOOR034", Level: Info,
		Title: "a route with weights does not keep a client with one endpoint",
		Mend:  "choose the version by a header or a cookie with a match, and keep consistentHash for the endpoints of each",
	},
	check: func(_ context.Context, v *view) {
		for o, vs := range specs[*networking.VirtualService](v, networkingGroup, "VirtualService") {
			for i, route := range vs.GetHttp() {
				if rule := v.torn(o, route); rule != nil {
					p := problem{
						Field:   fmt.Sprintf("spec.http[%d].route", i),
						Message: fmt.Sprintf("the weights decide for each request anew, so %s cannot keep a client with one endpoint by consistentHash", rule.ID),
					}
					if o.Foreign && !rule.Foreign {
						p.Field, p.Message = "spec", fmt.Sprintf("consistentHash cannot keep a client with one endpoint: the weights of %s decide for each request anew", o.ID)
						v.report(rule, p)
						continue
					}
					v.report(o, p)
				}
			}
		}
	},
}

// torn gives the DestinationRule that wants stickiness for destinations among which a route divides by weights.
func (v *view) torn(vs *world.Object, route *networking.HTTPRoute) *world.Object {
	var sticky *world.Object
	shares := 0
	for _, to := range route.GetRoute() {
		if to.GetWeight() == 0 {
			continue
		}
		shares++
		if rule := v.stickyRule(fullHost(to.GetDestination().GetHost(), vs.ID.Namespace), to.GetDestination().GetSubset(), vs.ID.Namespace); rule != nil {
			sticky = rule
		}
	}
	if shares < 2 {
		return nil
	}
	return sticky
}

// stickyRule gives the DestinationRule with consistentHash for a destination. One that callers in the VirtualService's namespace do not go by is left out.
func (v *view) stickyRule(host, subset, namespace string) *world.Object {
	for o, rule := range specs[*networking.DestinationRule](v, networkingGroup, "DestinationRule") {
		if fullHost(rule.GetHost(), o.ID.Namespace) != host || o.ID.Namespace != namespace {
			continue
		}
		balancer := rule.GetTrafficPolicy().GetLoadBalancer()
		for _, s := range rule.GetSubsets() {
			if s.GetName() == subset && s.GetTrafficPolicy().GetLoadBalancer() != nil {
				balancer = s.GetTrafficPolicy().GetLoadBalancer()
			}
		}
		if balancer.GetConsistentHash() != nil {
			return o
		}
	}
	return nil
}
