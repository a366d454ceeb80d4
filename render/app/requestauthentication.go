package app

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	securityv1beta1 "istio.io/api/security/v1beta1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// requireJWT is the key of the policy that refuses requests without a token.
const requireJWT = "require-jwt"

// RequestAuthentication says whose JSON Web Tokens (JWT) the application trusts. A request with a token that is not valid is refused; one without a token
// passes unless required is set.
type RequestAuthentication struct {
	// Issuers of tokens. Needed unless there is raw. Becomes a RequestAuthentication's spec.jwtRules.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4096
	Issuers []Issuer `json:"issuers,omitempty"`
	// Required refuses requests without a valid token. It grants nothing: an authorizationPolicy beside it still says who may call. Default: false.
	// Becomes an AuthorizationPolicy <app>-require-jwt with action DENY for notRequestPrincipals: ["*"].
	// +optional
	Required bool `json:"required,omitempty"`
	// OpenPaths need no token though it is required, such as /healthz or /public/*. Needs required. Becomes spec.rules[].to[].operation.notPaths of
	// that AuthorizationPolicy.
	// +optional
	// +kubebuilder:validation:MinItems=1
	OpenPaths []string `json:"openPaths,omitempty"`
	// AllowPreflight lets browsers ask without a token whether they may call from another origin (CORS): OPTIONS with the header Access-Control-Request-Method.
	// Browsers never send a token with it. Needs required. Default: false. Becomes a second rule of that AuthorizationPolicy.
	// +optional
	AllowPreflight bool `json:"allowPreflight,omitempty"`
	// RequiredPorts are the ports that the container listens on where a token is required. Default: all, which closes ports that are not HTTP. Needs required.
	// Becomes spec.rules[].to[].operation.ports of that AuthorizationPolicy.
	// +optional
	// +kubebuilder:validation:MinItems=1
	RequiredPorts []intstr.IntOrString `json:"requiredPorts,omitempty"`

	Scope  `json:",inline"`
	Escape `json:",inline"`
}

