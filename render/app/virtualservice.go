package app

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// VirtualService says where requests for a host go.
type VirtualService struct {
	// Hosts that requests ask for. Default: the application's Service, and with a gateway block the hosts of its listeners. Becomes VirtualService spec.hosts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Hosts []string `json:"hosts,omitempty"`
	// Gateways where requests come in, by the name of the Gateway or NAMESPACE/NAME; mesh is every sidecar.
	// Default: mesh, and with a gateway block the application's own gateway too. Becomes VirtualService spec.gateways.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Gateways []string `json:"gateways,omitempty"`
	// Namespaces that see it: "." its own, "*" all. Default: all. Becomes VirtualService spec.exportTo.
	// +optional
	// +listType=set
	Namespaces []string `json:"namespaces,omitempty"`
	// Routes for HTTP; the first that matches counts, and the one without match is placed last. When each has a match and hosts is left out, a last
	// one to the application's Service is added, because other requests would be answered 404. Becomes VirtualService spec.http.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Routes []Route `json:"routes,omitempty"`
	// TLS are routes for TLS that is not ended here, by server name. Becomes VirtualService spec.tls.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	TLS []TLSRoute `json:"tls,omitempty"`
	// TCP are routes for everything else. Becomes VirtualService spec.tcp.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	TCP []TCPRoute `json:"tcp,omitempty"`

	Escape `json:",inline"`
}

// Route says what happens to requests that match.
type Route struct {
	// Name of the route, also in access logs. Becomes VirtualService spec.http[].name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Match are conditions, of which one has to hold. Default: all requests match. Becomes VirtualService spec.http[].match.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Match []Match `json:"match,omitempty"`
	// To is where they go. Default: the application's Service. Becomes VirtualService spec.http[].route.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	To []Destination `json:"to,omitempty"`
	// Redirect answers with another address in place of routing. Becomes VirtualService spec.http[].redirect.
	// +optional
	Redirect *Redirect `json:"redirect,omitempty"`
	// DirectResponse answers at once in place of routing. Becomes VirtualService spec.http[].directResponse.
	// +optional
	DirectResponse *DirectResponse `json:"directResponse,omitempty"`
	// Delegate leaves the rest to another VirtualService in place of routing. Becomes VirtualService spec.http[].delegate.
	// +optional
	Delegate *Delegate `json:"delegate,omitempty"`
	// Rewrite changes path or host before the request goes on. Becomes VirtualService spec.http[].rewrite.
	// +optional
	Rewrite *Rewrite `json:"rewrite,omitempty"`
	// Timeout of a request, with all its retries. Default: none. Becomes VirtualService spec.http[].timeout.
	// +optional
	Timeout Duration `json:"timeout,omitempty"`
	// Retries of a request that failed. Default: those of the mesh, 2. Becomes VirtualService spec.http[].retries.
	// +optional
	Retries *Retries `json:"retries,omitempty"`
	// Mirror sends copies elsewhere, whose answers nobody sees. Becomes VirtualService spec.http[].mirrors.
	// +optional
	Mirror *Mirror `json:"mirror,omitempty"`
	// Fault makes requests slow or fail, to see what callers do. Becomes VirtualService spec.http[].fault.
	// +optional
	Fault *Fault `json:"fault,omitempty"`
	// CORS says which web pages of other origins may call. Becomes VirtualService spec.http[].corsPolicy.
	// +optional
	CORS *CORS `json:"cors,omitempty"`
	// Headers that are changed on the way. Becomes VirtualService spec.http[].headers.
	// +optional
	Headers *Headers `json:"headers,omitempty"`
}

