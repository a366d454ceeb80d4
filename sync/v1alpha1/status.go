package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition types of a Mooring. kstatus reads Ready, Reconciling and Stalled.
const (
	// ConditionReady is True when the newest commit is in force (and healthy, when wait is set).
	ConditionReady = "Ready"
	// ConditionReconciling is True while there is something left to do or to wait for.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when only a person can help: another commit, another spec, a confirmation.
	ConditionStalled = "Stalled"
	// ConditionDrifted is True while live objects differ from the applied revision.
	ConditionDrifted = "Drifted"
	// ConditionHealthy is True when every applied object is healthy by kstatus.
	ConditionHealthy = "Healthy"
)

// Reasons of the Ready condition: a closed list.
const (
	// ReasonApplied : the newest commit is in force.
	ReasonApplied = "Applied"
	// ReasonProgressing : the newest commit is applied, and wait waits for its objects to become healthy.
	ReasonProgressing = "Progressing"
	// ReasonFetchFailed : Git could not be asked or read.
	ReasonFetchFailed = "FetchFailed"
	// ReasonVerificationFailed : the commit's signature was refused.
	ReasonVerificationFailed = "VerificationFailed"
	// ReasonRenderFailed : the commit does not render.
	ReasonRenderFailed = "RenderFailed"
	// ReasonCheckFailed : the commit renders to something that the mesh must not get.
	ReasonCheckFailed = "CheckFailed"
	// ReasonPruneGuarded : the plan would delete more than it may without a human's word.
	ReasonPruneGuarded = "PruneGuarded"
	// ReasonWindowClosed : a window holds the commit.
	ReasonWindowClosed = "WindowClosed"
	// ReasonPromotionPending : the environment that is followed has not proven the commit yet.
	ReasonPromotionPending = "PromotionPending"
	// ReasonDependencyNotReady : a Mooring that this one depends on is not ready.
	ReasonDependencyNotReady = "DependencyNotReady"
	// ReasonApplyFailed : the cluster could not be read or written.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonHealthTimeout : the commit is applied, and its objects did not become healthy in time.
	ReasonHealthTimeout = "HealthTimeout"
	// ReasonSuspended : spec.suspend is true.
	ReasonSuspended = "Suspended"
)

// MooringStatus is what became of a Mooring.
type MooringStatus struct {
	// The generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Ready, Reconciling, Stalled, Drifted, Healthy.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// The newest revision that Git had, whatever became of it.
	// +optional
	LastAttemptedRevision string `json:"lastAttemptedRevision,omitempty"`
	// The revision that is in force.
	// +optional
	LastAppliedRevision string `json:"lastAppliedRevision,omitempty"`
	// The last value of the annotation mooring.dev/reconcile that was answered by a pass.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// How many objects there are, and the label that finds them. Never the list, so that there is no limit in size.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`
	// The last ten revisions that were applied, newest first.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	History []HistoryEntry `json:"history,omitempty"`
	// The first twenty fields that differ from the applied revision and could not be put right.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Drift []DriftEntry `json:"drift,omitempty"`
	// How many fields differ in all.
	// +optional
	DriftCount int32 `json:"driftCount,omitempty"`
	// The first twenty findings about the newest revision, those that keep it out of the cluster first. Findings that the mesh has
	// already in objects of somebody else are left out.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Findings []FindingEntry `json:"findings,omitempty"`
	// How many findings there are in all.
	// +optional
	FindingCount int32 `json:"findingCount,omitempty"`
	// How many of them keep the newest revision out of the cluster: those of spec.check.failOn and worse that are new,
	// about objects of the revision itself, and that nobody accepted.
	// +optional
	BlockingCount int32 `json:"blockingCount,omitempty"`
	// The first twenty questions of the check that could not be answered, such as for want of the right to list a kind. Where
	// there are some, no finding does not mean no fault.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	NotChecked []NotCheckedEntry `json:"notChecked,omitempty"`
	// How many questions could not be answered in all.
	// +optional
	NotCheckedCount int32 `json:"notCheckedCount,omitempty"`
}

// Inventory counts the objects of a Mooring.
type Inventory struct {
	// How many objects the applied revision has.
	Objects int32 `json:"objects"`
	// The value of the label applyset.kubernetes.io/part-of on each of them.
	ID string `json:"id"`
}

// HistoryEntry is one revision that was applied.
type HistoryEntry struct {
	// The revision, as branch@sha1:id.
	Revision string `json:"revision"`
	// When its apply was complete.
	AppliedAt metav1.Time `json:"appliedAt"`
	// sha256 over the rendered objects.
	Digest string `json:"digest"`
	// How many objects were created.
	// +optional
	Created int32 `json:"created,omitempty"`
	// How many objects were changed.
	// +optional
	Configured int32 `json:"configured,omitempty"`
	// How many objects were deleted.
	// +optional
	Deleted int32 `json:"deleted,omitempty"`
	// What caused it: commit, spec, confirm.
	// +optional
	By string `json:"by,omitempty"`
}

// DriftEntry is one field of a live object that differs from the applied revision.
type DriftEntry struct {
	// Kind/namespace/name.
	Object string `json:"object"`
	// JSON pointer.
	// +optional
	Field string `json:"field,omitempty"`
	// What Git wants. Secrets are masked.
	// +optional
	Want string `json:"want,omitempty"`
	// What the cluster has. Secrets are masked.
	// +optional
	Live string `json:"live,omitempty"`
	// The field manager that wrote the live value.
	// +optional
	Manager string `json:"manager,omitempty"`
	// Since when it is known.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// FindingEntry is one fault that the check found in the newest revision.
type FindingEntry struct {
	// The rule that was broken, such as IST0101.
	Code string `json:"code"`
	// Error, Warning or Info. spec.check.failOn says which of them keep a commit out of the cluster.
	Level string `json:"level"`
	// Kind/namespace/name.
	// +optional
	Object string `json:"object,omitempty"`
	// file:line in the repository.
	// +optional
	File string `json:"file,omitempty"`
	// What is wrong, and what to do about it.
	Message string `json:"message"`
	// The mesh has this fault already; the revision does not make it worse.
	// +optional
	Known bool `json:"known,omitempty"`
	// The object is not one of the revision but of somebody else.
	// +optional
	Foreign bool `json:"foreign,omitempty"`
	// Who accepted the finding, and why; empty when nobody did.
	// +optional
	Suppressed string `json:"suppressed,omitempty"`
}

// NotCheckedEntry is one question that the check could not answer.
type NotCheckedEntry struct {
	// The rule that asked.
	Code string `json:"code"`
	// What was not checked.
	About string `json:"about"`
	// Why it was not.
	Why string `json:"why"`
}
