package analysis

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render/check/world"
)

// isNamed says whether a route, or a DestinationRule, names a host of a Service or a ServiceEntry. One that gives a host with a star may be
// anybody's.
func (r *run) isNamed(o *world.Object, by view) bool {
	named := r.namedHosts(by)
	if o.ID.Kind == "Service" {
		return named[o.ID.Name+"."+o.ID.Namespace+clusterDomain]
	}
	return slices.ContainsFunc(listAt(o, "spec", "hosts"), func(h string) bool {
		return strings.HasPrefix(h, "*") || named[fqdn(h, o.ID.Namespace)]
	})
}

// namedHosts are the full names of the hosts that routes and mirrors, or DestinationRules, name.
func (r *run) namedHosts(by view) map[string]bool {
	if r.named[by] != nil {
		return r.named[by]
	}
	all := map[string]bool{}
	r.named[by] = all
	if by == ruled {
		for _, o := range r.world.Of(istioNetworking, "DestinationRule") {
			all[fqdn(textAt(o, "spec", "host"), o.ID.Namespace)] = true
		}
		return all
	}
	for _, o := range r.world.Of(istioNetworking, "VirtualService") {
		spec, _ := specOf[*networking.VirtualService](o)
		for _, d := range destinationsOf(spec) {
			all[fqdn(d.GetHost(), o.ID.Namespace)] = true
		}
	}
	return all
}

// destinationsOf lists all that a VirtualService sends requests to.
func destinationsOf(spec *networking.VirtualService) []*networking.Destination {
	var all []*networking.Destination
	for _, route := range spec.GetHttp() {
		all = append(all, route.GetMirror())
		for _, m := range route.GetMirrors() {
			all = append(all, m.GetDestination())
		}
		for _, d := range route.GetRoute() {
			all = append(all, d.GetDestination())
		}
	}
	for _, route := range spec.GetTcp() {
		for _, d := range route.GetRoute() {
			all = append(all, d.GetDestination())
		}
	}
	for _, route := range spec.GetTls() {
		for _, d := range route.GetRoute() {
			all = append(all, d.GetDestination())
		}
	}
	return all
}
