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

// ReasonRecovering : the condition Reconciling's while wait waits for the commit that comes after a fault.
const ReasonRecovering = "Recovering"

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
	// The revision whose apply was begun and broken off, until a revision is in force as a whole again.
	// +optional
	UnfinishedRevision string `json:"unfinishedRevision,omitempty"`
	// The last value of the annotation mooring.dev/reconcile that was answered by a pass.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// The last time of spec.schedule at which Git was asked, or that was too long ago to be made up for.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// How many objects there are, and the label that finds them. Never the list, so that there is no limit in size.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`
	// The last ten revisions that were applied, newest first.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	History []HistoryEntry `json:"history,omitempty"`
	// The first twenty fields that differ from the applied revision: because drift is only told of, because of a fight, or
	// because they could not be put right.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Drift []DriftEntry `json:"drift,omitempty"`
	// How many fields differ in all.
	// +optional
	DriftCount int32 `json:"driftCount,omitempty"`
	// The last twenty fields that were put back, the newest first.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Corrections []CorrectionEntry `json:"corrections,omitempty"`
	// The first twenty fields that somebody changes again each time they are put back. These are put back ever more slowly,
	// until nobody has undone it for ten minutes.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Fights []FightEntry `json:"fights,omitempty"`
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
	// Stands for the newest revision and all that it was checked by, but what lived in the cluster: the version of Mooring, spec.check and the policies. An
	// agent that starts does not check anew what is in force and was accepted. Empty when it was not.
	// +optional
	Accepted string `json:"accepted,omitempty"`
	// The first twenty objects of Istio's kinds that no Mooring owns and that bear on hosts or workloads of this one. They are looked for with each
	// commit, when a pass is asked for, and once an hour; mooring get unmanaged looks at once.
	// +optional
	// +kubebuilder:validation:MaxItems=20
	Unmanaged []UnmanagedEntry `json:"unmanaged,omitempty"`
	// How many of them there are in all.
	// +optional
	UnmanagedCount int32 `json:"unmanagedCount,omitempty"`
	// What waits to be promoted to this Mooring, and what was.
	// +optional
	Promotion *PromotionStatus `json:"promotion,omitempty"`
	// The revision that was taken back by spec.onFailure, until a newer one is taken up.
	// +optional
	Rollback *RollbackStatus `json:"rollback,omitempty"`
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
	// What caused it: commit, spec, confirm, override, promotion, rollback.
	// +optional
	By string `json:"by,omitempty"`
	// The reason that a person gave, for a window that was overridden, a promotion that was approved, or a rollback; or what was not healthy, for a rollback that the
	// agent made by itself.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Author of the commit, as "Name <mail>".
	// +optional
	Author string `json:"author,omitempty"`
	// The first line of the commit's message.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Who signed it, where spec.source.verify asked for that when it was taken up: the name, and the key that counted.
	// +optional
	SignedBy string `json:"signedBy,omitempty"`
	// How long each stage of the pass took that brought it in force: fetch, render, check, plan, apply.
	// +optional
	Took map[string]metav1.Duration `json:"took,omitempty"`
	// The first ten objects that were changed, such as "created VirtualService/shop/cart".
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Changed []string `json:"changed,omitempty"`
	// Since when it is in force without a break and all is well: every object healthy, no drift left standing, no finding of level Error. Absent while it is not. Those that
	// follow this Mooring count spec.promotion.soak from it.
	// +optional
	HealthySince *metav1.Time `json:"healthySince,omitempty"`
	// When another revision began to take its place. Absent while it is in force.
	// +optional
	ReplacedAt *metav1.Time `json:"replacedAt,omitempty"`
	// Why it failed: it was not healthy in time. Such a commit is never promoted.
	// +optional
	Failed string `json:"failed,omitempty"`
}

// DriftEntry is one field of a live object that differs from the applied revision.
type DriftEntry struct {
	// Kind/namespace/name.
	Object string `json:"object"`
	// JSON pointer; empty when it is the whole object that was deleted, or that is there and should not be.
	// +optional
	Field string `json:"field,omitempty"`
	// What Git wants. Secrets are masked.
	// +optional
	Want string `json:"want,omitempty"`
	// What the cluster has. Secrets are masked.
	// +optional
	Live string `json:"live,omitempty"`
	// The field manager that wrote the live value. Empty where the cluster does not say it: what is removed or deleted
	// leaves no name behind.
	// +optional
	Manager string `json:"manager,omitempty"`
	// How it wrote: Update or Apply.
	// +optional
	Operation string `json:"operation,omitempty"`
	// When it wrote to the object last.
	// +optional
	ChangedAt *metav1.Time `json:"changedAt,omitempty"`
	// Since when it is known that the field has this live value.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Why it is not put right: Alarm, Fight or NotCorrected.
	// +optional
	Reason string `json:"reason,omitempty"`
}

// Reasons why drift is not put right; those of the condition Drifted when it is True.
const (
	// ReasonAlarm : spec.drift.mode says so.
	ReasonAlarm = "Alarm"
	// ReasonFight : somebody undoes each correction, and the next one waits.
	ReasonFight = "Fight"
	// ReasonNotCorrected : it was tried and failed, or the pass did not come to it.
	ReasonNotCorrected = "NotCorrected"
)

// CorrectionEntry is one field of a live object that somebody had changed and that was put back.
type CorrectionEntry struct {
	// Kind/namespace/name.
	Object string `json:"object"`
	// JSON pointer; empty when it is the whole object that had been deleted, or that should not have been there.
	// +optional
	Field string `json:"field,omitempty"`
	// What Git wants, and what it is again. Secrets are masked.
	// +optional
	Want string `json:"want,omitempty"`
	// What the cluster had. Secrets are masked.
	// +optional
	Live string `json:"live,omitempty"`
	// The field manager that had written it; empty where the cluster did not say it.
	// +optional
	Manager string `json:"manager,omitempty"`
	// How it had written: Update or Apply.
	// +optional
	Operation string `json:"operation,omitempty"`
	// When it had written to the object last.
	// +optional
	ChangedAt *metav1.Time `json:"changedAt,omitempty"`
	// When it was put back.
	CorrectedAt metav1.Time `json:"correctedAt"`
}

// FightEntry is one field that Mooring and somebody else set by turns.
type FightEntry struct {
	// Kind/namespace/name.
	Object string `json:"object"`
	// API group of the object; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// JSON pointer; empty when it is the whole object that is deleted each time.
	// +optional
	Field string `json:"field,omitempty"`
	// The field manager that undoes what the field manager mooring writes; empty where the cluster does not say it.
	// +optional
	Manager string `json:"manager,omitempty"`
	// How often it was put back since the fight began.
	Corrections int32 `json:"corrections"`
	// When it was put back for the first time.
	Since metav1.Time `json:"since"`
	// The object is not put back before.
	Next metav1.Time `json:"next"`
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

// UnmanagedEntry is one object that no Mooring owns and that bears on what this one has.
type UnmanagedEntry struct {
	// Kind/namespace/name.
	Object string `json:"object"`
	// The hosts or workloads that it bears on.
	BearsOn string `json:"bearsOn"`
	// What it does to them, and how it comes to do so.
	Why string `json:"why"`
	// The field managers that wrote to it, the last one first.
	// +optional
	Managers []string `json:"managers,omitempty"`
	// When the object was made.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`
}
