package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PromoteAnnotation is a person's word for a promotion that waits for one (spec.promotion.approval: Manual): the revision that it is given for, and after a space, perhaps,
// why. The command promote writes it. It counts for that revision only; the agent takes it away once that revision, or a newer one, was promoted.
const PromoteAnnotation = "mooring.dev/promote"

// Promotion says which environment a Mooring follows, and what a commit must have proven there before it comes here.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Follow' || has(self.secretRef)",message="modes FastForward and PullRequest write to Git: name the Secret that may, in promotion.secretRef"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Follow' || !has(self.secretRef)",message="mode Follow writes nothing to Git: take promotion.secretRef out"
// +kubebuilder:validation:XValidation:rule="self.mode == 'PullRequest' || !has(self.pullRequest)",message="promotion.pullRequest is for mode PullRequest alone"
type Promotion struct {
	// The environment that is followed.
	// +required
	From PromotionFrom `json:"from"`

	// How a commit comes here. Follow: both follow the same branch, and here only what the other environment has proven is applied; nothing is written to
	// Git. FastForward: this environment has a branch of its own, which the agent moves forward to the proven commit, never by force.
	// PullRequest: the agent opens one pull request to this environment's branch, and a person merges it.
	// +optional
	// +kubebuilder:default=Follow
	Mode PromotionMode `json:"mode,omitempty"`

	// How long a commit must have been in force in the other environment without a break: every object healthy, no drift left standing, no finding of level
	// Error. As a Go duration; a commit that is replaced sooner is not promoted.
	// +optional
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$')",message="soak is a duration such as 30m or 24h"
	Soak metav1.Duration `json:"soak,omitzero"`

	// Whether a person must say so: Manual waits for mooring promote NAME, given for the very commit.
	// +optional
	// +kubebuilder:default=Automatic
	Approval PromotionApproval `json:"approval,omitempty"`

	// A CEL expression that must be true, such as from.status.driftCount == 0. from is the Mooring that is followed, self this one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ReadyExpr string `json:"readyExpr,omitempty"`

	// Prometheus queries whose answers must be within bounds. They are asked once everything else speaks for the promotion.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Metrics []MetricGate `json:"metrics,omitempty"`

	// The Secret with which the agent writes to Git, in the Mooring's namespace: the keys of spec.source.secretRef, and for PullRequest a token for the forge's API
	// under the key token (without it, bearerToken or password). A credential of its own, so that the one that reads needs no right to write.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// Which forge, where its address does not say it.
	// +optional
	PullRequest *PullRequestSpec `json:"pullRequest,omitempty"`
}

// PromotionFrom names the Mooring that is followed.
type PromotionFrom struct {
	// Its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Its namespace; without it, that of the Mooring that follows.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// PromotionMode is how a commit comes from one environment to the next.
//
// +kubebuilder:validation:Enum=Follow;FastForward;PullRequest
type PromotionMode string

// The modes of promotion.
const (
	// PromotionFollow applies what the other environment has proven, from the same branch.
	PromotionFollow PromotionMode = "Follow"
	// PromotionFastForward moves the environment's branch forward.
	PromotionFastForward PromotionMode = "FastForward"
	// PromotionPullRequest opens a pull request to the environment's branch.
	PromotionPullRequest PromotionMode = "PullRequest"
)

// PromotionApproval says whether a person must let a promotion through.
//
// +kubebuilder:validation:Enum=Automatic;Manual
type PromotionApproval string

// The approvals.
const (
	// ApprovalAutomatic needs nobody's word.
	ApprovalAutomatic PromotionApproval = "Automatic"
	// ApprovalManual waits for mooring promote.
	ApprovalManual PromotionApproval = "Manual"
)

// MetricGate is a query to Prometheus whose answer must be within bounds.
//
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max)",message="a metric needs a bound: min, max or both"
// +kubebuilder:validation:XValidation:rule="!self.address.startsWith('http://') || !has(self.secretRef)",message="credentials are never sent over http: use an https address, or drop secretRef"
type MetricGate struct {
	// What it is called in messages.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Address of Prometheus' HTTP API, such as http://prometheus.monitoring:9090.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/\\\\s@]+(/[^\\\\s]*)?$')",message="address is http://host:port or https://host:port, perhaps with a path; credentials belong into secretRef"
	Address string `json:"address"`
	// The query, in PromQL. $soak in it stands for spec.promotion.soak, such as 30m, so that a rate is taken over the very time. It is asked for now. No data is no
	// success: nor is an answer that is not a number. Where the answer has several series, each must be within the bounds.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
	// The least that is good, as a decimal number: "0.99".
	// +optional
	Min *Decimal `json:"min,omitempty"`
	// The most that is good, as a decimal number: "250".
	// +optional
	Max *Decimal `json:"max,omitempty"`
	// The Secret with the credentials, in the Mooring's namespace. Keys: username and password, or bearerToken; ca.crt.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
}

