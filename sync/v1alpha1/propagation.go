package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Propagation says how it is found out that the proxies have what was written, before what builds upon it is written.
type Propagation struct {
	// How istiod is asked: PortForward goes through the API server into its Pods, and needs the right that
	// deploy/rbac/propagation.yaml gives; Service goes over the network, with a token; Never does not ask. Where istiod cannot be
	// asked, the pause has to do.
	// +optional
	// +kubebuilder:default=PortForward
	Ask PropagationAsk `json:"ask,omitempty"`

	// How long is waited instead where istiod cannot be asked, as a Go duration. Where there is no istiod at all, nothing is waited for.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$') && duration(self) >= duration('1ms')",message="pause is a duration, such as 5s or 500ms"
	Pause metav1.Duration `json:"pause,omitzero"`

	// How long a proxy may take to acknowledge, as a Go duration. Then the plan stops and says which proxy it is and what it said; what
	// was done is kept, and the next pass goes on from there.
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$') && duration(self) >= duration('1s')",message="timeout is a duration of at least 1s, such as 30s or 1m"
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// PropagationAsk is the way in which istiod is asked.
//
// +kubebuilder:validation:Enum=PortForward;Service;Never
type PropagationAsk string

// The ways.
const (
	// AskPortForward goes through the API server into istiod's Pods.
	AskPortForward PropagationAsk = "PortForward"
	// AskService goes over the network, with a token.
	AskService PropagationAsk = "Service"
	// AskNever does not ask.
	AskNever PropagationAsk = "Never"
)
