package check

// analyzerRules are the codes of Istio's own analyzers, with what there is to say of them. The numbers, the levels and the meaning are Istio's
// (https://istio.io/latest/docs/reference/config/analysis/). IST0106 and IST0133 are rules on single objects and not among them.
func analyzerRules() []Rule {
	var all []Rule
	all = append(all, routingCodes()...)
	all = append(all, gatewayCodes()...)
	all = append(all, policyCodes()...)
	all = append(all, workloadCodes()...)
	all = append(all, installationCodes()...)
	return append(all, envoyFilterCodes()...)
}

// analyzerRule finds the rule of a code that an analyzer reported.
func analyzerRule(code string) (Rule, bool) {
	for _, r := range analyzerRules() {
		if r.Code == code {
			return r, true
		}
	}
	return Rule{}, false
}

// routingCodes are about VirtualServices, DestinationRules and ServiceEntries.
func routingCodes() []Rule {
	return []Rule{
		{
			Code: "IST0101", Level: Error,
			Title: "refers to something that does not exist",
			Mend:  "correct the name, or add what it refers to in the same commit",
		},
		{
			Code: "IST0109", Level: Error,
			Title: "several VirtualServices route one host inside the mesh",
			Mend:  "put the routes of the host into one VirtualService, or keep the others to other namespaces with exportTo",
		},
		{
			Code: "IST0112", Level: Error,
			Title: "routes to a Service with several ports and names none",
			Mend:  "add port.number to the destination",
		},
		{
			Code: "IST0134", Level: Warning,
			Title: "a TCP ServiceEntry without addresses takes all traffic of its port",
			Mend:  "list the addresses of the service in spec.addresses, or have istiod allocate some",
		},
		{
			Code: "IST0140", Level: Warning,
			Title: "subsets of a VirtualService do not count for what enters through a gateway",
			Mend:  "name the subset in the route of the gateway's VirtualService too",
		},
		{
			Code: "IST0173", Level: Error,
			Title: "a subset selects no Pod",
			Mend:  "correct the labels of the subset, or drop it and the routes to it",
		},
		{
			Code: "IST0174", Level: Warning,
			Title: "a DestinationRule is for a host that does not exist",
			Mend:  "correct spec.host; a short name is looked for in the DestinationRule's own namespace",
		},
		{
			Code: "IST0177", Level: Warning,
			Title: "ServiceEntries disagree on the protocol of a port",
			Mend:  "give the port the same protocol in all of them, or keep them apart with exportTo",
		},
		{
			Code: "IST0002", Level: Warning,
			Title: "uses what Istio is about to drop",
			Mend:  "write what the message names instead",
		},
	}
}

// gatewayCodes are about Gateways and what is bound to them.
func gatewayCodes() []Rule {
	return []Rule{
		{
			Code: "IST0132", Level: Warning,
			Title: "the gateway of a VirtualService does not serve its hosts",
			Mend:  "add the host to a server of the Gateway, or bind the VirtualService to another",
		},
		{
			Code: "IST0138", Level: Warning,
			Title: "one certificate is served by several Gateways",
			Mend:  "put the hosts of the certificate into one server of one Gateway: browsers reuse a connection for all hosts of its certificate, and get 404 for those of the other Gateway",
		},
		{
			Code: "IST0145", Level: Error,
			Title: "Gateways serve the same host on the same port of the same Pods",
			Mend:  "keep the host in one of them; only the oldest counts",
		},
		{
			Code: "IST0149", Level: Error,
			Title: "routes by a claim of a token that nobody checks",
			Mend:  "add a RequestAuthentication that selects the gateway's Pods; without one the claim never matches",
		},
		{
			Code: "IST0161", Level: Error,
			Title: "the Secret of a Gateway holds no certificate that can be used",
			Mend:  "put a certificate and its key into the Secret, as tls.crt and tls.key",
		},
		{
			Code: "IST0162", Level: Warning,
			Title: "a Gateway listens on a port that no Service leads to",
			Mend:  "add the port to the Service of the gateway's Pods, or listen on one that it has",
		},
	}
}

// policyCodes are about what selects workloads to set rules for them.
func policyCodes() []Rule {
	return []Rule{
		{
			Code: "IST0110", Level: Error,
			Title: "several Sidecars select the same workload",
			Mend:  "select every workload with one Sidecar only; which of several counts is not defined",
		},
		{
			Code: "IST0111", Level: Error,
			Title: "several Sidecars of a namespace select no workload in particular",
			Mend:  "keep one of them without a workloadSelector",
		},
		{
			Code: "IST0127", Level: Warning,
			Title: "an AuthorizationPolicy selects no workload of the mesh",
			Mend:  "correct the selector; the policy is for Pods of its own namespace that have a proxy",
		},
		{
			Code: "IST0157", Level: Warning,
			Title: "a Telemetry asks for access logs and names no provider",
			Mend:  "name a provider in accessLogging, or set defaultProviders.accessLogging in the mesh configuration",
		},
		{
			Code: "IST0159", Level: Error,
			Title: "several Telemetries select the same workload",
			Mend:  "select every workload with one Telemetry only; which of several counts is not defined",
		},
		{
			Code: "IST0160", Level: Error,
			Title: "several Telemetries of a namespace select no workload in particular",
			Mend:  "keep one of them without a selector",
		},
		{
			Code: "IST0166", Level: Warning,
			Title: "a selector is no way to choose a Gateway API gateway",
			Mend:  "name the Gateway in targetRefs instead",
		},
		{
			Code: "IST0167", Level: Warning,
			Title: "a Sidecar is for workloads that have no sidecar",
			Mend:  "drop it: workloads in ambient mode do not read it",
		},
	}
}

