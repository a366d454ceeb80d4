package render

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	istioNetworking = "networking.istio.io"
	istioSecurity   = "security.istio.io"
	istioExtensions = "extensions.istio.io"
	istioTelemetry  = "telemetry.istio.io"
	gatewayAPI      = "gateway.networking.k8s.io"
	mooringAPI      = "mooring.dev"
)

// link is a field that names other objects.
type link struct {
	path []string // "[]" is every item of a list
	to   refer
}

// refer gives what a value that names an object has to be now, and whether that is something else.
type refer func(n *names, from *named, v any) (any, bool)

// links are the fields by the kind that has them, from the reference pages of Istio (istio.io/latest/docs/reference/config) and of the
// Gateway API (gateway-api.sigs.k8s.io/reference/spec). Hosts of a ServiceEntry are no names of objects, and so are not here.
func links() map[schema.GroupKind][]link {
	all := map[schema.GroupKind][]link{}
	on := func(group, kind string, to refer, paths ...string) {
		gk := schema.GroupKind{Group: group, Kind: kind}
		for _, p := range paths {
			all[gk] = append(all[gk], link{strings.Split(strings.ReplaceAll(p, "[]", ".[]"), "."), to})
		}
	}
	istioLinks(on)
	gatewayLinks(on)
	applicationLinks(on)
	own := schema.GroupKind{Group: mooringAPI, Kind: "AppConfiguration"}
	for _, b := range blocks() {
		for _, l := range all[schema.GroupKind{Group: b.group, Kind: b.kind}] {
			for _, escape := range []string{"raw", "patch"} {
				at := append(strings.Split(strings.ReplaceAll("spec."+b.field, "[]", ".[]"), "."), escape)
				all[own] = append(all[own], link{append(at, l.path[1:]...), l.to})
			}
		}
	}
	return all
}

// block is a part of an AppConfiguration that becomes one of Istio's kinds, and may have that kind's own fields under raw and patch.
type block struct{ field, group, kind string }

func blocks() []block {
	return []block{
		{"destinationRule", istioNetworking, "DestinationRule"},
		{"virtualService", istioNetworking, "VirtualService"},
		{"gateway", istioNetworking, "Gateway"},
		{"sidecar", istioNetworking, "Sidecar"},
		{"workloadEntries[]", istioNetworking, "WorkloadEntry"},
		{"workloadGroups[]", istioNetworking, "WorkloadGroup"},
		{"envoyFilters[]", istioNetworking, "EnvoyFilter"},
		{"authorizationPolicy", istioSecurity, "AuthorizationPolicy"},
		{"authorizationPolicies[]", istioSecurity, "AuthorizationPolicy"},
		{"requestAuthentication", istioSecurity, "RequestAuthentication"},
		{"telemetry", istioTelemetry, "Telemetry"},
		{"wasmPlugins[]", istioExtensions, "WasmPlugin"},
	}
}

type onFields func(group, kind string, to refer, paths ...string)

