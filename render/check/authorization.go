package check

import (
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"

	"github.com/mooring-dev/mooring/render/check/world"
)

// authorization is an AuthorizationPolicy that is enforced.
type authorization struct {
	object *world.Object
	*security.AuthorizationPolicy
}

// policies are the AuthorizationPolicies that are enforced: one that is only tried out lets through and refuses nothing.
func (v *view) policies() []authorization {
	return once(&v.known().policies, func() []authorization {
		var all []authorization
		for o, spec := range specs[*security.AuthorizationPolicy](v, securityGroup, "AuthorizationPolicy") {
			if dry, _ := strconv.ParseBool(o.GetAnnotations()["istio.io/dry-run"]); !dry {
				all = append(all, authorization{o, spec})
			}
		}
		return all
	})
}

// selector of the workloads that a policy is for.
func (p authorization) selector() map[string]string {
	return p.GetSelector().GetMatchLabels()
}

// onGateway says that a policy is for gateways and waypoints, by their name.
func (p authorization) onGateway() bool {
	return p.GetTargetRef() != nil || len(p.GetTargetRefs()) > 0
}

// meets says whether two policies may be for the same workload.
func (p authorization) meets(other authorization, root string) bool {
	if p.onGateway() != other.onGateway() {
		return false
	}
	a, b := p.object.ID.Namespace, other.object.ID.Namespace
	return (a == b || a == root || b == root) && mayOverlap(p.selector(), other.selector())
}

// unconditional says whether a rule holds for every request.
func unconditional(r *security.Rule) bool {
	return r != nil && len(r.GetFrom())+len(r.GetTo())+len(r.GetWhen()) == 0
}

// denialByName says whether a policy's name owns up to it that nothing is let through.
func denialByName(name string) bool {
	return slices.ContainsFunc([]string{"deny", "nothing", "none", "block", "lock", "closed", "quarantine"}, func(word string) bool {
		return strings.Contains(name, word)
	})
}
