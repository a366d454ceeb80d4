package app

// TrafficPolicy says how callers treat endpoints.
type TrafficPolicy struct {
	PolicySettings `json:",inline"`
	// Ports have settings of their own, which replace all of the above for the port. Becomes DestinationRule spec.trafficPolicy.portLevelSettings.
	// +optional
	// +listType=map
	// +listMapKey=port
	// +kubebuilder:validation:MaxItems=16
	Ports []PortPolicy `json:"ports,omitempty"`
}

// PortPolicy is the policy of one port.
type PortPolicy struct {
	// Port of the Service. Becomes DestinationRule spec.trafficPolicy.portLevelSettings[].port.number.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port uint32 `json:"port"`

	PolicySettings `json:",inline"`
}

// PolicySettings are what a policy holds for all ports or for one.
type PolicySettings struct {
	// LoadBalancerSettings say which endpoint gets the next request. Becomes DestinationRule spec.trafficPolicy.loadBalancer.
	// +optional
	LoadBalancerSettings *LoadBalancerSettings `json:"loadBalancerSettings,omitempty"`
	// TLSSettings of the connections to the endpoints. Inside of the mesh Istio chooses mutual TLS by itself. Becomes DestinationRule spec.trafficPolicy.tls.
	// +optional
	TLSSettings *TLSSettings `json:"tlsSettings,omitempty"`
	// EjectionSettings say when an endpoint that fails is left alone for a while. Becomes DestinationRule spec.trafficPolicy.outlierDetection.
	// +optional
	EjectionSettings *EjectionSettings `json:"ejectionSettings,omitempty"`
	// ConnectionPoolSettings bound the connections and requests of every caller. Becomes DestinationRule spec.trafficPolicy.connectionPool.
	// +optional
	ConnectionPoolSettings *ConnectionPoolSettings `json:"connectionPoolSettings,omitempty"`
}

// LoadBalancerSettings say which endpoint gets the next request.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.strategy) && has(self.consistentHash))",message="strategy and consistentHash exclude each other: leave one of them out"
type LoadBalancerSettings struct {
	// Strategy is a simple way to choose; LEAST_CONN is the old name of LEAST_REQUEST. Default: LEAST_REQUEST, by Istio.
	// Becomes DestinationRule spec.trafficPolicy.loadBalancer.simple.
	// +optional
	// +kubebuilder:validation:Enum=ROUND_ROBIN;LEAST_REQUEST;LEAST_CONN;PASSTHROUGH;RANDOM
	Strategy string `json:"strategy,omitempty"`
	// ConsistentHash keeps requests that have something in common on one endpoint. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.
	// +optional
	ConsistentHash *ConsistentHash `json:"consistentHash,omitempty"`
	// Warmup gives a new endpoint its share slowly. Becomes DestinationRule spec.trafficPolicy.loadBalancer.warmup.
	// +optional
	Warmup *Warmup `json:"warmup,omitempty"`
	// Locality says which regions and zones get the traffic. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.
	// +optional
	Locality *Locality `json:"locality,omitempty"`
}

// ConsistentHash names what requests of one endpoint have in common.
//
// +kubebuilder:validation:XValidation:rule="[has(self.httpHeaderName), has(self.httpCookie), has(self.useSourceIp) && self.useSourceIp, has(self.httpQueryParameterName)].filter(x, x).size() == 1",message="write exactly one of httpHeaderName, httpCookie, useSourceIp and httpQueryParameterName"
// +kubebuilder:validation:XValidation:rule="!(has(self.ringHash) && has(self.maglev))",message="ringHash and maglev exclude each other: leave one of them out"
type ConsistentHash struct {
	// HTTPHeaderName is the header whose value counts. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.httpHeaderName.
	// +optional
	// +kubebuilder:validation:MinLength=1
	HTTPHeaderName string `json:"httpHeaderName,omitempty"`
	// HTTPCookie counts, and is set where it is missing. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.
	// +optional
	HTTPCookie *HTTPCookie `json:"httpCookie,omitempty"`
	// UseSourceIP makes the caller's address count. Default: false. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.useSourceIp.
	// +optional
	UseSourceIP bool `json:"useSourceIp,omitempty"`
	// HTTPQueryParameterName is the query parameter whose value counts. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.httpQueryParameterName.
	// +optional
	// +kubebuilder:validation:MinLength=1
	HTTPQueryParameterName string `json:"httpQueryParameterName,omitempty"`
	// RingHash is the way to hash unless maglev is written. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.ringHash.
	// +optional
	RingHash *RingHash `json:"ringHash,omitempty"`
	// Maglev is a faster way to hash that moves more requests when endpoints change. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.maglev.
	// +optional
	Maglev *Maglev `json:"maglev,omitempty"`
}

