package app

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

func (b *builder) virtualService() {
	v := b.app.Spec.VirtualService
	if v == nil {
		return
	}
	block := []string{"virtualService"}
	b.rawAlone(v.Escape, v, block)
	if len(v.Routes)+len(v.TLS)+len(v.TCP) == 0 && v.Raw == nil && v.Patch == nil {
		b.fail(block, "write routes, tls or tcp", "has no route")
	}
	out := &networking.VirtualService{Hosts: b.routedHosts(v), Gateways: b.routedGateways(v), ExportTo: v.Namespaces, Http: b.httpRoutes(v, block)}
	for i, r := range v.TLS {
		path := below(block, "tls", index(i))
		match := &networking.TLSMatchAttributes{SniHosts: r.SNIHosts, Port: r.Port}
		to := b.destinations(r.To, below(path, "to"))
		out.Tls = append(out.Tls, &networking.TLSRoute{Match: []*networking.TLSMatchAttributes{match}, Route: l4(to)})
	}
	for i, r := range v.TCP {
		path := below(block, "tcp", index(i))
		route := &networking.TCPRoute{Route: l4(b.destinations(r.To, below(path, "to")))}
		if r.Port != 0 || len(r.SourceLabels) > 0 || len(r.DestinationCIDRs) > 0 {
			route.Match = []*networking.L4MatchAttributes{{Port: r.Port, SourceLabels: r.SourceLabels, DestinationSubnets: r.DestinationCIDRs}}
		}
		out.Tcp = append(out.Tcp, route)
	}
	b.sees(v.Namespaces, below(block, "namespaces"))
	b.emit(virtualServiceKind, "", out, v.Escape, block...)
}

// routedHosts are those of the block; without any the own Service, and what an own gateway lets in.
func (b *builder) routedHosts(v *VirtualService) []string {
	var out []string
	if len(v.Hosts) > 0 {
		for _, h := range v.Hosts {
			out = append(out, b.host(h))
		}
		return out
	}
	out = append(out, b.host(""))
	if g := b.app.Spec.Gateway; g != nil {
		for _, l := range g.Listeners {
			for _, h := range l.Hosts {
				if _, name, ok := strings.Cut(h, "/"); ok {
					h = name
				}
				if h != "*" && !slices.Contains(out, h) { // "*" is not a host for the mesh
					out = append(out, h)
				}
			}
		}
	}
	return out
}

// routedGateways are those of the block; without any the mesh, and an own gateway.
func (b *builder) routedGateways(v *VirtualService) []string {
	if len(v.Gateways) > 0 || b.app.Spec.Gateway == nil {
		return v.Gateways
	}
	return []string{objectName(b.app.Name, ""), "mesh"}
}

// httpRoutes keep their order, but for the one that matches everything: it is last, or those after it would never be asked.
func (b *builder) httpRoutes(v *VirtualService, block []string) []*networking.HTTPRoute {
	var out, last []*networking.HTTPRoute
	for i, r := range v.Routes {
		path := below(block, "routes", index(i))
		route := b.httpRoute(r, path)
		if len(r.Match) > 0 {
			out = append(out, route)
			continue
		}
		if len(last) > 0 {
			b.fail(path, "give one of them a match", "%s and %s both match every request", last[0].Name, r.Name)
		}
		last = append(last, route)
	}
	if len(out) > 0 && len(last) == 0 && len(v.Hosts) == 0 {
		last = append(last, &networking.HTTPRoute{Route: b.destinations(nil, block)})
	}
	return append(out, last...)
}

func (b *builder) httpRoute(r Route, path []string) *networking.HTTPRoute {
	out := &networking.HTTPRoute{
		Name:           r.Name,
		Redirect:       redirect(r.Redirect),
		DirectResponse: directResponse(r.DirectResponse),
		Timeout:        b.duration(r.Timeout, below(path, "timeout")),
		Retries:        b.retries(r.Retries, below(path, "retries")),
		Fault:          b.fault(r.Fault, below(path, "fault")),
		CorsPolicy:     b.cors(r.CORS, below(path, "cors")),
		Headers:        headers(r.Headers),
	}
	for i, m := range r.Match {
		out.Match = append(out.Match, b.httpMatch(m, below(path, "match", index(i))))
	}
	if r.Delegate != nil {
		out.Delegate = &networking.Delegate{Name: r.Delegate.Name, Namespace: r.Delegate.Namespace}
	}
	if r.Rewrite != nil {
		out.Rewrite = &networking.HTTPRewrite{Uri: r.Rewrite.Path, Authority: r.Rewrite.Host}
	}
	if r.Mirror != nil {
		to := r.Mirror.To
		d := b.destination(Destination{Host: to.Host, Version: to.Version, Port: to.Port}, below(path, "mirror", "to"))
		out.Mirrors = []*networking.HTTPMirrorPolicy{{Destination: d, Percentage: percent(r.Mirror.Percent)}}
	}
	b.oneAnswer(r, path)
	if r.Redirect == nil && r.DirectResponse == nil && r.Delegate == nil {
		out.Route = b.destinations(r.To, below(path, "to"))
		b.notSticky(out.Route, path)
	}
	return out
}

