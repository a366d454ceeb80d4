package v1alpha1

// HealthCheck says by expressions in CEL how objects of a kind are. An expression sees the object's top-level fields (metadata, spec, status…) and gives
// true or false. While status.observedGeneration is another than metadata.generation, the object is in progress; then
// inProgress, failed and current are asked in this order, and the first that is true is the answer. When none is, the object is in progress. An expression that
// fails, such as one that reads a field that is not there, leaves the health unknown.
type HealthCheck struct {
	// The apiVersion of the kind, as on its objects. A check counts for every version of the kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// The kind.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// True when the object is as its spec wants it, such as: status.phase == 'Ready'
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Current string `json:"current"`
	// True when the object is on its way.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	InProgress string `json:"inProgress,omitempty"`
	// True when the object will not become healthy by itself.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
}
