package apply

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of the mesh whose order matters.
const (
	groupNetworking = "networking.istio.io"
	groupSecurity   = "security.istio.io"
	groupGatewayAPI = "gateway.networking.k8s.io"
)

var (
	kindService         = schema.GroupKind{Kind: "Service"}
	kindVirtualService  = schema.GroupKind{Group: groupNetworking, Kind: "VirtualService"}
	kindDestinationRule = schema.GroupKind{Group: groupNetworking, Kind: "DestinationRule"}
	kindServiceEntry    = schema.GroupKind{Group: groupNetworking, Kind: "ServiceEntry"}
	kindSidecar         = schema.GroupKind{Group: groupNetworking, Kind: "Sidecar"}
	kindGateway         = schema.GroupKind{Group: groupNetworking, Kind: "Gateway"}
	kindPeerAuth        = schema.GroupKind{Group: groupSecurity, Kind: "PeerAuthentication"}
	kindAuthorization   = schema.GroupKind{Group: groupSecurity, Kind: "AuthorizationPolicy"}
)

// thing is what a route leads to or through. One object offers it, another needs it, and from that alone comes their order.
type thing struct {
	what what
	// of is the full name of a host, or the namespace/name of a gateway or of a VirtualService.
	of string
	// part is the subset, the port, or the host that a gateway takes in.
	part string
}

// what kind of thing it is.
type what string

const (
	aHost     what = "host"
	aPort     what = "port"
	aSubset   what = "subset"
	aGateway  what = "gateway"
	aServer   what = "server"   // a host that a gateway takes in
	aDelegate what = "delegate" // a VirtualService that another one hands requests to
	anExport  what = "export"   // a namespace that is told of a host
	anEntry   what = "entry"    // a host at a gateway (or in the mesh) that a VirtualService has routes for
)

// anyPort is needed by a route that names no port.
const anyPort = "*"

func (t thing) String() string {
	switch t.what {
	case aSubset:
		return "subset " + t.part + " of " + t.of
	case aPort:
		return "port " + t.part + " of " + t.of
	case aServer:
		return "host " + t.part + " of gateway " + t.of
	case anExport:
		return "export of " + t.of + " to " + t.part
	default:
		return string(t.what) + " " + t.of
	}
}

// whole is the thing without its part.
func (t thing) whole() thing {
	switch t.what {
	case aPort, aSubset, aHost, anExport:
		return thing{what: aHost, of: t.of}
	case aServer, aGateway:
		return thing{what: aGateway, of: t.of}
	default:
		return thing{what: t.what, of: t.of}
	}
}

// metBy says whether what is offered is what is needed.
func (t thing) metBy(offer thing) bool {
	if t.what != offer.what || t.of != offer.of {
		return false
	}
	switch {
	case t.what == aPort && t.part == anyPort:
		return true
	case t.what == aServer:
		return overlap(t.part, offer.part)
	default:
		return t.part == offer.part
	}
}

// things is a set of them.
type things map[thing]bool

func (t things) without(other things) things {
	left := make(things)
	for one := range t {
		if !other[one] {
			left[one] = true
		}
	}
	return left
}

// overlap says whether two hosts, either of which may begin with "*", have a name in common.
func overlap(a, b string) bool {
	starA, starB := strings.HasPrefix(a, "*"), strings.HasPrefix(b, "*")
	switch {
	case starA && starB:
		return strings.HasSuffix(a[1:], b[1:]) || strings.HasSuffix(b[1:], a[1:])
	case starA:
		return strings.HasSuffix(b, a[1:])
	case starB:
		return strings.HasSuffix(a, b[1:])
	default:
		return a == b
	}
}

// fullName of a host as an object of the namespace names it: Istio takes a name without a dot for a Service beside the object.
func fullName(host, namespace string) string {
	if host == "" || strings.Contains(host, ".") || strings.Contains(host, "*") {
		return host
	}
	return host + "." + namespace + ".svc.cluster.local"
}

// offersOf an object: what routes can need of it. nil offers nothing.
func offersOf(u *unstructured.Unstructured) things {
	found := make(things)
	if u == nil {
		return found
	}
	namespace, name := u.GetNamespace(), u.GetNamespace()+"/"+u.GetName()
	switch u.GroupVersionKind().GroupKind() {
	case kindService:
		host := fullName(u.GetName(), namespace)
		offerPorts(found, host, mapsAt(u.Object, "spec", "ports"), "port")
		offerExports(found, host, u)
	case kindServiceEntry:
		for _, host := range textsAt(u.Object, "spec", "hosts") {
			offerPorts(found, host, mapsAt(u.Object, "spec", "ports"), "number")
			offerExports(found, host, u)
		}
	case kindDestinationRule:
		host := fullName(textAt(u.Object, "spec", "host"), namespace)
		offerExports(found, host, u)
		for _, subset := range mapsAt(u.Object, "spec", "subsets") {
			found[thing{aSubset, host, textAt(subset, "name")}] = true
		}
	case kindGateway:
		found[thing{aGateway, name, ""}] = true
		for _, server := range mapsAt(u.Object, "spec", "servers") {
			for _, host := range textsAt(server, "hosts") {
				found[thing{aServer, name, bare(host)}] = true
			}
		}
	case kindVirtualService:
		found[thing{aDelegate, name, ""}] = true
		for _, gateway := range gatewaysOf(u) {
			for _, host := range textsAt(u.Object, "spec", "hosts") {
				found[thing{anEntry, gateway, fullName(host, namespace)}] = true
			}
		}
	}
	return found
}

