package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is the kind of a Mooring.
const Kind = "Mooring"

// ShardLabel on a Mooring or an Alarm names the shard that it belongs to: an agent that runs with --shard NAME works for those with this value, one
// without for those that do not have the label.
const ShardLabel = "mooring.dev/shard"

// Annotations that a person or a tool writes on a Mooring.
const (
	// ReconcileAnnotation asks for a pass now: any new value does. The value is copied to
	// status.lastHandledReconcileAt when the pass is over.
	ReconcileAnnotation = "mooring.dev/reconcile"
	// ConfirmAnnotation lets one plan through that the prune guard refused: for the revision that it names, and, when ",deletes=N" follows, no
	// more deletes than that. The agent takes it away once that revision, or another one, has come into force.
	ConfirmAnnotation = "mooring.dev/confirm"
	// OverrideWindowAnnotation lets the newest commit be applied although a window is closed. Its value is the reason, which history and an Event
	// tell. It counts for the next pass that finds out what the newest commit is; then the agent takes it away, whatever came of that commit.
	OverrideWindowAnnotation = "mooring.dev/override-window"
)

// AdoptAnnotation lets objects be taken over from other tools: for the revision that it names, from the tools that follow it, as in
// "main@sha1:4f0c12… helm,flux". The command adopt writes it. The agent takes it away once that revision, or another one, has come into force.
const AdoptAnnotation = "mooring.dev/adopt"

// ClaimsAnnotation is written by the agent: the objects that Git has here and that another Mooring still has in the cluster. It
// keeps them from being deleted there before they could be handed over.
const ClaimsAnnotation = "mooring.dev/claims"

// Finalizer keeps a deleted Mooring until its deletionPolicy has been carried out.
const Finalizer = "mooring.dev/finalizer"

// Mooring keeps one path of one Git ref on one cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=moor,categories=mooring
// +kubebuilder:metadata:labels=applyset.kubernetes.io/is-parent-type=true
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.lastAppliedRevision`
// +kubebuilder:printcolumn:name="Objects",type=integer,JSONPath=`.status.inventory.objects`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Mooring struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is kept, and how.
	// +required
	Spec MooringSpec `json:"spec"`
	// What became of it. Written by the agent alone.
	// +optional
	Status MooringStatus `json:"status,omitempty"`
}

// MooringList is a list of Moorings.
//
// +kubebuilder:object:root=true
type MooringList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Mooring `json:"items"`
}

// MooringSpec says what is kept and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.promotion) || has(self.source.ref.branch)",message="promotion goes along branches: source.ref must name a branch"
// +kubebuilder:validation:XValidation:rule="!has(self.onFailure) || self.onFailure != 'Rollback' || (has(self.wait) && self.wait)",message="onFailure: Rollback needs wait: true, or nobody finds out that a revision is not healthy"
// +kubebuilder:validation:XValidation:rule="!has(self.serviceAccountName)",message="serviceAccountName is not supported by this version of Mooring; every call is made with the agent's own rights"
// +kubebuilder:validation:XValidation:rule="!has(self.kubeConfig)",message="kubeConfig is not supported by this version of Mooring; the agent keeps the cluster that it runs in"
// +kubebuilder:validation:XValidation:rule="!has(self.mesh)",message="mesh is not supported by this version of Mooring; commit the rendered manifests of the installation instead of an IstioOperator"
type MooringSpec struct {
	// Where the configuration comes from.
	// +required
	Source Source `json:"source"`

	// The folder of the repository that is kept: a kustomization, or a folder of plain YAML. Relative to the
	// root of the repository; it cannot lead out of it.
	// +optional
	// +kubebuilder:default="."
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/')",message="path is relative to the root of the repository: write overlays/prod, not /overlays/prod"
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(part, part == '..')",message="path cannot lead out of the repository: it must not contain .."
	Path string `json:"path,omitempty"`

	// How often Git is asked for new commits and the whole is looked over, as a Go duration. A tenth of jitter
	// is added, so that many Moorings do not ask at once.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$') && duration(self) >= duration('1s')",message="interval is a duration of at least 1s, such as 30s, 5m or 1h30m"
	Interval metav1.Duration `json:"interval,omitzero"`

	// What becomes of objects that Git no longer has.
	// +optional
	// +kubebuilder:default={}
	Prune Prune `json:"prune,omitempty"`

	// How it is found out that the proxies have what was written, before what builds upon it is written: the subsets of a
	// DestinationRule before the routes to them.
	// +optional
	// +kubebuilder:default={}
	Propagation Propagation `json:"propagation,omitempty"`

	// Ready only when all that was applied is healthy.
	// +optional
	Wait bool `json:"wait,omitempty"`

	// How kinds tell their health that do not tell it as others do: one entry for each kind. It replaces what Mooring knows of the kind.
	// +optional
	// +listType=map
	// +listMapKey=apiVersion
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=50
	HealthChecks []HealthCheck `json:"healthChecks,omitempty"`

	// How long a pass may take, and how long wait waits for health, as a Go duration.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$') && duration(self) >= duration('1s')",message="timeout is a duration of at least 1s, such as 30s or 5m"
	Timeout metav1.Duration `json:"timeout,omitzero"`

	// What becomes of the objects when the Mooring is deleted: Prune deletes them, Orphan leaves them and takes
	// Mooring's label and field manager off them. CRDs and namespaces always stay.
	// +optional
	// +kubebuilder:default=Prune
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// Nothing is fetched, applied or corrected while this is true.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// When Git is asked for new commits, as a cron expression: */10 8-18 * * MON-FRI. Between its times nothing new is taken up, and drift is corrected as always. A
	// time that nobody was there for is made up for once. Git is asked at once for the first commit, after a change of spec.source, and when a person asks with
	// mooring sync. Without a schedule, Git is asked at every interval.
	// +optional
	Schedule CronExpression `json:"schedule,omitempty"`
	// Where the times of day of schedule and windows are, such as Europe/Berlin; without it, UTC. In the night on which an hour is skipped, a
	// time in it comes when the hour is over; in the one that has an hour twice, the first time.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`
	// When new revisions may be applied. While a Deny is on, none is; where there is an Allow, none is outside of all of them. The first
	// revision of a Mooring is held like any other. Drift is corrected to the applied revision all the time, and an apply that was begun is finished.
	// mooring sync NAME --override-window REASON applies the newest commit all the same.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	Windows []Window `json:"windows,omitempty"`
	// What is done when somebody changes what is kept, and which fields are left to others.
	// +optional
	// +kubebuilder:default={}
	Drift *Drift `json:"drift,omitempty"`
	// Which findings of the check keep a commit out of the cluster, which do not, and the rules of the house. Without it,
	// new findings of level Error do.
	// +optional
	Check *Check `json:"check,omitempty"`
	// The environment that this one follows, and what a commit must have proven there before it comes here.
	// +optional
	Promotion *Promotion `json:"promotion,omitempty"`
	// Holds the Mooring at a revision of its history: drift is corrected to it, and newer commits wait. mooring rollback writes it, mooring unpin takes it out.
	// Neither windows nor dependsOn hold it.
	// +optional
	Pin *Pin `json:"pin,omitempty"`
	// What is done when a new revision does not become healthy within timeout. Keep leaves it in force. Rollback goes back to the last revision that was healthy,
	// once, and does not apply the bad one again; the next commit is taken up as usual.
	// +optional
	// +kubebuilder:default=Keep
	OnFailure OnFailure `json:"onFailure,omitempty"`
	// Moorings that must be ready before a new revision is applied: those that follow the same ref of the same repository at the same commit, others at
	// their newest. What was applied is kept in force meanwhile.
	// +optional
	// +kubebuilder:validation:MaxItems=16
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// Whose rights are used for every call. Not supported by this version: refused.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Another cluster. Not supported by this version: refused.
	// +optional
	KubeConfig *Unsupported `json:"kubeConfig,omitempty"`
	// How an IstioOperator in the path is treated. Not supported by this version: refused.
	// +optional
	Mesh *Unsupported `json:"mesh,omitempty"`
}