func istioLinks(on onFields) {
	service := host(schema.GroupKind{Kind: "Service"})
	secret := short(schema.GroupKind{Kind: "Secret"}, false)
	account := short(schema.GroupKind{Kind: "ServiceAccount"}, false)
	on(istioNetworking, "VirtualService", service, "spec.hosts[]",
		"spec.http[].route[].destination.host", "spec.http[].mirror.host", "spec.http[].mirrors[].destination.host",
		"spec.tcp[].route[].destination.host", "spec.tls[].route[].destination.host")
	on(istioNetworking, "VirtualService", gateway, "spec.gateways[]", "spec.http[].match[].gateways[]", "spec.tcp[].match[].gateways[]", "spec.tls[].match[].gateways[]")
	on(istioNetworking, "VirtualService", mapped(schema.GroupKind{Group: istioNetworking, Kind: "VirtualService"}), "spec.http[].delegate")
	on(istioNetworking, "DestinationRule", service, "spec.host")
	on(istioNetworking, "DestinationRule", credential, "spec.trafficPolicy.tls.credentialName", "spec.trafficPolicy.portLevelSettings[].tls.credentialName",
		"spec.subsets[].trafficPolicy.tls.credentialName", "spec.subsets[].trafficPolicy.portLevelSettings[].tls.credentialName")
	on(istioNetworking, "Gateway", credential, "spec.servers[].tls.credentialName", "spec.servers[].tls.credentialNames[]", "spec.servers[].tls.caCertCredentialName")
	on(istioNetworking, "Sidecar", scoped, "spec.egress[].hosts[]")
	on(istioNetworking, "Sidecar", credential, "spec.ingress[].tls.credentialName")
	on(istioNetworking, "Sidecar", service, "spec.outboundTrafficPolicy.egressProxy.host")
	on(istioNetworking, "ServiceEntry", account, "spec.endpoints[].serviceAccount")
	on(istioNetworking, "WorkloadEntry", account, "spec.serviceAccount")
	on(istioNetworking, "WorkloadGroup", account, "spec.template.serviceAccount")
	attached := typed(schema.GroupKind{})
	on(istioNetworking, "EnvoyFilter", attached, "spec.targetRefs[]")
	for _, kind := range []string{"AuthorizationPolicy", "RequestAuthentication"} {
		on(istioSecurity, kind, attached, "spec.targetRef", "spec.targetRefs[]")
	}
	on(istioSecurity, "AuthorizationPolicy", caller, "spec.rules[].from[].source.serviceAccounts[]", "spec.rules[].from[].source.notServiceAccounts[]")
	on(istioSecurity, "AuthorizationPolicy", principal, "spec.rules[].from[].source.principals[]", "spec.rules[].from[].source.notPrincipals[]")
	on(istioTelemetry, "Telemetry", attached, "spec.targetRef", "spec.targetRefs[]")
	on(istioExtensions, "WasmPlugin", attached, "spec.targetRef", "spec.targetRefs[]")
	on(istioExtensions, "WasmPlugin", secret, "spec.imagePullSecret")
	on(istioExtensions, "TrafficExtension", attached, "spec.targetRefs[]")
	on(istioExtensions, "TrafficExtension", secret, "spec.wasm.imagePullSecret")
}

func gatewayLinks(on onFields) {
	parent := typed(schema.GroupKind{Group: gatewayAPI, Kind: "Gateway"})
	backend := typed(schema.GroupKind{Kind: "Service"})
	for _, kind := range []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"} {
		on(gatewayAPI, kind, parent, "spec.parentRefs[]")
		on(gatewayAPI, kind, backend, "spec.rules[].backendRefs[]", "spec.rules[].filters[].requestMirror.backendRef")
	}
	on(gatewayAPI, "Gateway", typed(schema.GroupKind{Kind: "Secret"}), "spec.listeners[].tls.certificateRefs[]")
}

// applicationLinks are those of AppConfiguration.
func applicationLinks(on onFields) {
	service := host(schema.GroupKind{Kind: "Service"})
	on(mooringAPI, "AppConfiguration", service, "spec.destinationRule.host", "spec.virtualService.hosts[]",
		"spec.virtualService.routes[].to[].host", "spec.virtualService.routes[].mirror.to.host", "spec.virtualService.tls[].to[].host", "spec.virtualService.tcp[].to[].host")
	on(mooringAPI, "AppConfiguration", mapped(schema.GroupKind{Group: istioNetworking, Kind: "VirtualService"}), "spec.virtualService.routes[].delegate")
	on(mooringAPI, "AppConfiguration", gateway, "spec.virtualService.gateways[]")
	on(mooringAPI, "AppConfiguration", credential, "spec.gateway.listeners[].tls.secret", "spec.gateway.listeners[].tls.caSecret")
	for _, policy := range []string{"spec.destinationRule.trafficPolicy", "spec.destinationRule.subsets[].trafficPolicy"} {
		on(mooringAPI, "AppConfiguration", credential, policy+".tlsSettings.credentialName", policy+".ports[].tlsSettings.credentialName")
	}
	on(mooringAPI, "AppConfiguration", known, "spec.sidecar.egress[]", "spec.sidecar.dependencies[]")
	on(mooringAPI, "AppConfiguration", short(schema.GroupKind{Kind: "ServiceAccount"}, false), "spec.workloadEntries[].serviceAccount", "spec.workloadGroups[].serviceAccount")
	on(mooringAPI, "AppConfiguration", short(schema.GroupKind{Kind: "Secret"}, false), "spec.wasmPlugins[].pullSecret")
	for _, b := range blocks() {
		on(mooringAPI, "AppConfiguration", targeted, "spec."+b.field+".targetRef")
	}
	for _, policy := range []string{"spec.authorizationPolicy", "spec.authorizationPolicies[]"} {
		from := policy + ".rules[].from[]."
		on(mooringAPI, "AppConfiguration", caller, from+"serviceAccounts[]", from+"notServiceAccounts[]")
		on(mooringAPI, "AppConfiguration", principal, from+"principals[]", from+"notPrincipals[]")
	}
}