func offerPorts(found things, host string, ports []map[string]any, field string) {
	found[thing{aHost, host, ""}] = true
	for _, port := range ports {
		found[thing{aPort, host, numberAt(port, field)}] = true
	}
}

// everywhere is how exportTo, and a port that is not named, say all.
const everywhere = "*"

// exportAnnotation is how a Service says exportTo.
const exportAnnotation = "networking.istio.io/exportTo"

func offerExports(found things, host string, u *unstructured.Unstructured) {
	for _, namespace := range exportsOf(u) {
		if namespace == "." {
			namespace = u.GetNamespace()
		}
		found[thing{anExport, host, namespace}] = true
	}
}

// exportsOf an object, as it writes them.
func exportsOf(u *unstructured.Unstructured) []string {
	written := textsAt(u.Object, "spec", "exportTo")
	if annotation := u.GetAnnotations()[exportAnnotation]; annotation != "" && u.GetKind() == kindService.Kind {
		for namespace := range strings.SplitSeq(annotation, ",") {
			written = append(written, strings.TrimSpace(namespace))
		}
	}
	if len(written) == 0 {
		return []string{everywhere}
	}
	return written
}

// needsOf a route: the objects of Istio's API and of the Gateway API. nil needs nothing.
func needsOf(u *unstructured.Unstructured) things {
	found := make(things)
	if u == nil {
		return found
	}
	switch gk := u.GroupVersionKind().GroupKind(); {
	case gk == kindVirtualService:
		needsOfVirtualService(found, u)
	case isGatewayRoute(gk):
		for _, rule := range mapsAt(u.Object, "spec", "rules") {
			for _, ref := range mapsAt(rule, "backendRefs") {
				needBackend(found, ref, u.GetNamespace())
			}
			for _, filter := range mapsAt(rule, "filters") {
				if mirror, ok := valueAt(filter, "requestMirror", "backendRef").(map[string]any); ok {
					needBackend(found, mirror, u.GetNamespace())
				}
			}
		}
	}
	return found
}

func needsOfVirtualService(found things, u *unstructured.Unstructured) {
	need := func(destination any) {
		to, ok := destination.(map[string]any)
		if !ok {
			return
		}
		host := fullName(textAt(to, "host"), u.GetNamespace())
		found[thing{aHost, host, ""}] = true
		found[thing{aPort, host, cmp.Or(numberAt(to, "port", "number"), anyPort)}] = true
		if subset := textAt(to, "subset"); subset != "" {
			found[thing{aSubset, host, subset}] = true
		}
	}
	for _, protocol := range []string{"http", "tls", "tcp"} {
		for _, entry := range mapsAt(u.Object, "spec", protocol) {
			for _, route := range mapsAt(entry, "route") {
				need(route["destination"])
			}
			need(entry["mirror"])
			for _, mirror := range mapsAt(entry, "mirrors") {
				need(mirror["destination"])
			}
			if delegate := textAt(entry, "delegate", "name"); delegate != "" {
				namespace := cmp.Or(textAt(entry, "delegate", "namespace"), u.GetNamespace())
				found[thing{aDelegate, namespace + "/" + delegate, ""}] = true
			}
		}
	}
	for _, gateway := range gatewaysOf(u) {
		if gateway == inMesh {
			continue
		}
		found[thing{aGateway, gateway, ""}] = true
		for _, host := range textsAt(u.Object, "spec", "hosts") {
			found[thing{aServer, gateway, host}] = true
		}
	}
}

func needBackend(found things, ref map[string]any, namespace string) {
	if textAt(ref, "kind") != "" && textAt(ref, "kind") != kindService.Kind {
		return
	}
	host := fullName(textAt(ref, "name"), cmp.Or(textAt(ref, "namespace"), namespace))
	found[thing{aHost, host, ""}] = true
	found[thing{aPort, host, cmp.Or(numberAt(ref, "port"), anyPort)}] = true
}

// inMesh is the gateway that stands for all sidecars.
const inMesh = "mesh"

// gatewaysOf a VirtualService, each as namespace/name, or inMesh.
func gatewaysOf(u *unstructured.Unstructured) []string {
	named := textsAt(u.Object, "spec", "gateways")
	if len(named) == 0 {
		return []string{inMesh}
	}
	var all []string
	for _, gateway := range named {
		if gateway != inMesh && !strings.Contains(gateway, "/") {
			gateway = u.GetNamespace() + "/" + gateway
		}
		all = append(all, gateway)
	}
	return all
}

func isRoute(gk schema.GroupKind) bool {
	return gk == kindVirtualService || isGatewayRoute(gk)
}

func isGatewayRoute(gk schema.GroupKind) bool {
	return gk.Group == groupGatewayAPI && strings.HasSuffix(gk.Kind, "Route")
}

// bare is a gateway's host without the namespace in front of it.
func bare(host string) string {
	if _, after, found := strings.Cut(host, "/"); found {
		return after
	}
	return host
}

func valueAt(object map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

func textAt(object map[string]any, path ...string) string {
	value, _ := valueAt(object, path...).(string)
	return value
}

// number as text, empty where there is none.
func numberAt(object map[string]any, path ...string) string {
	switch value := valueAt(object, path...).(type) {
	case int64, int, float64:
		return fmt.Sprint(value)
	default:
		return ""
	}
}

func mapsAt(object map[string]any, path ...string) []map[string]any {
	list, _ := valueAt(object, path...).([]any)
	var all []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}

func textsAt(object map[string]any, path ...string) []string {
	list, _ := valueAt(object, path...).([]any)
	var all []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			all = append(all, s)
		}
	}
	return all
}
