package analysis

// Codes lists, by the name of each analyzer that [Analyzers] gives, the codes that it can report of a [world.World]. An analyzer that is
// not to be asked has none.
func Codes() map[string][]string {
	return map[string][]string{
		"annotations.K8sAnalyzer":                              {"IST0107", "IST0108", "IST0125", "IST0135"},
		"authn.BlockedCIDRsAnalyzer":                           {"IST0175"},
		"auth.AuthorizationPoliciesAnalyzer":                   {"IST0101", "IST0127"},
		"conditions.ConditionAnalyzer":                         {"IST0171"},
		"deployment.MultiServiceAnalyzer":                      {"IST0116", "IST0137"},
		"applicationUID.Analyzer":                              {"IST0144"},
		"destinationrule.SubsetSelectPodAnalyzer":              {"IST0173", "IST0174"},
		"deprecation.DeprecationAnalyzer":                      {"IST0002"},
		"envoyfilter.EnvoyPatchAnalyzer":                       {"IST0151", "IST0152", "IST0153", "IST0154", "IST0155"},
		"externalcontrolplane.ExternalControlPlaneAnalyzer":    {"IST0163", "IST0164"},
		"gateway.IngressGatewayPortAnalyzer":                   {"IST0101", "IST0162"},
		"gateway.CertificateAnalyzer":                          {"IST0138"},
		"gateway.SecretAnalyzer":                               {"IST0101", "IST0161"},
		"gateway.ConflictingGatewayAnalyzer":                   {"IST0101", "IST0145"},
		"injection.Analyzer":                                   {"IST0102", "IST0123", "IST0148"},
		"injection.ImageAutoAnalyzer":                          {"IST0146"},
		"k8sgateway.SelectorAnalyzer":                          {"IST0166"},
		"k8sgateway.CRDVersionAnalyzer":                        {"IST0176"},
		"meshnetworks.MeshNetworksAnalyzer":                    {"IST0126"},
		"service.PortNameAnalyzer":                             {"IST0118", "IST0150"},
		"sidecar.SelectorAnalyzer":                             {"IST0101", "IST0110", "IST0111", "IST0167"},
		"virtualservice.ConflictingMeshGatewayHostsAnalyzer":   {"IST0109"},
		"virtualservice.DestinationHostAnalyzer":               {"IST0101", "IST0112", "IST0140"},
		"virtualservice.DestinationRuleAnalyzer":               {"IST0101"},
		"virtualservice.GatewayAnalyzer":                       {"IST0101", "IST0132"},
		"virtualservice.JWTClaimRouteAnalyzer":                 {"IST0149"},
		"serviceentry.Analyzer":                                {"IST0134"},
		"serviceentry.ConflictingServiceEntryProtocolAnalyzer": {"IST0177"},
		"webhook.Analyzer":                                     {"IST0139"},
		"telemetry.ProviderAnalyzer":                           {"IST0157"},
		"telemetry.SelectorAnalyzer":                           {"IST0101", "IST0159"},
		"telemetry.DefaultSelectorAnalyzer":                    {"IST0160"},
		"telemetry.LightstepAnalyzer":                          {"IST0002"},
	}
}

// Never lists the codes of the library that no run reports, and why.
func Never() map[string]string {
	const (
		precheck = "only istioctl's precheck reports it, before an installation"
		pods     = "it asks for the spec of running Pods, of which metadata alone is read"
		validate = "it comes from the validation of single objects, whose warnings the rule IST0133 reports"
		trusts   = "the proxies of this version check a server with the certificate authorities of the system where a rule names none"
	)
	return map[string]string{
		"IST0001": "nothing reports it",
		"IST0103": pods,
		"IST0106": "the rule IST0106 reports it",
		"IST0128": trusts,
		"IST0129": trusts,
		"IST0130": validate,
		"IST0131": validate,
		"IST0133": "the rule IST0133 reports it",
		"IST0136": "its analyzer is not among those that Istio runs",
		"IST0141": precheck,
		"IST0142": precheck,
		"IST0143": "nothing reports it",
		"IST0147": pods,
		"IST0156": precheck,
		"IST0158": pods,
		"IST0165": "the rule IST0106 refuses the names that it is about: they hold a ~",
		"IST0168": precheck,
		"IST0169": precheck,
		"IST0170": "it compares several clusters, and a world is one",
		"IST0172": precheck,
	}
}