// short is a name without a namespace.
func short(kind schema.GroupKind, far bool) refer {
	return func(n *names, from *named, v any) (any, bool) {
		name, _ := v.(string)
		to := n.find(from, meaning{GroupKind: kind, called: called{name: name}, short: true, far: far})
		if to == nil {
			return v, false
		}
		return to.now.name, to.now.name != name
	}
}

// host is a short name or one of the cluster's DNS, in whichever form it is written.
func host(kind schema.GroupKind) refer {
	return func(n *names, from *named, v any) (any, bool) {
		name, _ := v.(string)
		c, rest, ok := dotted(name)
		if !ok {
			return short(kind, false)(n, from, v)
		}
		to := n.find(from, meaning{GroupKind: kind, called: c})
		if to == nil {
			return v, false
		}
		if to.now.namespace != "" {
			c.namespace = to.now.namespace
		}
		now := to.now.name + "." + c.namespace + rest
		return now, now != name
	}
}

// gateway is a Gateway of Istio: name, ./name, namespace/name, or, as before Istio 1.1, a name of the cluster's DNS. mesh is none.
func gateway(n *names, from *named, v any) (any, bool) {
	name, _ := v.(string)
	kind := schema.GroupKind{Group: istioNetworking, Kind: "Gateway"}
	namespace, inner, ok := strings.Cut(name, "/")
	switch {
	case name == "mesh":
		return v, false
	case !ok:
		if now, ok := short(kind, false)(n, from, v); ok {
			return now, true
		}
		return host(kind)(n, from, v)
	case namespace == ".":
		now, ok := short(kind, false)(n, from, inner)
		return "./" + now.(string), ok
	default:
		return slashed(n, from, kind, called{inner, namespace})
	}
}

// slashed is namespace/name.
func slashed(n *names, from *named, kind schema.GroupKind, c called) (any, bool) {
	to := n.find(from, meaning{GroupKind: kind, called: c})
	if to == nil {
		return c.namespace + "/" + c.name, false
	}
	now := to.now
	if now.namespace == "" {
		now.namespace = c.namespace
	}
	return now.namespace + "/" + now.name, now != c
}

// scoped is a host with a namespace before it, as in a Sidecar: the namespace may be . for its own, * for all, ~ for none, and the host may
// be *.
func scoped(n *names, from *named, v any) (any, bool) {
	text, _ := v.(string)
	kind := schema.GroupKind{Kind: "Service"}
	namespace, name, ok := strings.Cut(text, "/")
	if !ok || strings.Contains(name, "*") {
		return v, false
	}
	c, rest, qualified := dotted(name)
	own := strings.Contains(".*~", namespace)
	switch {
	case qualified && (own || c.namespace == namespace):
		now, changed := host(kind)(n, from, name)
		if c, _, _ := dotted(now.(string)); !own && changed {
			namespace = c.namespace
		}
		return namespace + "/" + now.(string), changed
	case namespace == ".":
		now, changed := short(kind, false)(n, from, name)
		return "./" + now.(string), changed
	case own || rest != "":
		return v, false
	default:
		return slashed(n, from, kind, called{name, namespace})
	}
}

