package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AlarmKind is the kind of an Alarm.
const AlarmKind = "Alarm"

// AnyNamespace stands for all namespaces in an Alarm.
const AnyNamespace = "*"

// Alarm tells people, or an Alertmanager, what happens to Moorings: one message for a fault and one for its end.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Open",type=integer,JSONPath=`.status.openCount`
// +kubebuilder:printcolumn:name="Sent",type=integer,JSONPath=`.status.sent`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastSent`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Alarm struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What is told, and to whom.
	// +required
	Spec AlarmSpec `json:"spec"`
	// What was told. Written by the agent alone.
	// +optional
	Status AlarmStatus `json:"status,omitempty"`
}

// AlarmList is a list of Alarms.
//
// +kubebuilder:object:root=true
type AlarmList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Alarm `json:"items"`
}

// AlarmSpec says what is told, and to whom.
//
// +kubebuilder:validation:XValidation:rule="[has(self.shoutrrr), has(self.alertmanager)].filter(set, set).size() == 1",message="exactly one of shoutrrr and alertmanager must be set; a second receiver is a second Alarm"
type AlarmSpec struct {
	// Which Moorings; without it, all of the Alarm's namespaces. A Mooring is told of when any entry picks it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Moorings []MooringSelector `json:"moorings,omitempty"`

	// The namespaces whose Moorings are told of, by name, or "*" for all; without it, the Alarm's own. What is told of a Mooring
	// names objects, files and commits. So an Alarm may look beyond its own namespace only where whoever runs the agent
	// allows it: by default in the agent's own namespace, else in those of the agent's flag --alarms-across.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?|\*)$`
	Namespaces []string `json:"namespaces,omitempty"`

	// What is told. drift: live objects differ from Git and stay so. driftCorrected: somebody changed objects, and they were put
	// back. failed: the newest commit is not in force. guarded: a plan waits for a human's word. fight: somebody undoes what Mooring writes. unmanaged:
	// objects that no Mooring owns bear on hosts of one that does. promotion: a commit that is proven in the environment that is followed waits for a person, or is
	// refused. recovered: one of these that was told is over. applied:
	// a commit came into force.
	// +optional
	// +listType=set
	// +kubebuilder:default={drift,failed,guarded,fight,recovered}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=9
	Events []AlarmEvent `json:"events,omitempty"`

	// Sends to chats, mail and webhooks, by the addresses of github.com/nicholas-fedor/shoutrrr.
	// +optional
	Shoutrrr *ShoutrrrReceiver `json:"shoutrrr,omitempty"`

	// Sends to the API of a Prometheus Alertmanager, which is told again every minute as long as a fault lasts. Of a pair, each wants an
	// Alarm of its own.
	// +optional
	Alertmanager *AlertmanagerReceiver `json:"alertmanager,omitempty"`

	// The words. Without it, the agent's own.
	// +optional
	Template *AlarmTemplate `json:"template,omitempty"`

	// How long facts are gathered into one message, as a Go duration. A fault that is over by then is not told at all, so that
	// a longer one leaves out hiccups.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('1h')",message="groupWait is a duration from 100ms to 1h, such as 10s or 2m"
	GroupWait metav1.Duration `json:"groupWait,omitzero"`

	// How long other Moorings with a fault that was just told have to wait, as a Go duration: they have most likely the same cause, and
	// are told together. An Alertmanager is not kept waiting, it groups by itself.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}([.][0-9]+)?h|[0-9]{1,7}([.][0-9]+)?(ms|s|m))+$') && duration(self) >= duration('100ms') && duration(self) <= duration('24h')",message="groupInterval is a duration from 100ms to 24h, such as 5m"
	GroupInterval metav1.Duration `json:"groupInterval,omitzero"`

	// Nothing is sent while this is true. What lasts until it is false again is told then.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// AlarmEvent is something that happens to a Mooring.
//
// +kubebuilder:validation:Enum=drift;driftCorrected;failed;guarded;recovered;applied;fight;unmanaged;promotion
type AlarmEvent string

// The events: a closed list.
const (
	// AlarmDrift : live objects differ from Git and stay so.
	AlarmDrift AlarmEvent = "drift"
	// AlarmDriftCorrected : somebody changed objects, and they were put back.
	AlarmDriftCorrected AlarmEvent = "driftCorrected"
	// AlarmFailed : the newest commit is not in force.
	AlarmFailed AlarmEvent = "failed"
	// AlarmGuarded : a plan waits for a human's word.
	AlarmGuarded AlarmEvent = "guarded"
	// AlarmRecovered : a fault that was told is over.
	AlarmRecovered AlarmEvent = "recovered"
	// AlarmApplied : a commit came into force.
	AlarmApplied AlarmEvent = "applied"
	// AlarmFight : somebody undoes what Mooring writes, again and again.
	AlarmFight AlarmEvent = "fight"
	// AlarmUnmanaged : objects that no Mooring owns bear on hosts of one that does.
	AlarmUnmanaged AlarmEvent = "unmanaged"
	// AlarmPromotion : a commit that is proven in another environment does not come without a person.
	AlarmPromotion AlarmEvent = "promotion"
)

// MooringSelector picks Moorings: by exactly one of its fields.
//
// +kubebuilder:validation:XValidation:rule="[has(self.name), has(self.labelSelector)].filter(set, set).size() == 1",message="exactly one of name and labelSelector must be set"
type MooringSelector struct {
	// The name of a Mooring.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Labels that the Mooring has.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
}

// ShoutrrrReceiver sends by addresses that are secrets themselves.
type ShoutrrrReceiver struct {
	// The Secret with the addresses, in the Alarm's namespace. It is read at each message.
	// +required
	SecretRef ShoutrrrSecret `json:"secretRef"`
}

// ShoutrrrSecret names a Secret and the key in it.
type ShoutrrrSecret struct {
	// Its name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// The key with the addresses, one a line, such as slack://hook:…@webhook, smtp://…, or
	// generic://host/path?template=json for a webhook that gets JSON.
	// +optional
	// +kubebuilder:default=urls
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// AlertmanagerReceiver is an Alertmanager.
//
// +kubebuilder:validation:XValidation:rule="!self.url.startsWith('http://') || !has(self.secretRef)",message="credentials are never sent over http: use an https url, or drop secretRef"
type AlertmanagerReceiver struct {
	// Its address, such as http://alertmanager.monitoring:9093, with a path before /api/v2 where it has one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/\\\\s?#@]+(/[^\\\\s?#@]*)?$')",message="url is http://host:port or https://host:port, with a path where there is one; credentials belong into the Secret of secretRef"
	URL string `json:"url"`
	// The Secret with what the Alertmanager wants to see, in the Alarm's namespace. Keys: username and password, or bearerToken; ca.crt;
	// tls.crt and tls.key. It is read at each message.
	// +optional
	SecretRef *LocalReference `json:"secretRef,omitempty"`
	// Labels of every alert, such as cluster: prod. Those that Mooring sets itself cannot be set here.
	// +optional
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^[a-zA-Z_][a-zA-Z0-9_]*$') && !(key in ['alertname', 'severity', 'event', 'reason', 'mooring', 'mooring_namespace']))",message="a label is named by letters, digits and _; alertname, severity, event, reason, mooring and mooring_namespace are set by Mooring"
	Labels map[string]AlertLabel `json:"labels,omitempty"`
}

// AlertLabel is the value of a label of an alert.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
type AlertLabel string

// AlarmTemplate is the words of a message, as Go's text/template. It sees .Alarm (namespace/name), .Firing, .Resolved and .Happened (lists of groups, each with
// .Event, .Reason, .Message, .Count, .Moorings and .Names, the first few of them as text) and the agent's own .Title and .Text. An Alertmanager gets them
// for each alert. A template that is wrong makes the Alarm not Ready, and the agent's own words are sent.
type AlarmTemplate struct {
	// One line.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Title string `json:"title,omitempty"`
	// The text.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Text string `json:"text,omitempty"`
}

// Reasons of an Alarm's Ready condition: a closed list.
const (
	// AlarmReasonListening : messages are sent as things happen.
	AlarmReasonListening = "Listening"
	// AlarmReasonSuspended : spec.suspend is true.
	AlarmReasonSuspended = "Suspended"
	// AlarmReasonInvalidSelector : a labelSelector is wrong.
	AlarmReasonInvalidSelector = "InvalidSelector"
	// AlarmReasonInvalidTemplate : a template is wrong; the agent's own words are sent.
	AlarmReasonInvalidTemplate = "InvalidTemplate"
	// AlarmReasonNotAllowed : the Alarm may not look beyond its own namespace.
	AlarmReasonNotAllowed = "NotAllowed"
	// AlarmReasonInvalidSecret : the Secret is not there, or does not hold what it must.
	AlarmReasonInvalidSecret = "InvalidSecret"
	// AlarmReasonSendFailed : the last message could not be sent; it is tried again.
	AlarmReasonSendFailed = "SendFailed"
)

// AlarmStatus is what an Alarm told.
type AlarmStatus struct {
	// The generation of the spec that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// When a message was sent last.
	// +optional
	LastSent *metav1.Time `json:"lastSent,omitempty"`
	// What went wrong with the last message that could not be sent; empty when none did since. Addresses and credentials are masked.
	// +optional
	LastError string `json:"lastError,omitempty"`
	// How many messages were sent.
	// +optional
	Sent int64 `json:"sent,omitempty"`
	// How many tries to send one failed.
	// +optional
	Failed int64 `json:"failed,omitempty"`
	// The first thousand faults that were told and are not over, so that an agent that starts again neither repeats them nor forgets to tell
	// their end. Of more than these, some may be told a second time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	Open []OpenFault `json:"open,omitempty"`
	// How many there are in all.
	// +optional
	OpenCount int32 `json:"openCount,omitempty"`
}

// OpenFault is a fault that was told and is not over.
type OpenFault struct {
	// The Mooring, as namespace/name.
	Mooring string `json:"mooring"`
	// What it is.
	Event AlarmEvent `json:"event"`
	// The reason of the condition that says so.
	Reason string `json:"reason"`
	// Since when it lasts.
	Since metav1.Time `json:"since"`
}
