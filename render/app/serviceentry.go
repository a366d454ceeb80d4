package app

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// ServiceEntry is a service outside of the mesh that the application calls.
type ServiceEntry struct {
	// Name tells it from the others. Becomes metadata.name, as <app>-<name>.
	// +required
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Hosts by which it is called. Needed unless there is raw. Becomes ServiceEntry spec.hosts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Hosts []string `json:"hosts,omitempty"`
	// Ports of the service. Default: 443 with HTTPS; 80 with HTTP for tls: originate. Becomes ServiceEntry spec.ports.
	// +optional
	// +listType=map
	// +listMapKey=number
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Ports []ServiceEntryPort `json:"ports,omitempty"`
	// Internal says that its endpoints are part of the mesh. Default: false. Becomes ServiceEntry spec.location.
	// +optional
	Internal bool `json:"internal,omitempty"`
	// Resolution says how endpoints are found. Default: NONE for a host with a wildcard, STATIC when all endpoints are IP addresses or there is a
	// selector, else DNS. Becomes ServiceEntry spec.resolution.
	// +optional
	// +kubebuilder:validation:Enum=NONE;STATIC;DNS;DNS_ROUND_ROBIN;DYNAMIC_DNS
	Resolution string `json:"resolution,omitempty"`
	// Addresses are virtual IP addresses or CIDRs of the service. Becomes ServiceEntry spec.addresses.
	// +optional
	Addresses []string `json:"addresses,omitempty"`
	// Endpoints: a text that is an address, or a mapping with address, ports, labels, locality, weight, network. Becomes ServiceEntry spec.endpoints.
	// +optional
	// +kubebuilder:validation:MaxItems=128
	Endpoints []apiextensionsv1.JSON `json:"endpoints,omitempty"`
	// SubjectAltNames of which the service's certificate has to have one. Becomes ServiceEntry spec.subjectAltNames.
	// +optional
	SubjectAltNames []string `json:"subjectAltNames,omitempty"`
	// Namespaces that see it: "." its own, "*" all. Default: ".". Becomes ServiceEntry spec.exportTo.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Selector are labels of pods and WorkloadEntries that serve it, with internal. Becomes ServiceEntry spec.workloadSelector.labels.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	Selector map[string]string `json:"selector,omitempty"`
	// TLS is none, passthrough (the application speaks TLS itself) or originate (it speaks HTTP to port 80, and its proxy TLS to port 443).
	// Default: none. originate becomes a DestinationRule and a targetPort; passthrough becomes protocol TLS for port 443.
	// +optional
	// +kubebuilder:validation:Enum=none;passthrough;originate
	TLS string `json:"tls,omitempty"`

	Escape `json:",inline"`
}

// ServiceEntryPort is a port of a service.
type ServiceEntryPort struct {
	// Number of the port. Becomes ServiceEntry spec.ports[].number.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number uint32 `json:"number"`
	// Protocol in any case of letters. Default: HTTPS for 443, HTTP for 80, else TCP. Becomes ServiceEntry spec.ports[].protocol.
	// +optional
	// +kubebuilder:validation:Pattern=`^(?i)(HTTP|HTTPS|GRPC|GRPC-WEB|HTTP2|MONGO|TCP|TLS|UDP|MYSQL|REDIS)$`
	Protocol string `json:"protocol,omitempty"`
	// Name of the port. Default: PROTOCOL-NUMBER in lower case. Becomes ServiceEntry spec.ports[].name.
	// +optional
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// TargetPort of the endpoints. Default: number; 443 for HTTP with tls: originate. Becomes ServiceEntry spec.ports[].targetPort.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	TargetPort uint32 `json:"targetPort,omitempty"`
}
