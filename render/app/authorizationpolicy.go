package app

// AuthorizationPolicy is not described yet.
type AuthorizationPolicy struct {
	Escape `json:",inline"`
}

func (b *builder) authorizationPolicies() {}

// NamedAuthorizationPolicy is one of several.
type NamedAuthorizationPolicy struct {
	// Name tells it from the others.
	// +required
	Name string `json:"name"`

	AuthorizationPolicy `json:",inline"`
}
