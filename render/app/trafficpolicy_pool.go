package app

// TLSSettings of the connections to endpoints.
type TLSSettings struct {
	// Mode is DISABLE (plain text), SIMPLE (TLS), MUTUAL (with a certificate of one's own) or ISTIO_MUTUAL (with Istio's). Becomes DestinationRule spec.trafficPolicy.tls.mode.
	// +required
	// +kubebuilder:validation:Enum=DISABLE;SIMPLE;MUTUAL;ISTIO_MUTUAL
	Mode string `json:"mode"`
	// ClientCertificate is the path of the certificate in the proxy's container, for MUTUAL. Becomes DestinationRule spec.trafficPolicy.tls.clientCertificate.
	// +optional
	ClientCertificate string `json:"clientCertificate,omitempty"`
	// ClientPrivateKey is the path of its key, for MUTUAL. Becomes DestinationRule spec.trafficPolicy.tls.privateKey.
	// +optional
	ClientPrivateKey string `json:"clientPrivateKey,omitempty"`
	// CACertificates is the path of the authorities that the server is held against, for SIMPLE and MUTUAL. Default: those of the system, by Istio.
	// Becomes DestinationRule spec.trafficPolicy.tls.caCertificates.
	// +optional
	CACertificates string `json:"caCertificates,omitempty"`
	// CredentialName is a Secret with certificate, key and authorities, in place of paths. Becomes DestinationRule spec.trafficPolicy.tls.credentialName.
	// +optional
	CredentialName string `json:"credentialName,omitempty"`
	// SNI is the server name that is asked for. Becomes DestinationRule spec.trafficPolicy.tls.sni.
	// +optional
	SNI string `json:"sni,omitempty"`
	// SubjectAltNames of which the server's certificate has to have one. Becomes DestinationRule spec.trafficPolicy.tls.subjectAltNames.
	// +optional
	SubjectAltNames []string `json:"subjectAltNames,omitempty"`
	// InsecureSkipVerify accepts any certificate. Default: false. Becomes DestinationRule spec.trafficPolicy.tls.insecureSkipVerify.
	// +optional
	InsecureSkipVerify *bool `json:"insecureSkipVerify,omitempty"`
}

// EjectionSettings say when an endpoint is left alone for a while.
type EjectionSettings struct {
	// ConsecutiveErrors is how many answers of 5xx in a row eject an endpoint; 0 switches it off. Default: 5. Becomes DestinationRule spec.trafficPolicy.outlierDetection.consecutive5xxErrors.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveErrors *uint32 `json:"consecutiveErrors,omitempty"`
	// Interval between two looks at all endpoints. Default: 10s. Becomes DestinationRule spec.trafficPolicy.outlierDetection.interval.
	// +optional
	Interval Duration `json:"interval,omitempty"`
	// MinimumEjectionTime is how long an endpoint is left alone, times how often it was before. Default: 30s. Becomes DestinationRule spec.trafficPolicy.outlierDetection.baseEjectionTime.
	// +optional
	MinimumEjectionTime Duration `json:"minimumEjectionTime,omitempty"`
	// MaxEjectionPercent of the endpoints that are ejected at most, 0 to 100. Default: 10, by Istio. Becomes DestinationRule spec.trafficPolicy.outlierDetection.maxEjectionPercent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxEjectionPercent int32 `json:"maxEjectionPercent,omitempty"`
	// MinHealthPercent below which nothing is ejected, 0 to 100. Default: 0. Becomes DestinationRule spec.trafficPolicy.outlierDetection.minHealthPercent.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinHealthPercent int32 `json:"minHealthPercent,omitempty"`
	// ConsecutiveGatewayErrors is how many answers of 502, 503 or 504 in a row eject an endpoint. Default: off. Becomes DestinationRule spec.trafficPolicy.outlierDetection.consecutiveGatewayErrors.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveGatewayErrors *uint32 `json:"consecutiveGatewayErrors,omitempty"`
	// ConsecutiveLocalOriginFailures is how many failures to connect in a row eject an endpoint; needs splitLocalOriginErrors. Default: 5, by Istio.
	// Becomes DestinationRule spec.trafficPolicy.outlierDetection.consecutiveLocalOriginFailures.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConsecutiveLocalOriginFailures *uint32 `json:"consecutiveLocalOriginFailures,omitempty"`
	// SplitLocalOriginErrors counts failures to connect apart from answers. Default: false. Becomes DestinationRule spec.trafficPolicy.outlierDetection.splitExternalLocalOriginErrors.
	// +optional
	SplitLocalOriginErrors bool `json:"splitLocalOriginErrors,omitempty"`
}

