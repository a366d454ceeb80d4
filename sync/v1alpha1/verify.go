package v1alpha1

// VerifyMode says what of a revision must be signed.
//
// +kubebuilder:validation:Enum=Head;Tag;TagAndHead
type VerifyMode string

// The modes of Verify.
const (
	// VerifyHead : the commit.
	VerifyHead VerifyMode = "Head"
	// VerifyTag : the annotated tag that the commit was found by.
	VerifyTag VerifyMode = "Tag"
	// VerifyTagAndHead : both.
	VerifyTagAndHead VerifyMode = "TagAndHead"
)

// Verify says whose signature a revision needs before it is rendered. One that lacks it is refused with the reason VerificationFailed, and the last good one stays
// in force, also one from before this was asked for.
type Verify struct {
	// What must be signed: Head, the commit; Tag, the annotated tag that it was found by; TagAndHead, both.
	// +optional
	// +kubebuilder:default=Head
	Mode VerifyMode `json:"mode,omitempty"`

	// The Secret with the public keys of those who may sign, in the Mooring's namespace. Every value counts: OpenPGP keys as gpg --armor --export prints
	// them; SSH keys, one a line; allowed_signers, a file as in ssh-keygen(1); revoked_keys, SSH keys that count no more. A changed Secret counts from the next pass on.
	// +required
	SecretRef LocalReference `json:"secretRef"`

	// Refuses a revision that is not a descendant of the one in force, as after a forced push, until the annotation mooring.dev/confirm
	// names it. The annotation confirms what that revision deletes as well.
	// +optional
	DescendantsOnly bool `json:"descendantsOnly,omitempty"`
}
