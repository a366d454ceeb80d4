package app

import (
	securityv1beta1 "istio.io/api/security/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dryRunAnnotation makes a proxy count what a policy would do without doing it.
const dryRunAnnotation = "istio.io/dry-run"

// AuthorizationPolicy says who may call the application. A policy needs rules, or one of allowAll, denyAll and allRequests: what matches nobody or everybody is never
// the default.
type AuthorizationPolicy struct {
	// Action for what a rule matches. As soon as one ALLOW is there, what no ALLOW matches is refused; DENY goes before ALLOW, CUSTOM (a provider decides) before DENY;
	// AUDIT only marks. Default: ALLOW. Becomes an AuthorizationPolicy's spec.action.
	// +optional
	// +kubebuilder:validation:Enum=ALLOW;DENY;AUDIT;CUSTOM
	Action string `json:"action,omitempty"`
	// Rules of which one has to match. Becomes an AuthorizationPolicy's spec.rules.
	// +optional
	// +kubebuilder:validation:MaxItems=512
	Rules []AuthorizationRule `json:"rules,omitempty"`
	// AllowAll lets every request in that no DENY or CUSTOM refuses; in place of rules, with action ALLOW. Default: false.
	// Becomes an AuthorizationPolicy's spec.rules with one rule that matches everything.
	// +optional
	AllowAll bool `json:"allowAll,omitempty"`
	// DenyAll refuses every request; in place of rules. With action ALLOW other ALLOW policies still let requests in, and it becomes an AuthorizationPolicy without spec.rules;
	// with action DENY nothing does, and it becomes a spec.rules with one rule that matches everything. Default: false.
	// +optional
	DenyAll bool `json:"denyAll,omitempty"`
	// AllRequests is for AUDIT and CUSTOM what matches every request; in place of rules. Default: false.
	// Becomes an AuthorizationPolicy's spec.rules with one rule that matches everything.
	// +optional
	AllRequests bool `json:"allRequests,omitempty"`
	// Provider decides with action CUSTOM: a name under extensionProviders of the mesh's configuration. Becomes an AuthorizationPolicy's spec.provider.name.
	// +optional
	Provider string `json:"provider,omitempty"`
	// DryRun has the proxies log and count what the policy would do, and do nothing; for ALLOW and DENY. Default: false.
	// Becomes the annotation istio.io/dry-run of the AuthorizationPolicy.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	Scope  `json:",inline"`
	Escape `json:",inline"`
}

// NamedAuthorizationPolicy is one of several.
type NamedAuthorizationPolicy struct {
	// Name tells it from the others. Becomes metadata.name, as <app>-<name>.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	AuthorizationPolicy `json:",inline"`
}

// AuthorizationRule matches what comes from one of from, goes to one of to, and for which all of when holds. It has at least one of them.
type AuthorizationRule struct {
	// From are callers. Default: all. Becomes an AuthorizationPolicy's spec.rules[].from.
	// +optional
	// +kubebuilder:validation:MaxItems=512
	From []AuthorizationSource `json:"from,omitempty"`
	// To are what is called. Default: all. Becomes an AuthorizationPolicy's spec.rules[].to.
	// +optional
	// +kubebuilder:validation:MaxItems=512
	To []AuthorizationOperation `json:"to,omitempty"`
	// When are further conditions. Becomes an AuthorizationPolicy's spec.rules[].when.
	// +optional
	// +kubebuilder:validation:MaxItems=512
	When []AuthorizationCondition `json:"when,omitempty"`
}

// AuthorizationSource matches callers for which all of its attributes hold. An attribute holds when one of its values does, one with not when none
// does. All but ipBlocks and remoteIpBlocks need mutual TLS, requestPrincipals a requestAuthentication.
type AuthorizationSource struct {
	// ServiceAccounts as namespace/name, or name for one of the application's namespace; no wildcards. Not together with principals or namespaces.
	// Becomes an AuthorizationPolicy's spec.rules[].from[].source.serviceAccounts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:items:MaxLength=320
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// NotServiceAccounts are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].from[].source.notServiceAccounts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:validation:items:MaxLength=320
	NotServiceAccounts []string `json:"notServiceAccounts,omitempty"`
	// Namespaces of callers; a * stands for any letters. Becomes an AuthorizationPolicy's spec.rules[].from[].source.namespaces.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Namespaces []string `json:"namespaces,omitempty"`
	// NotNamespaces are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].from[].source.notNamespaces.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotNamespaces []string `json:"notNamespaces,omitempty"`
	// Principals are identities of callers, TRUST-DOMAIN/ns/NAMESPACE/sa/NAME without spiffe://; * is every caller with mutual TLS.
	// Becomes an AuthorizationPolicy's spec.rules[].from[].source.principals.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Principals []string `json:"principals,omitempty"`
	// NotPrincipals are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].from[].source.notPrincipals.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotPrincipals []string `json:"notPrincipals,omitempty"`
	// RequestPrincipals are those of JSON Web Tokens, ISSUER/SUBJECT; * is every request with a valid token.
	// Becomes an AuthorizationPolicy's spec.rules[].from[].source.requestPrincipals.
	// +optional
	// +kubebuilder:validation:MinItems=1
	RequestPrincipals []string `json:"requestPrincipals,omitempty"`
	// NotRequestPrincipals are those that do not match; * is every request without a valid token.
	// Becomes an AuthorizationPolicy's spec.rules[].from[].source.notRequestPrincipals.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotRequestPrincipals []string `json:"notRequestPrincipals,omitempty"`
	// IPBlocks are addresses from which connections come, 10.0.0.7 or 10.0.0.0/8. Becomes an AuthorizationPolicy's spec.rules[].from[].source.ipBlocks.
	// +optional
	// +kubebuilder:validation:MinItems=1
	IPBlocks []string `json:"ipBlocks,omitempty"`
	// NotIPBlocks are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].from[].source.notIpBlocks.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotIPBlocks []string `json:"notIpBlocks,omitempty"`
	// RemoteIPBlocks are addresses of the first client, from X-Forwarded-For or the PROXY protocol, as far as the mesh's numTrustedProxies says.
	// Becomes an AuthorizationPolicy's spec.rules[].from[].source.remoteIpBlocks.
	// +optional
	// +kubebuilder:validation:MinItems=1
	RemoteIPBlocks []string `json:"remoteIpBlocks,omitempty"`
	// NotRemoteIPBlocks are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].from[].source.notRemoteIpBlocks.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotRemoteIPBlocks []string `json:"notRemoteIpBlocks,omitempty"`
}

func (b *builder) authorizationPolicies() {
	if p := b.app.Spec.AuthorizationPolicy; p != nil {
		b.rawAlone(p.Escape, p, []string{"authorizationPolicy"}, "dryRun")
		b.authorize(p, "", []string{"authorizationPolicy"})
	}
	for i := range b.app.Spec.AuthorizationPolicies {
		p := &b.app.Spec.AuthorizationPolicies[i]
		block := []string{"authorizationPolicies", index(i)}
		b.rawAlone(p.Escape, p, block, "name", "dryRun")
		b.authorize(&p.AuthorizationPolicy, p.Name, block)
	}
}

func (b *builder) authorize(p *AuthorizationPolicy, key string, block []string) {
	out := &securityv1beta1.AuthorizationPolicy{
		Action: securityv1beta1.AuthorizationPolicy_Action(securityv1beta1.AuthorizationPolicy_Action_value[p.Action]),
	}
	out.Selector, out.TargetRefs = b.scope(p.Scope)
	if p.Raw == nil {
		b.whom(p, block)
		for i := range p.Rules {
			out.Rules = append(out.Rules, b.rule(p, &p.Rules[i], below(block, "rules", index(i))))
		}
		if p.AllowAll || p.AllRequests || p.DenyAll && p.Action == "DENY" {
			out.Rules = []*securityv1beta1.Rule{{}}
		}
		b.customProvider(p, out, block)
	}
	if p.DryRun && (p.Action == "AUDIT" || p.Action == "CUSTOM") {
		b.fail(below(block, "dryRun"), "leave dryRun out", "Istio refuses a dry run of action %s: it has one for ALLOW and DENY only", p.Action)
	}
	before := len(b.objects)
	b.emit(authorizationPolicyKind, key, out, p.Escape, block...)
	if len(b.objects) == before {
		return
	}
	made := b.objects[before].Unstructured() // nobody else has it yet
	if p.Patch != nil && !p.saysWhom() {
		if rules, _, _ := unstructured.NestedSlice(made.Object, "spec", "rules"); len(rules) == 0 {
			b.noRules(p, below(block, "patch"))
		}
	}
	if p.DryRun {
		notes := made.GetAnnotations()
		if notes == nil {
			notes = map[string]string{}
		}
		notes[dryRunAnnotation] = "true"
		made.SetAnnotations(notes)
	}
}

// whom sees to it that everybody and nobody are said, never the outcome of a list that happens to be empty.
func (b *builder) whom(p *AuthorizationPolicy, block []string) {
	said := []struct {
		name  string
		isSet bool
		ok    bool
		hint  string
	}{
		{"allowAll", p.AllowAll, p.Action == "" || p.Action == "ALLOW", "use allowAll with action ALLOW; for DENY write denyAll, for AUDIT and CUSTOM allRequests"},
		{"denyAll", p.DenyAll, p.Action == "" || p.Action == "ALLOW" || p.Action == "DENY", "use denyAll with action ALLOW or DENY; for AUDIT and CUSTOM write allRequests"},
		{"allRequests", p.AllRequests, p.Action == "AUDIT" || p.Action == "CUSTOM", "use allRequests with action AUDIT or CUSTOM; for ALLOW write allowAll, for DENY denyAll"},
	}
	var words []string
	for _, w := range said {
		if !w.isSet {
			continue
		}
		words = append(words, w.name)
		switch {
		case !w.ok:
			b.fail(below(block, w.name), w.hint, "does not fit to action %s", p.action())
		case p.Rules != nil:
			b.fail(below(block, "rules"), "leave rules out, or "+w.name, "rules beside %s: it is unclear who is meant", w.name)
		case len(words) > 1:
			b.fail(below(block, w.name), "leave one of them out", "contradicts %s", words[0])
		}
	}
	switch {
	case len(words) > 0 || len(p.Rules) > 0:
	case p.Rules != nil:
		b.noRules(p, below(block, "rules"))
	case p.Patch == nil: // a patch may bring rules
		b.noRules(p, block)
	}
}

// saysWhom tells whether everybody or nobody is meant on purpose.
func (p *AuthorizationPolicy) saysWhom() bool { return p.AllowAll || p.DenyAll || p.AllRequests }

// noRules says what a policy without rules would do.
func (b *builder) noRules(p *AuthorizationPolicy, where []string) {
	switch p.Action {
	case "DENY":
		b.fail(where, "name in rules who is refused, or write denyAll: true to refuse everybody", "a DENY policy without rules refuses nobody")
	case "AUDIT", "CUSTOM":
		b.fail(where, "name in rules what is meant, or write allRequests: true", "a policy with action %s and without rules does nothing", p.Action)
	default:
		b.fail(where, "name in rules who may call, or write denyAll: true if nobody may, allowAll: true if everybody may", "a policy without rules refuses every request")
	}
}

func (p *AuthorizationPolicy) action() string {
	if p.Action == "" {
		return "ALLOW"
	}
	return p.Action
}

// customProvider sets who decides with action CUSTOM.
func (b *builder) customProvider(p *AuthorizationPolicy, out *securityv1beta1.AuthorizationPolicy, block []string) {
	custom := p.Action == "CUSTOM"
	switch {
	case custom && p.Provider == "" && p.Patch == nil:
		b.fail(block, "write provider: NAME, one of extensionProviders in the mesh's configuration", "action CUSTOM needs a provider that decides")
	case !custom && p.Provider != "":
		b.fail(below(block, "provider"), "write action: CUSTOM, or leave provider out", "a provider decides only with action CUSTOM, not %s", p.action())
	case custom:
		out.ActionDetail = &securityv1beta1.AuthorizationPolicy_Provider{
			Provider: &securityv1beta1.AuthorizationPolicy_ExtensionProvider{Name: p.Provider},
		}
	}
}
