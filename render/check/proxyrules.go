package check

// proxyRules find what a proxy would make of the mesh, by Istio's own generator of its configuration.
func proxyRules() []meshRule {
	return []meshRule{
		routeToNothing,
		shadowedRoute,
		hiddenByExport,
		hiddenDestination,
		sharedHost,
		unreachedRoute,
	}
}