// Issuer is one that is trusted, and where its tokens and keys are found.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.jwks) && has(self.jwksUri))",message="jwks and jwksUri exclude each other: leave one of them out"
type Issuer struct {
	// Issuer as tokens name it in the claim iss, such as https://accounts.example.com. Becomes a RequestAuthentication's spec.jwtRules[].issuer.
	// +required
	// +kubebuilder:validation:MinLength=1
	Issuer string `json:"issuer"`
	// JWKSURI is where istiod fetches the issuer's public keys. Default: what the issuer tells under /.well-known/openid-configuration.
	// Becomes a RequestAuthentication's spec.jwtRules[].jwksUri.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://.+$`
	// +kubebuilder:validation:MaxLength=2048
	JWKSURI string `json:"jwksUri,omitempty"`
	// JWKS are the issuer's public keys themselves, as JSON. Becomes a RequestAuthentication's spec.jwtRules[].jwks.
	// +optional
	JWKS string `json:"jwks,omitempty"`
	// Audiences of which a token has to name one in the claim aud. Default: any. Becomes a RequestAuthentication's spec.jwtRules[].audiences.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:MinLength=1
	Audiences []string `json:"audiences,omitempty"`
	// FromHeaders are where tokens are looked for. Default, if no other place is named: Authorization: Bearer, and the query parameter access_token.
	// Becomes a RequestAuthentication's spec.jwtRules[].fromHeaders.
	// +optional
	// +kubebuilder:validation:MinItems=1
	FromHeaders []TokenHeader `json:"fromHeaders,omitempty"`
	// FromParams are query parameters that hold tokens. Becomes a RequestAuthentication's spec.jwtRules[].fromParams.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:MinLength=1
	FromParams []string `json:"fromParams,omitempty"`
	// FromCookies are cookies that hold tokens. Becomes a RequestAuthentication's spec.jwtRules[].fromCookies.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:MinLength=1
	FromCookies []string `json:"fromCookies,omitempty"`
	// ForwardToken passes the token on to the application. Default: false. Becomes a RequestAuthentication's spec.jwtRules[].forwardOriginalToken.
	// +optional
	ForwardToken bool `json:"forwardToken,omitempty"`
	// ClaimToHeaders passes claims on as headers. Becomes a RequestAuthentication's spec.jwtRules[].outputClaimToHeaders.
	// +optional
	// +kubebuilder:validation:MinItems=1
	ClaimToHeaders []ClaimToHeader `json:"claimToHeaders,omitempty"`
	// OutputPayloadToHeader passes the token's payload on in a header, in base64url. Becomes a RequestAuthentication's spec.jwtRules[].outputPayloadToHeader.
	// +optional
	OutputPayloadToHeader string `json:"outputPayloadToHeader,omitempty"`
	// Timeout of fetching the keys, such as 10s. Default: 5s. Becomes a RequestAuthentication's spec.jwtRules[].timeout.
	// +optional
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s|ms))+$`
	Timeout string `json:"timeout,omitempty"`
}

// TokenHeader is a header that holds tokens.
type TokenHeader struct {
	// Name of the header. Becomes a RequestAuthentication's spec.jwtRules[].fromHeaders[].name.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Prefix before the token, with its space, such as "Bearer ". Default: none. Becomes a RequestAuthentication's spec.jwtRules[].fromHeaders[].prefix.
	// +optional
	Prefix string `json:"prefix,omitempty"`
}

// ClaimToHeader passes one claim on.
type ClaimToHeader struct {
	// Header that the application gets; letters, digits, - and _. Becomes a RequestAuthentication's spec.jwtRules[].outputClaimToHeaders[].header.
	// +required
	// +kubebuilder:validation:Pattern=`^[-_A-Za-z0-9]+$`
	Header string `json:"header"`
	// Claim of the token; nested ones with dots, such as realm.roles. Becomes a RequestAuthentication's spec.jwtRules[].outputClaimToHeaders[].claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	Claim string `json:"claim"`
}

func (b *builder) requestAuthentication() {
	r := b.app.Spec.RequestAuthentication
	if r == nil {
		return
	}
	block := []string{"requestAuthentication"}
	b.rawAlone(r.Escape, r, block)
	if len(r.Issuers) == 0 && r.Raw == nil && r.Patch == nil {
		b.fail(block, "write issuers: [{issuer: https://…}]", "trusts nobody: there are no issuers")
	}
	out := &securityv1beta1.RequestAuthentication{}
	out.Selector, out.TargetRefs = b.scope(r.Scope)
	for i := range r.Issuers {
		out.JwtRules = append(out.JwtRules, b.issuer(&r.Issuers[i], below(block, "issuers", index(i))))
	}
	b.emit(requestAuthenticationKind, "", out, r.Escape, block...)
	if r.Raw == nil {
		b.requireToken(r, block)
	}
}

func (b *builder) issuer(i *Issuer, block []string) *securityv1beta1.JWTRule {
	out := &securityv1beta1.JWTRule{
		Issuer: i.Issuer, JwksUri: i.JWKSURI, Jwks: i.JWKS, Audiences: i.Audiences, FromParams: i.FromParams, FromCookies: i.FromCookies,
		ForwardOriginalToken: i.ForwardToken, OutputPayloadToHeader: i.OutputPayloadToHeader,
	}
	if i.JWKS == "" && i.JWKSURI == "" && !strings.HasPrefix(i.Issuer, "https://") && !strings.HasPrefix(i.Issuer, "http://") {
		b.fail(block, "write jwksUri or jwks", "nobody knows the keys of %s: it is no URL at which they could be looked up", i.Issuer)
	}
	if i.JWKS != "" {
		b.publicKeys(i.JWKS, below(block, "jwks"))
	}
	if i.Timeout != "" {
		d, err := time.ParseDuration(i.Timeout)
		if err != nil || d < time.Millisecond {
			b.fail(below(block, "timeout"), "write 1ms or more, such as 10s", "%q is no timeout", i.Timeout)
		}
		out.Timeout = durationpb.New(d)
	}
	for _, h := range i.FromHeaders {
		out.FromHeaders = append(out.FromHeaders, &securityv1beta1.JWTHeader{Name: h.Name, Prefix: h.Prefix})
	}
	for _, c := range i.ClaimToHeaders {
		out.OutputClaimToHeaders = append(out.OutputClaimToHeaders, &securityv1beta1.ClaimToHeader{Header: c.Header, Claim: c.Claim})
	}
	return out
}

// publicKeys refuses what is no key set, and key sets with a private or a shared key: whoever reads the repository could make tokens. The value is not told.
func (b *builder) publicKeys(text string, block []string) {
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal([]byte(text), &set); err != nil || len(set.Keys) == 0 {
		b.fail(block, `write the JSON of a key set, {"keys": [...]}, or its address in jwksUri`, "is not a JSON Web Key Set")
		return
	}
	for i, k := range set.Keys {
		if k["d"] != nil || k["k"] != nil {
			b.fail(block, "make a new key, because this one is in Git, and write its public part only", "key %d is private: with it everybody who reads it can make tokens", i)
		}
	}
}

// requireToken makes the policy that refuses requests without a token. It has to be a DENY: an ALLOW would let in whoever has a token, beside those whom other
// ALLOW policies let in. See Istio's task on authentication policies, "Require a valid token".
func (b *builder) requireToken(r *RequestAuthentication, block []string) {
	if !r.Required {
		for _, a := range []struct {
			name string
			set  bool
		}{{"openPaths", r.OpenPaths != nil}, {"requiredPorts", r.RequiredPorts != nil}, {"allowPreflight", r.AllowPreflight}} {
			if a.set {
				b.fail(below(block, a.name), "write required: true, or leave it out", "means nothing without required: all requests without a token pass")
			}
		}
		return
	}
	for i, p := range b.app.Spec.AuthorizationPolicies {
		if p.Name == requireJWT {
			b.fail([]string{"authorizationPolicies", index(i), "name"}, "choose another name", "%s is the name of the policy that requestAuthentication.required makes", requireJWT)
		}
	}
	if port := b.tcpPort(); port != "" && len(r.RequiredPorts) == 0 {
		b.fail(below(block, "required"), "write requiredPorts: the container's ports that speak HTTP",
			"would refuse every connection to TCP port %s, where there are no tokens", port)
	}
	b.paths(r.OpenPaths, below(block, "openPaths"))
	ports := b.ports(r.RequiredPorts, below(block, "requiredPorts"))
	out := &securityv1beta1.AuthorizationPolicy{Action: securityv1beta1.AuthorizationPolicy_DENY}
	out.Selector, out.TargetRefs = b.scope(r.Scope)
	rule := func(methods, notMethods []string) *securityv1beta1.Rule {
		made := &securityv1beta1.Rule{From: []*securityv1beta1.Rule_From{{Source: &securityv1beta1.Source{NotRequestPrincipals: []string{"*"}}}}}
		if len(r.OpenPaths)+len(ports)+len(methods)+len(notMethods) > 0 {
			made.To = []*securityv1beta1.Rule_To{{Operation: &securityv1beta1.Operation{
				NotPaths: r.OpenPaths, Ports: ports, Methods: methods, NotMethods: notMethods,
			}}}
		}
		return made
	}
	if r.AllowPreflight {
		// Refused are all but OPTIONS, and of those the ones that are no preflight.
		options := rule([]string{"OPTIONS"}, nil)
		options.When = []*securityv1beta1.Condition{{Key: "request.headers[access-control-request-method]", NotValues: []string{"*"}}}
		out.Rules = []*securityv1beta1.Rule{rule(nil, []string{"OPTIONS"}), options}
	} else {
		out.Rules = []*securityv1beta1.Rule{rule(nil, nil)}
	}
	b.emit(authorizationPolicyKind, requireJWT, out, Escape{}, below(block, "required")...)
}