// known is a host as a Sidecar has it, or one without a namespace before it.
func known(n *names, from *named, v any) (any, bool) {
	if text, _ := v.(string); !strings.Contains(text, "/") {
		return host(schema.GroupKind{Kind: "Service"})(n, from, v)
	}
	return scoped(n, from, v)
}

// credential is the Secret of a certificate, which is in the namespace of the gateway's pods: not always that of the object that names it. It is a
// name, or one with where it is looked for, as in kubernetes://name and kubernetes-gateway://namespace/name.
func credential(n *names, from *named, v any) (any, bool) {
	text, _ := v.(string)
	kind := schema.GroupKind{Kind: "Secret"}
	scheme, name, ok := strings.Cut(text, "://")
	if !ok {
		return short(kind, true)(n, from, v)
	}
	var now any
	changed := false
	switch namespace, inner, both := strings.Cut(name, "/"); {
	case scheme == "kubernetes":
		now, changed = short(kind, true)(n, from, name)
	case scheme == "kubernetes-gateway" && both:
		now, changed = slashed(n, from, kind, called{inner, namespace})
	}
	if !changed {
		return v, false
	}
	return scheme + "://" + now.(string), true
}

// caller is a ServiceAccount by its name, or as namespace/name.
func caller(n *names, from *named, v any) (any, bool) {
	text, _ := v.(string)
	kind := schema.GroupKind{Kind: "ServiceAccount"}
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return slashed(n, from, kind, called{name, namespace})
	}
	return short(kind, false)(n, from, v)
}

// principal is a ServiceAccount as its certificate names it: DOMAIN/ns/NAMESPACE/sa/NAME, where the domain may be *.
func principal(n *names, from *named, v any) (any, bool) {
	text, _ := v.(string)
	parts := strings.Split(text, "/")
	if len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa" {
		return v, false
	}
	now, changed := slashed(n, from, schema.GroupKind{Kind: "ServiceAccount"}, called{parts[4], parts[2]})
	if !changed {
		return v, false
	}
	parts[2], parts[4], _ = strings.Cut(now.(string), "/")
	return strings.Join(parts, "/"), true
}

// mapped is a mapping with a name and perhaps a namespace.
func mapped(kind schema.GroupKind) refer {
	return func(n *names, from *named, v any) (any, bool) {
		m, _ := v.(map[string]any)
		name, _ := m["name"].(string)
		namespace, _ := m["namespace"].(string)
		to := n.find(from, meaning{GroupKind: kind, called: called{name, namespace}, short: namespace == ""})
		if to == nil {
			return v, false
		}
		now := to.now
		if namespace == "" || now.namespace == "" {
			now.namespace = namespace
		}
		if now == (called{name, namespace}) {
			return v, false
		}
		m = maps.Clone(m)
		m["name"] = now.name
		if namespace != "" {
			m["namespace"] = now.namespace
		}
		return m, true
	}
}

// targeted is a mapping with a name and a kind whose group goes without saying.
func targeted(n *names, from *named, v any) (any, bool) {
	m, _ := v.(map[string]any)
	kind, _ := m["kind"].(string)
	group := map[string]string{"Gateway": gatewayAPI, "GatewayClass": gatewayAPI, "ServiceEntry": istioNetworking}[kind]
	return mapped(schema.GroupKind{Group: group, Kind: kind})(n, from, v)
}

// typed is a mapping that has a group and a kind beside the name. What it does not say is as in otherwise.
func typed(otherwise schema.GroupKind) refer {
	return func(n *names, from *named, v any) (any, bool) {
		m, _ := v.(map[string]any)
		kind := otherwise
		if group, ok := m["group"].(string); ok {
			kind.Group = group
		}
		if k, ok := m["kind"].(string); ok {
			kind.Kind = k
		}
		return mapped(kind)(n, from, v)
	}
}