// workloadCodes are about Kubernetes' own objects.
func workloadCodes() []Rule {
	return []Rule{
		{
			Code: "IST0102", Level: Info,
			Title: "the workloads of a namespace get no proxy",
			Mend:  "label the namespace istio-injection: enabled or istio.io/rev, or istio-injection: disabled to say that it is meant",
		},
		{
			Code: "IST0107", Level: Warning,
			Title: "an annotation of Istio's is on the wrong kind of object",
			Mend:  "move it to a kind that the message names; here nobody reads it",
		},
		{
			Code: "IST0108", Level: Warning,
			Title: "Istio has no such annotation",
			Mend:  "correct the name (https://istio.io/latest/docs/reference/config/annotations/)",
		},
		{
			Code: "IST0116", Level: Warning,
			Title: "Services of one Deployment use a port with different protocols",
			Mend:  "use another port number for one of them",
		},
		{
			Code: "IST0118", Level: Info,
			Title: "the name of a port does not say its protocol",
			Mend:  "begin it with the protocol, as in http-api, or set appProtocol; else the proxy guesses from the first bytes",
		},
		{
			Code: "IST0123", Level: Warning,
			Title: "the labels of a namespace disagree on how it joins the mesh",
			Mend:  "keep one of them",
		},
		{
			Code: "IST0125", Level: Warning,
			Title: "an annotation has a value that Istio does not understand",
			Mend:  "correct the value (https://istio.io/latest/docs/reference/config/annotations/)",
		},
		{
			Code: "IST0135", Level: Info,
			Title: "an annotation is about to be dropped",
			Mend:  "use what replaces it (https://istio.io/latest/docs/reference/config/annotations/)",
		},
		{
			Code: "IST0137", Level: Warning,
			Title: "Services of one Deployment lead different ports to one",
			Mend:  "use the same port number in the Services, or different target ports",
		},
		{
			Code: "IST0144", Level: Warning,
			Title: "a container runs as the user of the proxy",
			Mend:  "run it as another user than 1337: what that user sends is not taken by the proxy",
		},
		{
			Code: "IST0146", Level: Warning,
			Title: "a proxy's image is to be filled in, and nobody does",
			Mend:  "label the namespace or the Pod template for injection, as gateways are (sidecar.istio.io/inject: \"true\")",
		},
		{
			Code: "IST0148", Level: Info,
			Title: "the workloads of a namespace get a proxy without a label that says so",
			Mend:  "label the namespace istio-injection: enabled or disabled to say what is meant",
		},
		{
			Code: "IST0150", Level: Warning,
			Title: "a port of an ExternalName Service is named tcp",
			Mend:  "name its protocol, such as tls or http: a TCP port takes all traffic of its number",
		},
		{
			Code: "IST0171", Level: Warning,
			Title: "a controller says that an object does not work",
			Mend:  "see the object's status.conditions",
		},
	}
}

// installationCodes are about Istio's own installation.
func installationCodes() []Rule {
	return []Rule{
		{
			Code: "IST0126", Level: Error,
			Title: "a network names a registry that does not exist",
			Mend:  "name Kubernetes, or a cluster that istiod has a Secret for",
		},
		{
			Code: "IST0139", Level: Error,
			Title: "an injection webhook is wrong",
			Mend:  "keep one webhook for each revision and label, and have it call a Service that exists",
		},
		{
			Code: "IST0163", Level: Warning,
			Title: "a webhook calls a control plane at no address",
			Mend:  "correct the URL of the webhook",
		},
		{
			Code: "IST0164", Level: Info,
			Title: "a webhook calls a control plane by an IP address",
			Mend:  "use a host name, which can move",
		},
		{
			Code: "IST0175", Level: Warning,
			Title: "istiod fetches token keys from wherever it is told to",
			Mend:  "set BLOCKED_CIDRS_IN_JWKS_URIS on istiod, so that a RequestAuthentication cannot make it call inner addresses",
		},
		{
			Code: "IST0176", Level: Warning,
			Title: "a definition of the Gateway API is too old for istiod",
			Mend:  "install the newer definitions; until then istiod does not read objects of the kind",
		},
	}
}

// envoyFilterCodes are about EnvoyFilters.
func envoyFilterCodes() []Rule {
	return []Rule{
		{
			Code: "IST0151", Level: Warning,
			Title: "an EnvoyFilter patches relative to others and has no priority",
			Mend:  "set spec.priority, or use INSERT_FIRST or ADD: else the patch is lost when what it refers to comes later",
		},
		{
			Code: "IST0152", Level: Error,
			Title: "REPLACE is used for something that cannot be replaced",
			Mend:  "use MERGE, or REPLACE for HTTP_FILTER, NETWORK_FILTER and VIRTUAL_HOST alone",
		},
		{
			Code: "IST0153", Level: Error,
			Title: "ADD is used for something that nothing can be added to",
			Mend:  "use INSERT_FIRST or another INSERT for routes, MERGE for a route configuration",
		},
		{
			Code: "IST0154", Level: Error,
			Title: "REMOVE is used for something that cannot be removed",
			Mend:  "use MERGE: routes and route configurations are made anew with each push",
		},
		{
			Code: "IST0155", Level: Warning,
			Title: "an EnvoyFilter for one proxy version patches relative to others and has no priority",
			Mend:  "set spec.priority, or use INSERT_FIRST or ADD: else the patch may be lost during an upgrade",
		},
	}
}
