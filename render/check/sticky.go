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
		sticky := v.stickyRules()
		if len(sticky) == 0 {
			return
		}
		for o, vs := range specs[*networking.VirtualService](v, networkingGroup, "VirtualService") {
			for i, route := range vs.GetHttp() {
				if rule := torn(sticky, o, route); rule != nil {
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
func torn(sticky map[string]*world.Object, vs *world.Object, route *networking.HTTPRoute) (rule *world.Object) {
	shares := 0
	for _, to := range route.GetRoute() {
		if to.GetWeight() == 0 {
			continue
		}
		shares++
		if o := sticky[stickyKey(vs.ID.Namespace, to.GetDestination().GetHost(), to.GetDestination().GetSubset())]; o != nil {
			rule = o
		}
	}
	if shares < 2 {
		return nil
	}
	return rule
}

// stickyKey is a destination as callers of a namespace see it.
func stickyKey(namespace, host, subset string) string {
	return namespace + "/" + fullHost(host, namespace) + "/" + subset
}

// stickyRules lists the DestinationRules with consistentHash by destination. Those are left out that callers in the namespace of a VirtualService may not go
// by, since it is not theirs.
func (v *view) stickyRules() map[string]*world.Object {
	all := map[string]*world.Object{}
	for o, rule := range specs[*networking.DestinationRule](v, networkingGroup, "DestinationRule") {
		whole := rule.GetTrafficPolicy().GetLoadBalancer()
		if whole.GetConsistentHash() != nil {
			all[stickyKey(o.ID.Namespace, rule.GetHost(), "")] = o
		}
		for _, s := range rule.GetSubsets() {
			own := s.GetTrafficPolicy().GetLoadBalancer()
			if own == nil {
				own = whole
			}
			if own.GetConsistentHash() != nil {
				all[stickyKey(o.ID.Namespace, rule.GetHost(), s.GetName())] = o
			}
		}
	}
	return all
}
