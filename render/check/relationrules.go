package check

// writtenRules find what one object says and Istio reads differently. They look at one object at a time.
func writtenRules() []rule {
	return []rule{
		misplacedMatch,
		emptyGatewaySelector,
		envoyRegex,
		retriesOverTimeout,
		slowTryIsTheEnd,
		unevenWeights,
		idleFault,
		faultForAll,
		searchingRegex,
		spiffePrincipal,
	}
}

// relationRules find objects that get in each other's way. They read what is written, and ask no proxy.
func relationRules() []meshRule {
	return []meshRule{
		doubleRule,
		allowNothing,
		tlsAgainstPeers,
		strictAtOnce,
		credentialElsewhere,
		tokenWithoutJWT,
		finishedCanary,
		doubleHost,
		policyPorts,
		stickyWeights,
		httpOnTCP,
		doublePeer,
		denyBeatsAllow,
		peerInRoot,
		identityWithoutTLS,
		tokenNotDemanded,
		hiddenDependency,
	}
}