// oneAnswer refuses two ways to answer the same request.
func (b *builder) oneAnswer(r Route, path []string) {
	var ways []string
	for _, w := range []struct {
		name string
		set  bool
	}{{"to", len(r.To) > 0}, {"redirect", r.Redirect != nil}, {"directResponse", r.DirectResponse != nil}, {"delegate", r.Delegate != nil}} {
		if w.set {
			ways = append(ways, w.name)
		}
	}
	if len(ways) > 1 {
		b.fail(path, "leave all but one of them out", "%s exclude each other", strings.Join(ways, " and "))
	}
}

// notSticky warns where weights meet a consistent hash: the version is drawn anew for every request, before the hash chooses in it.
func (b *builder) notSticky(to []*networking.HTTPRouteDestination, path []string) {
	d := b.app.Spec.DestinationRule
	if len(to) < 2 || d == nil || d.TrafficPolicy == nil || d.TrafficPolicy.LoadBalancerSettings == nil ||
		d.TrafficPolicy.LoadBalancerSettings.ConsistentHash == nil {
		return
	}
	b.warn(below(path, "to"), "route by a header or cookie instead of by weight if callers have to stay with one version",
		"consistentHash keeps a caller on one endpoint within a version, but weights choose the version anew for every request")
}

// destinations of a route; none stand for the own Service.
func (b *builder) destinations(to []Destination, path []string) []*networking.HTTPRouteDestination {
	if len(to) == 0 {
		return []*networking.HTTPRouteDestination{{Destination: b.destination(Destination{}, path)}}
	}
	weighted, sum := 0, int32(0)
	var out []*networking.HTTPRouteDestination
	for i, d := range to {
		one := &networking.HTTPRouteDestination{Destination: b.destination(d, below(path, index(i)))}
		if d.Weight != nil {
			weighted++
			sum += min(*d.Weight, 1<<20)
			if len(to) > 1 {
				one.Weight = *d.Weight
			}
		}
		out = append(out, one)
	}
	switch {
	case len(to) > 1 && weighted != len(to):
		b.fail(path, "write a weight for each, such as 90 and 10", "%d of %d destinations have a weight", weighted, len(to))
	case weighted > 0 && sum == 0:
		b.fail(path, "give one of them a weight above 0", "all weights are 0")
	}
	return out
}

func (b *builder) destination(d Destination, path []string) *networking.Destination {
	host := b.host(d.Host)
	out := &networking.Destination{Host: host, Subset: d.Version}
	own := host == b.host("")
	if own && d.Version != "" && !b.knowsVersion(d.Version) {
		hint := "add it to spec.versions"
		if names := b.versionNames(); len(names) > 0 {
			hint += "; there are " + strings.Join(names, ", ")
		}
		b.fail(below(path, "version"), hint, "there is no version %s", d.Version)
	}
	out.Port = b.destinationPort(d, own, path)
	return out
}

// destinationPort leaves the only port of a Service out, as Istio needs none then.
func (b *builder) destinationPort(d Destination, own bool, path []string) *networking.PortSelector {
	if s := b.around.service(b.app.Namespace, b.app.Name); own && s != nil && len(s.ports) > 0 {
		only := len(s.ports) == 1
		known := slices.ContainsFunc(s.ports, func(p servicePort) bool { return p.number == d.Port })
		var list []string
		for _, p := range s.ports {
			list = append(list, strings.TrimSpace(strings.Join([]string{index(int(p.number)), p.name}, " ")))
		}
		switch {
		case d.Port == 0 && !only:
			b.fail(path, "write port: one of "+strings.Join(list, ", "), "the Service %s has several ports, and none is named", b.app.Name)
		case d.Port != 0 && !known:
			b.fail(below(path, "port"), "write one of "+strings.Join(list, ", "), "the Service %s has no port %d", b.app.Name, d.Port)
		case only:
			return nil
		}
	}
	if d.Port == 0 {
		return nil
	}
	return &networking.PortSelector{Number: d.Port}
}

// l4 writes destinations for TLS and TCP.
func l4(to []*networking.HTTPRouteDestination) []*networking.RouteDestination {
	var out []*networking.RouteDestination
	for _, d := range to {
		out = append(out, &networking.RouteDestination{Destination: d.Destination, Weight: d.Weight})
	}
	return out
}
