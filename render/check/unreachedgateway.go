package check

import (
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config/gateway"
	"istio.io/istio/pkg/config/host"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// whole VirtualServices whose routes are of a kind that no server of their gateways is for.
func (u *unreached) whole(o *world.Object, spec *networking.VirtualService) {
	if u.roots[o] {
		return
	}
	servers, certain := u.servers(o, spec)
	if !certain || len(servers) == 0 {
		return
	}
	serve := func(kind func(*networking.Server) bool) bool { return slices.ContainsFunc(servers, kind) }
	var has, wants string
	switch {
	case len(spec.Http) > 0 && serve(isHTTP), len(spec.Tls) > 0 && serve(passesThrough), len(spec.Tcp) > 0 && serve(isTCP):
		return
	case len(spec.Http) > 0 && serve(passesThrough):
		has, wants = "http routes", "pass TLS through and want tls routes"
	case len(spec.Http) > 0:
		has, wants = "http routes", "are for TCP and want tcp routes"
	case len(spec.Tls) > 0:
		has, wants = "tls routes", "do not pass TLS through: they want http or tcp routes"
	default:
		has, wants = "tcp routes", "are for HTTP or pass TLS through: they want http or tls routes"
	}
	u.report(o, problem{
		Field:   "spec.gateways",
		Message: fmt.Sprintf("no proxy gets it: it has %s, and the servers of %s that take its hosts %s", has, strings.Join(spec.Gateways, ", "), wants),
		Mend:    "write the kind of routes that the server is for, or change protocol and tls.mode of the server",
	})
}

// servers of the gateways that take one of the hosts. It is not certain which those are where a gateway is not known, or the mesh is among them.
func (u *unreached) servers(o *world.Object, spec *networking.VirtualService) (servers []*networking.Server, certain bool) {
	hosts := host.NewNames(spec.Hosts)
	for _, name := range boundTo(o, spec) {
		namespace, short, ok := strings.Cut(name, "/")
		if !ok {
			return nil, false
		}
		at := u.Find(render.ID{Group: networkingGroup, Kind: "Gateway", Namespace: namespace, Name: short})
		if at == nil {
			return nil, false
		}
		gw, ok := specOf[*networking.Gateway](at)
		if !ok {
			return nil, false
		}
		for _, s := range gw.Servers {
			if len(host.NamesForNamespace(fromDots(s.GetHosts(), namespace), o.ID.Namespace).Intersection(hosts)) > 0 {
				servers = append(servers, s)
			}
		}
	}
	return servers, true
}

// fromDots writes the gateway's namespace where its hosts have a dot.
func fromDots(hosts []string, namespace string) []string {
	var out []string
	for _, h := range hosts {
		if rest, ok := strings.CutPrefix(h, "./"); ok {
			h = namespace + "/" + rest
		}
		out = append(out, h)
	}
	return out
}

func isHTTP(s *networking.Server) bool { return gateway.IsHTTPServer(s) }

func passesThrough(s *networking.Server) bool { return gateway.IsPassThroughServer(s) }

func isTCP(s *networking.Server) bool { return !isHTTP(s) && !passesThrough(s) }