// Dependency is a Mooring that must be ready first.
type Dependency struct {
	// Its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Its namespace; without it, that of the Mooring that waits.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// A CEL expression that must be true as well, such as dep.status.inventory.objects > 0. dep is the other Mooring, self this one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	ReadyExpr string `json:"readyExpr,omitempty"`
}

// Unsupported is the value of a field that is part of the API's design but that this version does not act on. Such
// a field is refused by name when it is set: were it unknown to the schema, the API server would drop it in
// silence and the user would believe that it works.
//
// +kubebuilder:pruning:PreserveUnknownFields
type Unsupported struct{}

// Source is a ref of a Git repository and how to read it.
//
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || !has(self.secretRef)",message="credentials are never sent over http: use an https or ssh url, or drop secretRef"
// +kubebuilder:validation:XValidation:rule="self.url.startsWith('http://') || self.url.startsWith('https://') || has(self.secretRef)",message="a repository over ssh needs secretRef: a Secret with the keys identity and known_hosts"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || !has(self.verify.mode) || self.verify.mode == 'Head' || has(self.ref.tag) || has(self.ref.semver)",message="verify.mode Tag and TagAndHead need a tag: set ref.tag or ref.semver, or use mode Head"
type Source struct {
	// Address of the repository: https://, ssh://, git@host:path, or http:// where no secret is sent. Credentials
	// belong into the Secret of secretRef, never into the address.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https?|ssh)://[^/\\\\s-][^/\\\\s]*/[^\\\\s]+$') || self.matches('^[A-Za-z0-9._][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:[^\\\\s]+$')",message="url is https://host/path, ssh://user@host/path, user@host:path, or http://host/path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/]*@') && !self.matches('^ssh://[^/@]*:[^/@]*@')",message="url holds credentials: move them to the Secret of secretRef (keys username and password)"
	URL string `json:"url"`

	// Which commit: exactly one of its fields.
	// +required
	Ref Ref `json:"ref"`

	// The Secret with the credentials, in the Mooring's namespace. Keys: username and password, or bearerToken
	// (https); identity and known_hosts, with password for an encrypted key (ssh); ca.crt, tls.crt and tls.key (https); for a
	// GitHub App (https) githubAppID, githubAppPrivateKey, githubAppInstallationID or githubAppInstallationOwner, and
	// githubAppBaseURL where it is not github.com. It is read at every pass.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`

	// The Secret of a proxy between the agent and the repository, in the Mooring's namespace. Keys: address, which is http://, https://
	// or socks5:// with host and port; username and password where the proxy asks for them. Without it, HTTPS_PROXY and NO_PROXY of
	// the agent count, for https. TLS and host keys are checked through it; it sees no credential but its own.
	// +optional
	ProxySecretRef *LocalReference `json:"proxySecretRef,omitempty"`

	// Whose signature a commit or its tag needs; without it, signatures are not looked at. The tree of a signed commit names the commit of
	// each submodule.
	// +optional
	Verify *Verify `json:"verify,omitempty"`

	// Puts the files of submodules in their places, at the commits that the repository names, also those of submodules in submodules: as far as the path
	// needs them, and where they are on the same server as url. They are fetched with the same credentials. Without it, a path that needs a
	// file of a submodule does not render.
	// +optional
	RecurseSubmodules bool `json:"recurseSubmodules,omitempty"`
}

