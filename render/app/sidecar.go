package app

// Sidecar says what the application's proxies know of the mesh.
type Sidecar struct {
	Workloads `json:",inline"`
	// Egress are the hosts that the proxies know, as NAMESPACE/HOST with "." and "*". Default: those of routes, serviceEntries and
	// dependencies, the application's own Service, and istio-system/*. Becomes Sidecar spec.egress[].hosts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Egress []string `json:"egress,omitempty"`
	// Dependencies are further services that are called: HOST in the same namespace, NAMESPACE/HOST, or a host with all its dots. Becomes Sidecar spec.egress[].hosts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Dependencies []string `json:"dependencies,omitempty"`
	// OutboundPolicy is ALLOW_ANY or REGISTRY_ONLY, which refuses what the proxies do not know. Default: that of the mesh.
	// Becomes Sidecar spec.outboundTrafficPolicy.mode.
	// +optional
	// +kubebuilder:validation:Enum=REGISTRY_ONLY;ALLOW_ANY
	OutboundPolicy string `json:"outboundPolicy,omitempty"`
	// Ingress are the ports on which the proxies take requests. Default: those of the Service. Becomes Sidecar spec.ingress.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MaxItems=64
	Ingress []IngressListener `json:"ingress,omitempty"`

	Escape `json:",inline"`
}

// IngressListener is a port on which a proxy takes requests.
type IngressListener struct {
	// Port number. Becomes Sidecar spec.ingress[].port.number.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port"`
	// Protocol on the port. Default: HTTP. Becomes Sidecar spec.ingress[].port.protocol.
	// +optional
	// +kubebuilder:validation:Enum=HTTP;HTTPS;GRPC;HTTP2;MONGO;TCP;TLS
	Protocol string `json:"protocol,omitempty"`
	// DefaultEndpoint is where the application listens: 127.0.0.1:PORT, 0.0.0.0:PORT or unix:///PATH. Default: 0.0.0.0:PORT, the pod's own address.
	// Becomes Sidecar spec.ingress[].defaultEndpoint.
	// +optional
	DefaultEndpoint string `json:"defaultEndpoint,omitempty"`
	// Bind is the address on which the proxy listens. Default: chosen by Istio. Becomes Sidecar spec.ingress[].bind.
	// +optional
	Bind string `json:"bind,omitempty"`
	// CaptureMode says how traffic gets to the proxy. Default: DEFAULT. Becomes Sidecar spec.ingress[].captureMode.
	// +optional
	// +kubebuilder:validation:Enum=DEFAULT;IPTABLES;NONE
	CaptureMode string `json:"captureMode,omitempty"`
}
