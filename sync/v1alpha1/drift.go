package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Drift says how differences between the applied revision and the cluster are treated.
type Drift struct {
	// What is done about drift: Correct puts back what somebody changed, deleted or added. Alarm changes nothing and says so:
	// in status.drift, the condition Drifted, Events and metrics. What a new commit changes is applied in both modes. A
	// commit that changes an object applies that object whole; what drifted in others stays as it is.
	// +optional
	// +kubebuilder:default=Correct
	Mode DriftMode `json:"mode,omitempty"`

	// Fields that others write on purpose. What Git says there counts when the object is made, and never again. Not
	// needed for what an autoscaler, Argo Rollouts, Flagger or istiod writes: that is left to them anyway.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	Ignore []DriftIgnore `json:"ignore,omitempty"`
}

// DriftMode is what is done about drift.
//
// +kubebuilder:validation:Enum=Correct;Alarm
type DriftMode string

// The modes.
const (
	// DriftCorrect puts it back.
	DriftCorrect DriftMode = "Correct"
	// DriftAlarm changes nothing and says so.
	DriftAlarm DriftMode = "Alarm"
)

// DriftIgnore names fields of some objects.
type DriftIgnore struct {
	// The objects; without it, all.
	// +optional
	Target DriftTarget `json:"target,omitempty"`

	// JSON pointers to the fields, such as /spec/replicas or /metadata/annotations/example.com~1note. In a list, * stands
	// for any item: /spec/http/*/route/*/weight.
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=2
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])+)+$`
	Paths []string `json:"paths"`
}

// DriftTarget picks objects by what they are in Git. What is left out picks all.
type DriftTarget struct {
	// API group, without the version, such as networking.istio.io.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Kind, such as Deployment.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// Namespace of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name of the object.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Labels that the object has in Git.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}
