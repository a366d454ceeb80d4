package check

import (
	"context"

	security "istio.io/api/security/v1beta1"
	"istio.io/istio/pkg/config/labels"
)

// allowNothing finds policies that refuse everything because they have no rules, where that is likely to be a slip.
var allowNothing = meshRule{
	Rule: Rule{
		Code: "MOOR022", Level: Warning,
		Title: "a policy without rules refuses every request, and no other policy lets one through",
		Mend:  "write rules; rules: [{}] allows everything, and a policy that is to refuse all is best called deny-all",
	},
	check: func(_ context.Context, v *view) {
		root := v.rootNamespace()
		for _, p := range v.policies() {
			if p.GetAction() != security.AuthorizationPolicy_ALLOW || len(p.GetRules()) > 0 || denialByName(p.object.ID.Name) {
				continue
			}
			if !v.letThrough(p, root) {
				v.report(p.object, problem{Field: "spec.rules"})
			}
		}
	},
}

// letThrough says whether another policy allows something to the same workloads. One with the action CUSTOM does not: it can only refuse.
func (v *view) letThrough(p authorization, root string) bool {
	for _, other := range v.policies() {
		if other.GetAction() == security.AuthorizationPolicy_ALLOW && len(other.GetRules()) > 0 && p.meets(other, root) {
			return true
		}
	}
	return false
}

// denyBeatsAllow finds rules that refuse everything beside rules that allow something, as if the more specific one won.
var denyBeatsAllow = meshRule{
	Rule: Rule{
		Code: "MOOR041", Level: Warning,
		Title: "a rule that denies everything wins over all that is allowed",
		Mend:  "to refuse what is not allowed, drop the DENY and write a policy without action and rules: spec: {}",
	},
	check: func(_ context.Context, v *view) {
		root := v.rootNamespace()
		for _, p := range v.policies() {
			if p.GetAction() != security.AuthorizationPolicy_DENY {
				continue
			}
			for i, r := range p.GetRules() {
				if !unconditional(r) {
					continue
				}
				other, ok := v.overruled(p, root)
				switch {
				case !ok:
				case p.object.Foreign && !other.object.Foreign:
					v.report(other.object, problem{
						Field:   "spec.rules",
						Message: "allows nothing: " + p.object.ID.String() + " denies every request, and DENY wins over ALLOW",
						Mend:    "take the empty rule out of " + p.object.ID.String() + " first",
					})
				default:
					v.report(p.object, problem{
						Field:   index("spec.rules", i),
						Message: "an empty rule denies every request, also those that " + other.object.ID.String() + " allows: DENY wins over ALLOW",
					})
				}
			}
		}
	},
}

// overruled finds a policy that allows something, all of whose workloads are under the one that denies.
func (v *view) overruled(deny authorization, root string) (authorization, bool) {
	for _, other := range v.policies() {
		if other.GetAction() != security.AuthorizationPolicy_ALLOW || len(other.GetRules()) == 0 || deny.onGateway() || other.onGateway() {
			continue
		}
		ns := deny.object.ID.Namespace
		if (ns == root || ns == other.object.ID.Namespace) && labels.Instance(deny.selector()).SubsetOf(other.selector()) {
			return other, true
		}
	}
	return authorization{}, false
}
