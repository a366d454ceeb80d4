package traffic

import (
	"fmt"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"

	"github.com/mooring-dev/mooring/test/istiod"
)

// Use is a place in a proxy's configuration that leads to a cluster.
type Use struct {
	Cluster string
	// Place is the virtual host or the listener that the route is in.
	Place string
	// Where is the route: "RDS 8080, orders.apps.svc.cluster.local:8080, default".
	Where string
	// Rule is the VirtualService that made it; empty for a default route.
	Rule string
}

// String reads "outbound|80|v2|… by mesh-1/orders in RDS …".
func (u Use) String() string {
	by := "no VirtualService"
	if u.Rule != "" {
		by = u.Rule
	}
	return fmt.Sprintf("%s by %s in %s", u.Cluster, by, u.Where)
}

// reader finds uses. It remembers what it found in messages that are still the same, because most are.
type reader struct {
	routes    map[*route.RouteConfiguration]*found
	listeners map[*listener.Listener]*found
}

// found is what a message says of traffic.
type found struct {
	uses []Use
	// served are the domains of virtual hosts; true for those with a VirtualService.
	served map[string]bool
	places []string
}

// Uses are all places in a state that lead to a cluster.
func Uses(s *istiod.State) []Use {
	return (&reader{}).read(s).uses
}

// read gives all of a state; domains come with the name of their route configuration.
func (r *reader) read(s *istiod.State) *found {
	routes, listeners := map[*route.RouteConfiguration]*found{}, map[*listener.Listener]*found{}
	all := &found{served: map[string]bool{}}
	for name, config := range s.Routes {
		f := r.routes[config]
		if f == nil {
			f = &found{served: map[string]bool{}}
			f.config("RDS "+name, config)
		}
		routes[config] = f
		all.uses, all.places = append(all.uses, f.uses...), append(all.places, f.places...)
		for domain, ruled := range f.served {
			all.served[name+" "+domain] = ruled
		}
	}
	for name, l := range s.Listeners {
		f := r.listeners[l]
		if f == nil {
			f = &found{served: map[string]bool{}}
			f.listener("LDS "+name, l)
		}
		listeners[l] = f
		all.uses, all.places = append(all.uses, f.uses...), append(all.places, f.places...)
	}
	r.routes, r.listeners = routes, listeners
	return all
}

// config reads a route configuration.
func (f *found) config(where string, c *route.RouteConfiguration) {
	f.mirrors(where, where, "", c.GetRequestMirrorPolicies())
	for _, host := range c.GetVirtualHosts() {
		in := where + ", " + host.GetName()
		f.places = append(f.places, in)
		f.mirrors(in, in, "", host.GetRequestMirrorPolicies())
		ruled := false
		for i, r := range host.GetRoutes() {
			rule := ruleOf(r.GetMetadata())
			ruled = ruled || rule != ""
			at := fmt.Sprintf("%s, route %d %s", in, i, r.GetName())
			f.action(in, at, rule, r.GetRoute())
		}
		for _, domain := range host.GetDomains() {
			f.served[domain] = ruled
		}
	}
}

func (f *found) action(place, where, rule string, a *route.RouteAction) {
	if name := a.GetCluster(); name != "" {
		f.uses = append(f.uses, Use{name, place, where, rule})
	}
	for _, w := range a.GetWeightedClusters().GetClusters() {
		f.uses = append(f.uses, Use{w.GetName(), place, where, rule})
	}
	f.mirrors(place, where, rule, a.GetRequestMirrorPolicies())
}

func (f *found) mirrors(place, where, rule string, all []*route.RouteAction_RequestMirrorPolicy) {
	for _, m := range all {
		if name := m.GetCluster(); name != "" {
			f.uses = append(f.uses, Use{name, place, where + ", mirror", rule})
		}
	}
}

// listener reads what is in a listener itself: TCP proxies, and HTTP routes that are not asked for by name.
func (f *found) listener(where string, l *listener.Listener) {
	chains := l.GetFilterChains()
	if last := l.GetDefaultFilterChain(); last != nil {
		chains = append(chains[:len(chains):len(chains)], last)
	}
	f.places = append(f.places, where)
	for i, chain := range chains {
		at, rule := fmt.Sprintf("%s, chain %d %s", where, i, chain.GetName()), ruleOf(chain.GetMetadata())
		for _, filter := range chain.GetFilters() {
			config := filter.GetTypedConfig()
			proxy, http := &tcp.TcpProxy{}, &hcm.HttpConnectionManager{}
			switch {
			case config.MessageIs(proxy) && config.UnmarshalTo(proxy) == nil:
				f.tcp(where, at, rule, proxy)
			case config.MessageIs(http) && config.UnmarshalTo(http) == nil && http.GetRouteConfig() != nil:
				f.config(at, http.GetRouteConfig())
			}
		}
	}
}

func (f *found) tcp(place, where, rule string, proxy *tcp.TcpProxy) {
	if name := proxy.GetCluster(); name != "" {
		f.uses = append(f.uses, Use{name, place, where, rule})
	}
	for _, w := range proxy.GetWeightedClusters().GetClusters() {
		f.uses = append(f.uses, Use{w.GetName(), place, where, rule})
	}
}

// ruleOf is the VirtualService in the metadata that istiod gives a route or a filter chain: namespace/name.
func ruleOf(m *core.Metadata) string {
	path := m.GetFilterMetadata()["istio"].GetFields()["config"].GetStringValue()
	_, rest, ok := strings.Cut(path, "/namespaces/")
	if !ok {
		return ""
	}
	namespace, rest, _ := strings.Cut(rest, "/")
	kind, name, _ := strings.Cut(rest, "/")
	if kind != "virtual-service" {
		return ""
	}
	return namespace + "/" + name
}
