package v1alpha1

// Pin holds a Mooring at one revision.
type Pin struct {
	// The revision that is kept, as history writes it: branch@sha1:id or sha1:id.
	// +required
	// +kubebuilder:validation:MaxLength=320
	// +kubebuilder:validation:Pattern=`^([^ ]+@)?sha1:[0-9a-f]{40}$`
	Revision string `json:"revision"`
	// Why. It is told in status, history and an Event.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`
}

// OnFailure is what is done when a new revision does not become healthy in time.
//
// +kubebuilder:validation:Enum=Keep;Rollback
type OnFailure string

// What is done on a failure.
const (
	// OnFailureKeep leaves the new revision in force; a person looks.
	OnFailureKeep OnFailure = "Keep"
	// OnFailureRollback goes back to the last healthy revision, once.
	OnFailureRollback OnFailure = "Rollback"
)

// ConditionPinned is True while spec.pin holds a revision; only there then.
const ConditionPinned = "Pinned"

// RollbackStatus is a revision that the agent took back by itself.
type RollbackStatus struct {
	// The revision that did not become healthy. It is not applied again, here nor by those that follow this Mooring.
	Bad string `json:"bad"`
	// The revision that was put in force again.
	To string `json:"to"`
	// What was not healthy.
	// +optional
	Why string `json:"why,omitempty"`
}
