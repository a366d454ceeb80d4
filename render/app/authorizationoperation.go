package app

import "k8s.io/apimachinery/pkg/util/intstr"

// AuthorizationOperation matches requests for which all of its attributes hold. An attribute holds when one of its values does, one with not when none does.
// All but ports are for HTTP: an ALLOW rule with them matches no TCP connection, and a DENY rule without ports refuses all of them.
type AuthorizationOperation struct {
	// Methods in capitals, such as GET; that of gRPC is always POST. Becomes an AuthorizationPolicy's spec.rules[].to[].operation.methods.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Methods []string `json:"methods,omitempty"`
	// NotMethods are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].to[].operation.notMethods.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotMethods []string `json:"notMethods,omitempty"`
	// Paths without the query: /exact, /prefix*, *suffix, or with {*} for one segment and {**} for the rest, such as /users/{*}/orders. That of gRPC is /package.Service/Method.
	// Becomes an AuthorizationPolicy's spec.rules[].to[].operation.paths.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Paths []string `json:"paths,omitempty"`
	// NotPaths are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].to[].operation.notPaths.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotPaths []string `json:"notPaths,omitempty"`
	// Ports that the container listens on (the Service's targetPort, not its port). Becomes an AuthorizationPolicy's spec.rules[].to[].operation.ports.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Ports []intstr.IntOrString `json:"ports,omitempty"`
	// NotPorts are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].to[].operation.notPorts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotPorts []intstr.IntOrString `json:"notPorts,omitempty"`
	// Hosts of requests, with the port if it is not 80 or 443; a * stands at the beginning or the end. Meant for gateways.
	// Becomes an AuthorizationPolicy's spec.rules[].to[].operation.hosts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Hosts []string `json:"hosts,omitempty"`
	// NotHosts are those that do not match. Becomes an AuthorizationPolicy's spec.rules[].to[].operation.notHosts.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotHosts []string `json:"notHosts,omitempty"`
}

// AuthorizationCondition is a condition on an attribute of the request. It has values, notValues or both.
type AuthorizationCondition struct {
	// Key of the attribute, such as request.headers[user-agent] or request.auth.claims[groups]: see Istio's authorization policy conditions.
	// Becomes an AuthorizationPolicy's spec.rules[].when[].key.
	// +required
	// +kubebuilder:validation:MinLength=1
	Key string `json:"key"`
	// Values of which one has to match. Becomes an AuthorizationPolicy's spec.rules[].when[].values.
	// +optional
	// +kubebuilder:validation:MinItems=1
	Values []string `json:"values,omitempty"`
	// NotValues of which none may match. Becomes an AuthorizationPolicy's spec.rules[].when[].notValues.
	// +optional
	// +kubebuilder:validation:MinItems=1
	NotValues []string `json:"notValues,omitempty"`
}
