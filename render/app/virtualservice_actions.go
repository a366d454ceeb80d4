package app

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// Redirect answers with another address.
type Redirect struct {
	// Host of the other address. Default: as it was. Becomes VirtualService spec.http[].redirect.authority.
	// +optional
	Host string `json:"host,omitempty"`
	// Path of the other address. Default: as it was. Becomes VirtualService spec.http[].redirect.uri.
	// +optional
	Path string `json:"path,omitempty"`
	// Port of the other address. Default: that of the scheme, by Istio. Becomes VirtualService spec.http[].redirect.port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port,omitempty"`
	// Scheme is http or https. Default: as it was. Becomes VirtualService spec.http[].redirect.scheme.
	// +optional
	// +kubebuilder:validation:Enum=http;https
	Scheme string `json:"scheme,omitempty"`
	// Code of the answer. Default: 301, by Istio. Becomes VirtualService spec.http[].redirect.redirectCode.
	// +optional
	// +kubebuilder:validation:Enum=301;302;303;307;308
	Code uint32 `json:"code,omitempty"`
}

// DirectResponse answers at once.
type DirectResponse struct {
	// Status of the answer, 200 to 599. Becomes VirtualService spec.http[].directResponse.status.
	// +required
	// +kubebuilder:validation:Minimum=200
	// +kubebuilder:validation:Maximum=599
	Status uint32 `json:"status"`
	// Body of the answer as text. Default: none. Becomes VirtualService spec.http[].directResponse.body.string.
	// +optional
	Body string `json:"body,omitempty"`
}

// Delegate names another VirtualService, which has no hosts.
type Delegate struct {
	// Name of the VirtualService. Becomes VirtualService spec.http[].delegate.name.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Namespace of the VirtualService. Default: the same. Becomes VirtualService spec.http[].delegate.namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// Rewrite changes path or host.
type Rewrite struct {
	// Path takes the place of the path, or of the prefix that matched. Becomes VirtualService spec.http[].rewrite.uri.
	// +optional
	Path string `json:"path,omitempty"`
	// Host takes the place of the host. Becomes VirtualService spec.http[].rewrite.authority.
	// +optional
	Host string `json:"host,omitempty"`
}

// Retries of a request that failed.
type Retries struct {
	// Attempts after the first one; 0 switches retries off, and what else is said of them with it. Becomes VirtualService spec.http[].retries.attempts.
	// +required
	// +kubebuilder:validation:Minimum=0
	Attempts int32 `json:"attempts"`
	// PerTryTimeout of one attempt. Default: the timeout of the route. Becomes VirtualService spec.http[].retries.perTryTimeout.
	// +optional
	PerTryTimeout Duration `json:"perTryTimeout,omitempty"`
	// RetryOn are the failures that are tried again, such as connect-failure, refused-stream, 503. Default: those of the mesh.
	// Becomes VirtualService spec.http[].retries.retryOn.
	// +optional
	// +kubebuilder:validation:MinItems=1
	RetryOn []string `json:"retryOn,omitempty"`
}

// Mirror sends copies of requests.
type Mirror struct {
	// To is where copies go. Becomes VirtualService spec.http[].mirrors[].destination.
	// +required
	To MirrorDestination `json:"to"`
	// Percent of the requests, 0 to 100. Default: 100. Becomes VirtualService spec.http[].mirrors[].percentage.value.
	// +optional
	Percent *Percent `json:"percent,omitempty"`
}

// Fault makes requests slow or fail.
//
// +kubebuilder:validation:MinProperties=1
type Fault struct {
	// Delay makes requests wait. Becomes VirtualService spec.http[].fault.delay.
	// +optional
	Delay *FaultDelay `json:"delay,omitempty"`
	// Abort answers requests with a failure. Becomes VirtualService spec.http[].fault.abort.
	// +optional
	Abort *FaultAbort `json:"abort,omitempty"`
}

// FaultDelay makes requests wait.
type FaultDelay struct {
	// Percent of the requests, 0 to 100. Default: 100. Becomes VirtualService spec.http[].fault.delay.percentage.value.
	// +optional
	Percent *Percent `json:"percent,omitempty"`
	// Duration of the wait. Becomes VirtualService spec.http[].fault.delay.fixedDelay.
	// +required
	Duration Duration `json:"duration"`
}

// FaultAbort answers requests with a failure.
//
// +kubebuilder:validation:XValidation:rule="has(self.status) != has(self.grpcStatus)",message="write exactly one of status and grpcStatus"
type FaultAbort struct {
	// Percent of the requests, 0 to 100. Default: 100. Becomes VirtualService spec.http[].fault.abort.percentage.value.
	// +optional
	Percent *Percent `json:"percent,omitempty"`
	// Status of the answer, 200 to 599. Becomes VirtualService spec.http[].fault.abort.httpStatus.
	// +optional
	// +kubebuilder:validation:Minimum=200
	// +kubebuilder:validation:Maximum=599
	Status int32 `json:"status,omitempty"`
	// GRPCStatus is a name such as UNAVAILABLE. Becomes VirtualService spec.http[].fault.abort.grpcStatus.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Z_]+$`
	GRPCStatus string `json:"grpcStatus,omitempty"`
}

// CORS says which web pages of other origins may call.
type CORS struct {
	// AllowOrigins: a text that is the whole origin, or one of exact, prefix, regex. Becomes VirtualService spec.http[].corsPolicy.allowOrigins.
	// +optional
	AllowOrigins []apiextensionsv1.JSON `json:"allowOrigins,omitempty"`
	// AllowMethods such as GET. Becomes VirtualService spec.http[].corsPolicy.allowMethods.
	// +optional
	AllowMethods []string `json:"allowMethods,omitempty"`
	// AllowHeaders that callers may send. Becomes VirtualService spec.http[].corsPolicy.allowHeaders.
	// +optional
	AllowHeaders []string `json:"allowHeaders,omitempty"`
	// ExposeHeaders that pages may read. Becomes VirtualService spec.http[].corsPolicy.exposeHeaders.
	// +optional
	ExposeHeaders []string `json:"exposeHeaders,omitempty"`
	// MaxAge is how long a browser remembers the answer. Becomes VirtualService spec.http[].corsPolicy.maxAge.
	// +optional
	MaxAge Duration `json:"maxAge,omitempty"`
	// AllowCredentials such as cookies. Default: false. Becomes VirtualService spec.http[].corsPolicy.allowCredentials.
	// +optional
	AllowCredentials *bool `json:"allowCredentials,omitempty"`
}

// Headers that are changed on the way.
type Headers struct {
	// Request headers, before the request goes on. Becomes VirtualService spec.http[].headers.request.
	// +optional
	Request *HeaderChanges `json:"request,omitempty"`
	// Response headers, before the answer goes back. Becomes VirtualService spec.http[].headers.response.
	// +optional
	Response *HeaderChanges `json:"response,omitempty"`
}

// HeaderChanges say how headers are changed.
type HeaderChanges struct {
	// Set gives headers these values in place of what they have. Becomes VirtualService spec.http[].headers set.
	// +optional
	Set map[string]string `json:"set,omitempty"`
	// Add gives headers these values beside what they have. Becomes VirtualService spec.http[].headers add.
	// +optional
	Add map[string]string `json:"add,omitempty"`
	// Remove are headers that are taken away. Becomes VirtualService spec.http[].headers remove.
	// +optional
	Remove []string `json:"remove,omitempty"`
}
