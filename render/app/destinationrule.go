package app

// DestinationRule is not described yet.
type DestinationRule struct {
	Escape `json:",inline"`
}

func (b *builder) destinationRule() {}

// AppVersion is one of several versions of an application that run side by side.
type AppVersion struct {
	// Labels of the version's pods. Default: version: NAME. Becomes DestinationRule spec.subsets[].labels.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}
