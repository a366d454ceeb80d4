package proxy

import (
	"fmt"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/model"
)

// targets are the clusters of a route, with the destinations that they come from.
func targets(r *route.Route, from, root Source) []Target {
	action := r.GetRoute()
	if action == nil {
		return nil // a redirect, or an answer of Envoy's own
	}
	var out []Target
	entry := from.entry()
	weighted := action.GetWeightedClusters().GetClusters()
	if name := action.GetCluster(); name != "" && len(entry.GetRoute()) == 1 {
		out = append(out, target(name, from, from.Field()+".route[0].destination"))
	}
	for i, d := range entry.GetRoute() {
		if len(weighted) == 0 {
			break
		}
		if d.GetWeight() != 0 { // the library leaves out those without a weight
			out = append(out, target(weighted[0].Name, from, fmt.Sprintf("%s.route[%d].destination", from.Field(), i)))
			weighted = weighted[1:]
		}
	}
	return append(out, mirrors(action, from, root)...)
}

// mirrors are written in the entry, or else in the root that delegated to it.
func mirrors(action *route.RouteAction, from, root Source) []Target {
	var out []Target
	for _, p := range action.GetRequestMirrorPolicies() {
		t := target(p.Cluster, from, "")
		for _, s := range []Source{from, root} {
			if field := s.mirror(t.Host, t.Subset); field != "" {
				t.Source, t.Field = s, field
				break
			}
		}
		out = append(out, t)
	}
	return out
}

// mirror finds the field of a mirror by what the cluster's name says.
func (s Source) mirror(host, subset string) string {
	entry := s.entry()
	is := func(d *networking.Destination) bool {
		return d != nil && d.Subset == subset && string(model.ResolveShortnameToFQDN(d.Host, s.Object.Config().Meta)) == host
	}
	if is(entry.GetMirror()) {
		return s.Field() + ".mirror"
	}
	for i, one := range entry.GetMirrors() {
		if is(one.GetDestination()) {
			return fmt.Sprintf("%s.mirrors[%d].destination", s.Field(), i)
		}
	}
	return ""
}

func target(cluster string, s Source, field string) Target {
	_, subset, name, port := model.ParseSubsetKey(cluster)
	return Target{
		Cluster: cluster, Host: string(name), Subset: subset, Port: port, Field: field, Source: s,
	}
}

// entry as it was written; nil where the object has changed its shape.
func (s Source) entry() *networking.HTTPRoute {
	spec, ok := specOf[*networking.VirtualService](s.Object)
	if !ok || s.HTTP >= len(spec.Http) {
		return nil
	}
	return spec.Http[s.HTTP]
}

// match as it was written; nil where the entry has none.
func (s Source) match() *networking.HTTPMatchRequest {
	entry := s.entry()
	if s.Match < 0 || s.Match >= len(entry.GetMatch()) {
		return nil
	}
	return entry.Match[s.Match]
}