// ConnectionPoolSettings bound the connections and requests of every caller.
type ConnectionPoolSettings struct {
	// TCPSettings are for all connections. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.
	// +optional
	TCPSettings *TCPSettings `json:"tcpSettings,omitempty"`
	// HTTPSettings are for HTTP requests. Becomes DestinationRule spec.trafficPolicy.connectionPool.http.
	// +optional
	HTTPSettings *HTTPSettings `json:"httpSettings,omitempty"`
}

// TCPSettings are for all connections.
type TCPSettings struct {
	// MaxTCPConnections that a caller opens. Default: no limit. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.maxConnections.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxTCPConnections int32 `json:"maxTcpConnections,omitempty"`
	// ConnectionTimeout is how long opening one may take. Default: 10s. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.connectTimeout.
	// +optional
	ConnectionTimeout Duration `json:"connectionTimeout,omitempty"`
	// Keepalive probes silent connections. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.
	// +optional
	Keepalive *Keepalive `json:"keepalive,omitempty"`
	// MaxConnectionDuration after which a connection is closed. Default: none. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.maxConnectionDuration.
	// +optional
	MaxConnectionDuration Duration `json:"maxConnectionDuration,omitempty"`
	// IdleTimeout after which a silent TCP connection is closed. Default: 1h, by Istio. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.idleTimeout.
	// +optional
	IdleTimeout Duration `json:"idleTimeout,omitempty"`
}

// Keepalive probes silent connections.
type Keepalive struct {
	// Time of silence before the first probe. Default: that of the system. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.time.
	// +optional
	Time Duration `json:"time,omitempty"`
	// Interval between probes. Default: that of the system. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.interval.
	// +optional
	Interval Duration `json:"interval,omitempty"`
	// Probes without an answer before a connection is dead. Default: that of the system. Becomes DestinationRule spec.trafficPolicy.connectionPool.tcp.tcpKeepalive.probes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Probes uint32 `json:"probes,omitempty"`
}

// HTTPSettings are for HTTP requests.
type HTTPSettings struct {
	// MaxPendingHTTPConnections is how many requests wait for a connection. Default: 1024. Becomes DestinationRule spec.trafficPolicy.connectionPool.http.http1MaxPendingRequests.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxPendingHTTPConnections int32 `json:"maxPendingHttpConnections,omitempty"`
	// MaxActiveHTTPConnections is how many requests run at once, for HTTP/1 too. Default: 1024. Becomes DestinationRule spec.trafficPolicy.connectionPool.http.http2MaxRequests.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxActiveHTTPConnections int32 `json:"maxActiveHttpConnections,omitempty"`
	// MaxHTTPRequestsPerConnection after which a connection is closed; 1 switches keep-alive off. Default: no limit.
	// Becomes DestinationRule spec.trafficPolicy.connectionPool.http.maxRequestsPerConnection.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxHTTPRequestsPerConnection int32 `json:"maxHttpRequestsPerConnection,omitempty"`
	// MaxRetries that run at once to all endpoints together. Default: 2^32-1, by Istio. Becomes DestinationRule spec.trafficPolicy.connectionPool.http.maxRetries.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxRetries int32 `json:"maxRetries,omitempty"`
	// IdleTimeout after which a connection without requests is closed. Default: 1h, by Istio. Becomes DestinationRule spec.trafficPolicy.connectionPool.http.idleTimeout.
	// +optional
	IdleTimeout Duration `json:"idleTimeout,omitempty"`
	// H2UpgradePolicy says whether HTTP/1.1 becomes HTTP/2 on the way. Default: that of the mesh. Becomes DestinationRule spec.trafficPolicy.connectionPool.http.h2UpgradePolicy.
	// +optional
	// +kubebuilder:validation:Enum=DEFAULT;DO_NOT_UPGRADE;UPGRADE
	H2UpgradePolicy string `json:"h2UpgradePolicy,omitempty"`
	// UseClientProtocol keeps the protocol of the caller. Default: false. Becomes DestinationRule spec.trafficPolicy.connectionPool.http.useClientProtocol.
	// +optional
	UseClientProtocol bool `json:"useClientProtocol,omitempty"`
}
