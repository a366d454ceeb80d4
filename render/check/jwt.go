package check

import (
	"context"
	"fmt"
	"strings"

	security "istio.io/api/security/v1beta1"
)

// tokenWithoutJWT finds rules on tokens for workloads that read no tokens. Routes on tokens are IST0149.
var tokenWithoutJWT = meshRule{
	Rule: Rule{
		Code: "MOOR027", Level: Warning,
		Title: "a rule asks for a token where no RequestAuthentication reads one",
		Mend:  "add a RequestAuthentication for the same workloads, with the issuer of the tokens",
	},
	check: func(_ context.Context, v *view) {
		root := v.rootNamespace()
		for _, p := range v.policies() {
			field, notField := tokenFields(p.AuthorizationPolicy)
			if field == "" && notField == "" || v.readsTokens(p, root) {
				continue
			}
			for _, ns := range []string{p.object.ID.Namespace, root} {
				if !v.Knows(securityGroup, "RequestAuthentication", ns) {
					v.unknown("who reads the tokens that "+p.object.ID.String()+" asks for", v.Why(securityGroup, "RequestAuthentication"))
					field, notField = "", ""
					break
				}
			}
			if field != "" {
				v.report(p.object, problem{Field: field, Message: "no RequestAuthentication is for these workloads, so no request has a token: this never holds"})
			}
			if notField != "" {
				v.report(p.object, problem{Field: notField, Message: "no RequestAuthentication is for these workloads, so no request has a token: this always holds"})
			}
		}
	},
}

// tokenFields are the first places of a policy that want a token, and that want none.
func tokenFields(spec *security.AuthorizationPolicy) (field, notField string) {
	set := func(to *string, values []string, format string, at ...any) {
		if *to == "" && len(values) > 0 {
			*to = fmt.Sprintf(format, at...)
		}
	}
	for i, r := range spec.GetRules() {
		for j, from := range r.GetFrom() {
			set(&field, from.GetSource().GetRequestPrincipals(), "spec.rules[%d].from[%d].source.requestPrincipals", i, j)
			set(&notField, from.GetSource().GetNotRequestPrincipals(), "spec.rules[%d].from[%d].source.notRequestPrincipals", i, j)
		}
		for j, when := range r.GetWhen() {
			if strings.HasPrefix(when.GetKey(), "request.auth.") {
				set(&field, when.GetValues(), "spec.rules[%d].when[%d].values", i, j)
				set(&notField, when.GetNotValues(), "spec.rules[%d].when[%d].notValues", i, j)
			}
		}
	}
	return field, notField
}

// readsTokens says whether the workloads of a policy may read tokens, by a RequestAuthentication or by a filter that somebody wrote by hand.
func (v *view) readsTokens(p authorization, root string) bool {
	for o, ra := range specs[*security.RequestAuthentication](v, securityGroup, "RequestAuthentication") {
		ns := o.ID.Namespace
		if ns != p.object.ID.Namespace && ns != root && p.object.ID.Namespace != root {
			continue
		}
		if p.onGateway() || ra.GetTargetRef() != nil || len(ra.GetTargetRefs()) > 0 || mayOverlap(p.selector(), ra.GetSelector().GetMatchLabels()) {
			return true
		}
	}
	for _, o := range v.Of(networkingGroup, "EnvoyFilter") {
		if strings.Contains(fmt.Sprint(o.Unstructured().Object["spec"]), "jwt_authn") {
			return true
		}
	}
	return false
}