// HTTPCookie is a cookie that keeps a caller on one endpoint.
type HTTPCookie struct {
	// Name of the cookie. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.name.
	// +required
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
	// Path for which the cookie is set. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.path.
	// +optional
	Path string `json:"path,omitempty"`
	// TTL is how long the cookie lives; 0s is until the browser closes. Default: 0s. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.httpCookie.ttl.
	// +optional
	TTL Duration `json:"ttl,omitempty"`
}

// RingHash configures the hash ring.
type RingHash struct {
	// MinimumRingSize is the least number of places on the ring. Default: 1024, by Istio. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.ringHash.minimumRingSize.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8388608
	MinimumRingSize int64 `json:"minimumRingSize,omitempty"`
}

// Maglev configures the Maglev table.
type Maglev struct {
	// TableSize is a prime number. Default: 65537, by Istio. Becomes DestinationRule spec.trafficPolicy.loadBalancer.consistentHash.maglev.tableSize.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000011
	TableSize int64 `json:"tableSize,omitempty"`
}

// Warmup gives a new endpoint its share slowly.
type Warmup struct {
	// Duration until a new endpoint has its full share. Becomes DestinationRule spec.trafficPolicy.loadBalancer.warmup.duration.
	// +required
	Duration Duration `json:"duration"`
	// MinimumPercent of its share that an endpoint starts with, 0 to 100. Default: 10, by Istio. Becomes DestinationRule spec.trafficPolicy.loadBalancer.warmup.minimumPercent.
	// +optional
	MinimumPercent *Percent `json:"minimumPercent,omitempty"`
	// Aggression bends the line: 1 is straight, more is faster at first. Default: 1, by Istio. Becomes DestinationRule spec.trafficPolicy.loadBalancer.warmup.aggression.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Aggression *int32 `json:"aggression,omitempty"`
}

// Locality says which regions and zones get the traffic. Failover needs ejectionSettings, without which no endpoint is ever found to be bad.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.distribute) && (has(self.failover) || has(self.failoverPriority)))",message="distribute excludes failover and failoverPriority: leave one of them out"
type Locality struct {
	// Failover says which region follows when one has no healthy endpoint. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.failover.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Failover []Failover `json:"failover,omitempty"`
	// FailoverPriority are labels; endpoints that share more of the first ones with the caller come first. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.failoverPriority.
	// +optional
	FailoverPriority []string `json:"failoverPriority,omitempty"`
	// Distribute shares traffic among localities by weight. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.distribute.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	Distribute []Distribute `json:"distribute,omitempty"`
	// Enabled switches it on or off whatever the mesh says. Default: that of the mesh. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.enabled.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// Failover names a region and the one that follows.
type Failover struct {
	// From is the region of the caller. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.failover[].from.
	// +required
	// +kubebuilder:validation:MinLength=1
	From string `json:"from"`
	// To is the region that follows. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.failover[].to.
	// +required
	// +kubebuilder:validation:MinLength=1
	To string `json:"to"`
}

// Distribute shares the traffic of one locality.
type Distribute struct {
	// From is the locality of the caller, such as region/zone/*. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[].from.
	// +required
	// +kubebuilder:validation:MinLength=1
	From string `json:"from"`
	// To are percentages by locality; they add up to 100. Becomes DestinationRule spec.trafficPolicy.loadBalancer.localityLbSetting.distribute[].to.
	// +required
	// +kubebuilder:validation:MinProperties=1
	To map[string]uint32 `json:"to"`
}
