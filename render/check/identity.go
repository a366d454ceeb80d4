package check

import (
	"context"
	"fmt"
	"strings"

	security "istio.io/api/security/v1beta1"
	"istio.io/istio/pilot/pkg/model"
)

// sourceValue is a value by which a policy knows a caller, and where it is written.
type sourceValue struct {
	field, value string
	// not says that callers with other values are meant.
	not bool
}

// identities lists what a policy wants to know of the certificate of a caller.
func identities(spec *security.AuthorizationPolicy) []sourceValue {
	var all []sourceValue
	add := func(field string, values []string, not bool) {
		for i, value := range values {
			all = append(all, sourceValue{index(field, i), value, not})
		}
	}
	for i, r := range spec.GetRules() {
		for j, from := range r.GetFrom() {
			at, s := fmt.Sprintf("spec.rules[%d].from[%d].source.", i, j), from.GetSource()
			add(at+"principals", s.GetPrincipals(), false)
			add(at+"notPrincipals", s.GetNotPrincipals(), true)
			add(at+"namespaces", s.GetNamespaces(), false)
			add(at+"notNamespaces", s.GetNotNamespaces(), true)
			add(at+"serviceAccounts", s.GetServiceAccounts(), false)
			add(at+"notServiceAccounts", s.GetNotServiceAccounts(), true)
		}
		for j, when := range r.GetWhen() {
			switch when.GetKey() {
			case "source.principal", "source.namespace", "source.serviceAccount":
				at := fmt.Sprintf("spec.rules[%d].when[%d].", i, j)
				add(at+"values", when.GetValues(), false)
				add(at+"notValues", when.GetNotValues(), true)
			}
		}
	}
	return all
}

// spiffePrincipal finds principals that are written as URIs. Istio puts the scheme before each of them itself.
var spiffePrincipal = rule{
	Rule: Rule{
		Code: "MOOR043", Level: Error,
		Title: "a principal with spiffe:// in front fits no caller",
		Mend:  "leave spiffe:// out, or use serviceAccounts",
	},
	check: func(s *subject) []problem {
		if s.config == nil {
			return nil
		}
		spec, ok := s.config.Spec.(*security.AuthorizationPolicy)
		if !ok {
			return nil
		}
		var found []problem
		for _, v := range identities(spec) {
			if rest, ok := strings.CutPrefix(v.value, "spiffe://"); ok {
				found = append(found, problem{
					Field:   v.field,
					Message: v.value + " fits no caller: Istio puts spiffe:// in front by itself",
					Mend:    "write " + rest,
				})
			}
		}
		return found
	},
}

// identityWithoutTLS finds policies that ask who calls, of proxies that take plain text alone.
var identityWithoutTLS = meshRule{
	Rule: Rule{
		Code: "MOOR044", Level: Error,
		Title: "a policy asks who calls, where mutual TLS is turned off and nobody can say",
		Mend:  "set the PeerAuthentication to PERMISSIVE or STRICT, or go by ipBlocks",
	},
	check: func(_ context.Context, v *view) {
		for _, p := range v.policies() {
			asked := identities(p.AuthorizationPolicy)
			if len(asked) == 0 || p.onGateway() {
				continue
			}
			w, peer, ok := v.plain(p)
			if !ok {
				continue
			}
			effect := "this fits no caller"
			if asked[0].not {
				effect = "this fits every caller"
			}
			field, message := asked[0].field, fmt.Sprintf("%s says DISABLE for %s, so no caller shows a certificate: %s", peer.object.ID, w.object.ID, effect)
			if p.object.Foreign && !peer.object.Foreign {
				v.report(peer.object, problem{Field: "spec.mtls.mode", Message: fmt.Sprintf("%s asks who calls %s: without mutual TLS %s", p.object.ID, w.object.ID, effect)})
				continue
			}
			v.report(p.object, problem{Field: field, Message: message})
		}
	},
}

// plain finds a workload of a policy that takes plain text alone, on all its ports.
func (v *view) plain(p authorization) (workload, peer, bool) {
	for _, w := range v.selectedBy(p.object.ID.Namespace, p.selector()) {
		if !v.proxied(w) || v.ownsInbound(w) {
			continue
		}
		if strings.Contains(w.annotations["inject.istio.io/templates"], "gateway") {
			continue // a gateway has the TLS that its servers say
		}
		merged, those := v.modeOf(w)
		if merged.Mode != model.MTLSDisable || len(merged.PerPort) > 0 {
			continue
		}
		who, _ := says(those, v.rootNamespace(), 0)
		if who.object == nil || who.object.ID.Namespace != w.namespace && !v.Knows(securityGroup, "PeerAuthentication", w.namespace) {
			continue
		}
		return w, who, true
	}
	return workload{}, peer{}, false
}

// tokenNotDemanded finds RequestAuthentications that no policy completes.
var tokenNotDemanded = meshRule{
	Rule: Rule{
		Code: "MOOR045", Level: Info,
		Title: "requests without a token pass: a RequestAuthentication refuses bad ones alone",
		Mend:  `to demand one, deny source.notRequestPrincipals: ["*"] with an AuthorizationPolicy for the same workloads`,
	},
	check: func(_ context.Context, v *view) {
		root := v.rootNamespace()
		for o, ra := range specs[*security.RequestAuthentication](v, securityGroup, "RequestAuthentication") {
			if len(ra.GetJwtRules()) == 0 || v.demandsTokens(o.ID.Namespace, root, ra.GetSelector().GetMatchLabels()) {
				continue
			}
			if !v.Knows(securityGroup, "AuthorizationPolicy", o.ID.Namespace) || !v.Knows(securityGroup, "AuthorizationPolicy", root) {
				v.unknown("whether the tokens that "+o.ID.String()+" reads are demanded", v.Why(securityGroup, "AuthorizationPolicy"))
				continue
			}
			v.report(o, problem{Field: "spec.jwtRules"})
		}
	},
}

// demandsTokens says whether a policy that may be for the same workloads goes by tokens, or leaves the decision to somebody else.
func (v *view) demandsTokens(namespace, root string, selector map[string]string) bool {
	for _, p := range v.policies() {
		ns := p.object.ID.Namespace
		if ns != namespace && ns != root && namespace != root || !p.onGateway() && !mayOverlap(p.selector(), selector) {
			continue
		}
		field, notField := tokenFields(p.AuthorizationPolicy)
		if field != "" || notField != "" || p.GetAction() == security.AuthorizationPolicy_CUSTOM {
			return true
		}
	}
	return false
}
