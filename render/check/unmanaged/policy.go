package unmanaged

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// gatewayName is the label by which pods of a Gateway of the Gateway API are known.
const gatewayName = "gateway.networking.k8s.io/gateway-name"

// policy judges an object that is for workloads.
func (e *estate) policy(b *bearing, o *object) {
	does := o.does()
	if does == "" {
		return
	}
	if targets := o.targets(); len(targets) > 0 {
		e.targeted(b, o, does, targets)
		return
	}
	selector := o.selector()
	namespaces, scope := []string{o.id.Namespace}, "all workloads of namespace "+o.id.Namespace
	everywhere := o.id.Namespace == e.root && (len(selector) == 0 || !o.is("Sidecar")) // a Sidecar with a selector is for its own namespace alone
	switch {
	case everywhere && len(selector) > 0:
		scope = "workloads of all namespaces that its selector picks, because it lies in the root namespace " + e.root
	case everywhere:
		scope = "all workloads of the mesh, because it lies in the root namespace " + e.root
	case len(selector) > 0:
		scope = "workloads that its selector picks"
	}
	if everywhere {
		namespaces = slices.Sorted(maps.Keys(e.reached))
	}
	for _, namespace := range namespaces {
		for _, w := range e.reached[namespace] {
			if within(selector, w.labels) && !e.outranked(o, w.workload) {
				b.workload(w, does+" "+scope)
			}
		}
	}
}

func (b *bearing) workload(w *reached, why string) {
	note(&b.workloads, w.id.String())
	for _, h := range w.hosts {
		note(&b.hosts, h)
	}
	if b.why == "" {
		b.why = why
	}
}

// targeted judges an object that names what it is for.
func (e *estate) targeted(b *bearing, o *object, does string, targets []target) {
	ns := o.id.Namespace
	for _, t := range targets {
		var hosts []string
		switch t.kind {
		case "Service":
			hosts = []string{full(t.name, ns)}
		case "ServiceEntry":
			for _, s := range e.entries[ns] {
				if s.id.Name == t.name {
					hosts = s.hosts
				}
			}
		case "Gateway":
			for _, w := range e.reached[ns] {
				if w.labels[gatewayName] == t.name {
					b.workload(w, fmt.Sprintf("%s the workloads of Gateway %s, which it names", does, t.name))
				}
			}
		}
		for _, h := range hosts {
			if claims := e.exact[h]; len(claims) > 0 {
				b.host(h, "%s the waypoint of %s %s, which it names and whose host %s is for", does, t.kind, t.name, claims[0].by.id)
			}
		}
	}
}

// does says what an object of a kind does to workloads; empty for a kind that does nothing to any.
func (o *object) does() string {
	switch o.id.Kind {
	case "EnvoyFilter":
		return "patches the Envoy configuration of"
	case "AuthorizationPolicy":
		return fmt.Sprintf("decides (%s) who may call", cmp.Or(o.text("spec", "action"), "ALLOW"))
	case "PeerAuthentication":
		return fmt.Sprintf("sets mutual TLS (%s) for", cmp.Or(o.text("spec", "mtls", "mode"), "as inherited"))
	case "RequestAuthentication":
		return "judges the tokens of requests to"
	case "Telemetry":
		return "sets metrics, traces or access logs of"
	case "WasmPlugin":
		return "loads a WebAssembly filter into"
	case "TrafficExtension":
		return "loads a filter into"
	case "ProxyConfig":
		return "sets how the proxies start of"
	case "Sidecar":
		return "sets which hosts are seen by"
	}
	return ""
}

// outranked says whether the Mooring has a more exact object of a kind of which one wins for a workload.
func (e *estate) outranked(o *object, w *workload) bool {
	return slices.ContainsFunc(e.policies, func(mine *object) bool {
		return mine.id.Kind == o.id.Kind && mine.id.Group == o.id.Group && e.exactness(mine, w) > e.exactness(o, w)
	})
}

// exactness of an object for a workload: by labels, by namespace, by the mesh; 0 when it is not for it.
func (e *estate) exactness(o *object, w *workload) int {
	selector := o.selector()
	switch {
	case !within(selector, w.labels):
		return 0
	case o.id.Namespace == w.id.Namespace && len(selector) > 0:
		return 3
	case o.id.Namespace == w.id.Namespace:
		return 2
	case o.id.Namespace == e.root:
		return 1
	}
	return 0
}