// Ref names a commit.
//
// +kubebuilder:validation:XValidation:rule="[has(self.branch), has(self.tag), has(self.semver), has(self.commit), has(self.name)].filter(set, set).size() == 1",message="exactly one of branch, tag, semver, commit and name must be set"
type Ref struct {
	// A branch: its newest commit.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('-') && !self.startsWith('refs/')",message="branch is the short name, such as main or env/prod; for another ref use name"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f~^:?*\\\\[\\\\\\\\]|[.][.]|@[{]|//|[./]$|(^|/)[.]|[.]lock(/|$)')",message="branch is not a name that Git allows: it has no spaces, no .. and none of ~ ^ : ? * [ \\, and does not end in / . or .lock"
	Branch string `json:"branch,omitempty"`
	// A tag.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('-') && !self.startsWith('refs/')",message="tag is the short name, such as v1.2.0; for another ref use name"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f~^:?*\\\\[\\\\\\\\]|[.][.]|@[{]|//|[./]$|(^|/)[.]|[.]lock(/|$)')",message="tag is not a name that Git allows: it has no spaces, no .. and none of ~ ^ : ? * [ \\, and does not end in / . or .lock"
	Tag string `json:"tag,omitempty"`
	// A range of versions, such as 1.x, ~1.2 or ">=1.2.0 <2.0.0": the highest tag in it, and a higher one as soon as there
	// is one. Tags that are versions have three numbers, v1.2.3 or 1.2.3. A pre-release counts where the range names one,
	// as ">=2.0.0-0" does.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z.*+|,<>=!~^ -]*[0-9xX*][0-9A-Za-z.*+|,<>=!~^ -]*$')",message="semver is a range of versions, such as 1.x, ~1.2 or >=1.2.0 <2.0.0; for one tag use tag"
	Semver string `json:"semver,omitempty"`
	// The full hexadecimal id of a commit.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{40}$`
	Commit string `json:"commit,omitempty"`
	// Any ref by its full name, such as refs/pull/7/head.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^refs/.+$`
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f~^:?*\\\\[\\\\\\\\]|[.][.]|@[{]|//|[./]$|(^|/)[.]|[.]lock(/|$)')",message="name is not a name that Git allows: it has no spaces, no .. and none of ~ ^ : ? * [ \\, and does not end in / . or .lock"
	Name string `json:"name,omitempty"`
}

// LocalReference names an object in the Mooring's own namespace.
type LocalReference struct {
	// Its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// Prune says what becomes of objects that Git no longer has, and which plans wait for a human's word.
type Prune struct {
	// Whether they are deleted. When false they stay, still labelled.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
	// A plan that would delete more than this percentage of the Mooring's objects waits for the annotation
	// mooring.dev/confirm; so does one that leaves no object of a kind of which it deletes two or more,
	// and one that deletes anything while a file in the path is there without any object in it. 100 switches these off.
	// +optional
	// +kubebuilder:default=25
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxPercent *int32 `json:"maxPercent,omitempty"`
	// A plan that would delete more than this number of objects waits for the annotation mooring.dev/confirm.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	MaxObjects *int32 `json:"maxObjects,omitempty"`
}

// DeletionPolicy is what becomes of the objects when their Mooring goes.
//
// +kubebuilder:validation:Enum=Prune;Orphan
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionPrune deletes the objects, except CRDs and namespaces.
	DeletionPrune DeletionPolicy = "Prune"
	// DeletionOrphan leaves the objects in the cluster and no longer claims them.
	DeletionOrphan DeletionPolicy = "Orphan"
)