// Decimal is a number as text, since the API has no fractions.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^-?[0-9]+([.][0-9]+)?$`
type Decimal string

// PullRequestSpec says which forge keeps the repository.
type PullRequestSpec struct {
	// Which API it speaks. Without it, that of the host: github.com, gitlab.com, codeberg.org, gitea.com.
	// +optional
	Provider ForgeProvider `json:"provider,omitempty"`
	// Address of its API, where it is not the usual one below the host of spec.source.url: https://git.example.com/api/v3.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https://[^/\\\\s@]+(/[^\\\\s]*)?$')",message="url is https://host or https://host/path"
	URL string `json:"url,omitempty"`
	// The repository's name there, such as mesh/config, where it is not the path of spec.source.url.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Repository string `json:"repository,omitempty"`
}

// ForgeProvider is a forge's API.
//
// +kubebuilder:validation:Enum=GitHub;GitLab;Gitea
type ForgeProvider string

// The forges. Forgejo speaks the API of Gitea.
const (
	ProviderGitHub ForgeProvider = "GitHub"
	ProviderGitLab ForgeProvider = "GitLab"
	ProviderGitea  ForgeProvider = "Gitea"
)

// ConditionPromoted is True when nothing waits to be promoted to this Mooring, False while something does or when it could not be. Only there with spec.promotion.
const ConditionPromoted = "Promoted"

// Reasons of the condition Promoted.
const (
	// ReasonUpToDate : what the other environment has proven is here.
	ReasonUpToDate = "UpToDate"
	// ReasonSoaking : the newest commit is healthy there, and not yet for as long as it must be.
	ReasonSoaking = "Soaking"
	// ReasonNotHealthy : it is not healthy there, or drift or findings of level Error stand.
	ReasonNotHealthy = "NotHealthy"
	// ReasonNothingProven : there is nothing there that could be promoted, or the Mooring is missing.
	ReasonNothingProven = "NothingProven"
	// ReasonAwaitingWindow : no window is open here.
	ReasonAwaitingWindow = "AwaitingWindow"
	// ReasonAwaitingApproval : it waits for mooring promote.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonGateClosed : spec.promotion.readyExpr or a metric speaks against it.
	ReasonGateClosed = "GateClosed"
	// ReasonPinned : spec.pin holds a revision here.
	ReasonPinned = "Pinned"
	// ReasonDiverged : this environment's branch has commits that the proven one does not have.
	ReasonDiverged = "Diverged"
	// ReasonAwaitingMerge : the pull request is open.
	ReasonAwaitingMerge = "AwaitingMerge"
	// ReasonDeclined : the pull request was closed by a person.
	ReasonDeclined = "Declined"
	// ReasonPromotionFailed : the server could not be asked, or refused; it is tried again.
	ReasonPromotionFailed = "PromotionFailed"
)

// PromotionStatus is what waits to be promoted, and what was.
type PromotionStatus struct {
	// The revision that was promoted last.
	// +optional
	Revision string `json:"revision,omitempty"`
	// When that was.
	// +optional
	PromotedAt *metav1.Time `json:"promotedAt,omitempty"`
	// The commits of the other environment that are newer than what is here, newest first, and what each waits for.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	Candidates []PromotionCandidate `json:"candidates,omitempty"`
	// The pull request of the commit that is proposed.
	// +optional
	PullRequest *PullRequestStatus `json:"pullRequest,omitempty"`
}

// PromotionCandidate is a commit of the environment that is followed, and what keeps it from coming here.
type PromotionCandidate struct {
	// The revision there.
	Revision string `json:"revision"`
	// One of the reasons of the condition Promoted, or Failed or Skipped for what will not come any more.
	State string `json:"state"`
	// In words, with the instant where there is one.
	// +optional
	WaitsFor string `json:"waitsFor,omitempty"`
	// The first line of the commit's message.
	// +optional
	Subject string `json:"subject,omitempty"`
}

// States of a candidate that will not come any more.
const (
	// CandidateFailed : it did not become healthy there in time.
	CandidateFailed = "Failed"
	// CandidateSkipped : it was replaced before it was proven, or a newer one was.
	CandidateSkipped = "Skipped"
)

// PullRequestStatus is the pull request of a promotion.
type PullRequestStatus struct {
	// Its number in the repository.
	Number int64 `json:"number"`
	// Its page.
	URL string `json:"url"`
	// Open, Merged or Closed.
	State string `json:"state"`
	// The commit that it proposes.
	Revision string `json:"revision"`
}
