package app

// EnvoyFilter is not described yet.
type EnvoyFilter struct {
	// Name tells it from the others; the object is called <app>-<name>.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	Escape `json:",inline"`
}

func (b *builder) envoyFilters() {}
