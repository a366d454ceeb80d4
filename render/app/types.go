package app

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// Group and Kind of an AppConfiguration.
	Group = "mooring.dev"
	Kind  = "AppConfiguration"
	// Version is the only one so far.
	Version = "v1alpha1"
)

// AppConfiguration says how the mesh treats one application: who may call it, how traffic finds its versions, what it may reach. Mooring turns
// it into Istio's own objects while it renders a path; the AppConfiguration itself is not applied. "mooring render PATH" shows what
// it becomes and "mooring explain FIELD" says it of one field.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=appconfigurations,singular=appconfiguration,shortName=appconf
type AppConfiguration struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted. Every block becomes Istio objects of one kind; a block that is left out becomes nothing.
	// +required
	Spec Spec `json:"spec"`
}

// Spec is what is wanted for one application.
type Spec struct {
	// Selector are the labels of the application's pods. Default: what the Service with the application's name selects, when it is in the same path,
	// else app: NAME. It becomes the selector of every object that has one.
	// +optional
	Selector map[string]string `json:"selector,omitempty"`
	// Versions of the application that run side by side, by name. Each becomes a subset of its DestinationRule, which is made for it if
	// destinationRule is left out.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Versions map[string]AppVersion `json:"versions,omitempty"`
	// DestinationRule says how callers treat the application's endpoints: load balancing, connection limits, ejection of bad ones, TLS.
	// Becomes a DestinationRule.
	// +optional
	DestinationRule *DestinationRule `json:"destinationRule,omitempty"`
	// VirtualService says where requests for a host go. Becomes a VirtualService.
	// +optional
	VirtualService *VirtualService `json:"virtualService,omitempty"`
	// ServiceEntries are services outside of the mesh that the application calls. Each becomes a ServiceEntry and, with tls: originate, a DestinationRule.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	ServiceEntries []ServiceEntry `json:"serviceEntries,omitempty"`
	// Gateway lets traffic in from outside of the mesh. Becomes a Gateway.
	// +optional
	Gateway *Gateway `json:"gateway,omitempty"`
	// Sidecar says what the application's proxies know of the mesh. Becomes a Sidecar.
	// +optional
	Sidecar *Sidecar `json:"sidecar,omitempty"`
	// WorkloadEntries are machines outside of Kubernetes that serve the application. Each becomes a WorkloadEntry.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	WorkloadEntries []WorkloadEntry `json:"workloadEntries,omitempty"`
	// WorkloadGroups are templates for such machines, with which they register themselves. Each becomes a WorkloadGroup.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	WorkloadGroups []WorkloadGroup `json:"workloadGroups,omitempty"`
	// AuthorizationPolicy says who may call the application. Becomes an AuthorizationPolicy.
	// +optional
	AuthorizationPolicy *AuthorizationPolicy `json:"authorizationPolicy,omitempty"`
	// AuthorizationPolicies are further ones, such as a DENY beside an ALLOW. Each becomes an AuthorizationPolicy.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	AuthorizationPolicies []NamedAuthorizationPolicy `json:"authorizationPolicies,omitempty"`
	// PeerAuthentication says whether the application takes plain text or mutual TLS only. Becomes a PeerAuthentication.
	// +optional
	PeerAuthentication *PeerAuthentication `json:"peerAuthentication,omitempty"`
	// RequestAuthentication says whose JSON Web Tokens (JWT) the application trusts. Becomes a RequestAuthentication and, with required, an AuthorizationPolicy.
	// +optional
	RequestAuthentication *RequestAuthentication `json:"requestAuthentication,omitempty"`
	// Telemetry says what is traced, measured and logged. Becomes a Telemetry.
	// +optional
	Telemetry *Telemetry `json:"telemetry,omitempty"`
	// EnvoyFilters change the configuration of the application's proxies itself. Each becomes an EnvoyFilter.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	EnvoyFilters []EnvoyFilter `json:"envoyFilters,omitempty"`
	// ProxyConfig sets what the application's proxies are started with. Becomes a ProxyConfig.
	// +optional
	ProxyConfig *ProxyConfig `json:"proxyConfig,omitempty"`
	// WasmPlugins run WebAssembly code in the application's proxies. Each becomes a WasmPlugin.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	WasmPlugins []WasmPlugin `json:"wasmPlugins,omitempty"`
}

// Escape are the ways out of the model, for what it has no attribute for. What comes out is validated like everything else.
type Escape struct {
	// Patch is merged over the spec that was generated: mappings by key, lists whose items have a name by that name (a Gateway's servers by that of
	// their port), other lists are replaced, null removes, and so does $patch: delete in an item. It has the fields of the Istio kind.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Patch *runtime.RawExtension `json:"patch,omitempty"`
	// Raw is the whole spec of the Istio kind, in place of what would be generated. Only a name may stand beside it.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	Raw *runtime.RawExtension `json:"raw,omitempty"`
}