// Match is a condition; all that it says has to hold.
type Match struct {
	// Path is the whole path. Becomes VirtualService spec.http[].match[].uri.exact.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Path string `json:"path,omitempty"`
	// PathPrefix is what the path begins with. Becomes VirtualService spec.http[].match[].uri.prefix.
	// +optional
	// +kubebuilder:validation:MinLength=1
	PathPrefix string `json:"pathPrefix,omitempty"`
	// PathRegex is a regular expression (RE2) for the whole path. Becomes VirtualService spec.http[].match[].uri.regex.
	// +optional
	// +kubebuilder:validation:MinLength=1
	PathRegex string `json:"pathRegex,omitempty"`
	// Method such as GET. Becomes VirtualService spec.http[].match[].method.exact.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Z]+$`
	Method string `json:"method,omitempty"`
	// Scheme is http or https. Becomes VirtualService spec.http[].match[].scheme.exact.
	// +optional
	// +kubebuilder:validation:Enum=http;https
	Scheme string `json:"scheme,omitempty"`
	// Authority is the host that is asked for, as the request has it. Becomes VirtualService spec.http[].match[].authority.exact.
	// +optional
	Authority string `json:"authority,omitempty"`
	// Headers by name in lower case: a text that is the whole value, or one of exact, prefix, regex, present: true, absent: true.
	// Becomes VirtualService spec.http[].match[].headers, and withoutHeaders for absent.
	// +optional
	Headers map[string]apiextensionsv1.JSON `json:"headers,omitempty"`
	// Query parameters by name, as with headers; absent is not there for them. Becomes VirtualService spec.http[].match[].queryParams.
	// +optional
	Query map[string]apiextensionsv1.JSON `json:"query,omitempty"`
	// Port of the host that is asked for. Becomes VirtualService spec.http[].match[].port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// SourceLabels of the caller's pod. Becomes VirtualService spec.http[].match[].sourceLabels.
	// +optional
	SourceLabels map[string]string `json:"sourceLabels,omitempty"`
	// SourceNamespace of the caller. Becomes VirtualService spec.http[].match[].sourceNamespace.
	// +optional
	SourceNamespace string `json:"sourceNamespace,omitempty"`
	// IgnoreCase of letters in path and pathPrefix. Default: false. Becomes VirtualService spec.http[].match[].ignoreUriCase.
	// +optional
	IgnoreCase bool `json:"ignoreCase,omitempty"`
}

// Destination is where traffic goes.
type Destination struct {
	// Host: a name without a dot is a Service in the same namespace. Default: the application's Service. Becomes VirtualService spec.http[].route[].destination.host.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`
	// Version of the host: one of spec.versions or a subset. Default: all. Becomes VirtualService spec.http[].route[].destination.subset.
	// +optional
	Version string `json:"version,omitempty"`
	// Port of the Service; only needed if that has several. Becomes VirtualService spec.http[].route[].destination.port.number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// Weight is its share among the destinations of the route; all have one or none has. Becomes VirtualService spec.http[].route[].weight.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Weight *int32 `json:"weight,omitempty"`
}

// MirrorDestination is where copies go.
type MirrorDestination struct {
	// Host: a name without a dot is a Service in the same namespace. Default: the application's Service. Becomes VirtualService spec.http[].mirrors[].destination.host.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host,omitempty"`
	// Version of the host: one of spec.versions or a subset. Default: all. Becomes VirtualService spec.http[].mirrors[].destination.subset.
	// +optional
	Version string `json:"version,omitempty"`
	// Port of the Service; only needed if that has several. Becomes VirtualService spec.http[].mirrors[].destination.port.number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
}

// TLSRoute says where TLS goes that is not ended here.
type TLSRoute struct {
	// SNIHosts are the server names that callers ask for. Becomes VirtualService spec.tls[].match[].sniHosts.
	// +required
	// +kubebuilder:validation:MinItems=1
	SNIHosts []string `json:"sniHosts"`
	// Port of the host that is asked for. Default: all. Becomes VirtualService spec.tls[].match[].port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// To is where it goes. Default: the application's Service. Becomes VirtualService spec.tls[].route.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	To []Destination `json:"to,omitempty"`
}

// TCPRoute says where connections go.
type TCPRoute struct {
	// Port of the host that is asked for. Default: all. Becomes VirtualService spec.tcp[].match[].port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// SourceLabels of the caller's pod. Becomes VirtualService spec.tcp[].match[].sourceLabels.
	// +optional
	SourceLabels map[string]string `json:"sourceLabels,omitempty"`
	// DestinationCIDRs that the connection was opened to. Becomes VirtualService spec.tcp[].match[].destinationSubnets.
	// +optional
	DestinationCIDRs []string `json:"destinationCidrs,omitempty"`
	// To is where they go. Default: the application's Service. Becomes VirtualService spec.tcp[].route.
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	To []Destination `json:"to,omitempty"`
}
