package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render/check/world"
)

// sharedHost judges that VirtualServices of the mesh define one host. The analyzer names any one of several hosts, and takes *.shop for
// the same host as web.shop, of which the longer is chosen by every proxy.
func (r *run) sharedHost(c *claim) verdict {
	mine, _ := specOf[*networking.VirtualService](c.object)
	for i, h := range mine.GetHosts() {
		full := fqdn(h, c.namespace())
		scopes := r.hostsOfMesh()[full]
		for _, scope := range slices.Sorted(maps.Keys(scopes)) {
			names := slices.Clone(scopes[scope])
			if scope != "*" {
				names = append(names, scopes["*"]...)
			}
			slices.Sort(names)
			names = slices.Compact(names)
			if len(names) > 1 && slices.Contains(names, nameOf(c.object)) {
				return c.said(fmt.Sprintf("spec.hosts[%d]", i), strings.Join(names, ","), scope+"/"+full)
			}
		}
	}
	return verdict{}
}

func nameOf(o *world.Object) string {
	return o.ID.Namespace + "/" + o.ID.Name
}

// sharesHost says whether another VirtualService of the mesh may define a host of this one.
func (r *run) sharesHost(o *world.Object) bool {
	return slices.ContainsFunc(listAt(o, "spec", "hosts"), func(h string) bool {
		names := map[string]bool{}
		for _, exported := range r.hostsOfMesh()[fqdn(h, o.ID.Namespace)] {
			for _, name := range exported {
				names[name] = true
			}
		}
		return len(names) > 1
	})
}

// hostsOfMesh lists the VirtualServices of sidecars by host and by the namespace that they are exported to.
func (r *run) hostsOfMesh() map[string]map[string][]string {
	if r.meshHosts != nil {
		return r.meshHosts
	}
	all := map[string]map[string][]string{}
	r.meshHosts = all
	for _, o := range r.world.Of(istioNetworking, "VirtualService") {
		spec, ok := specOf[*networking.VirtualService](o)
		if !ok || len(spec.Gateways) > 0 && !slices.Contains(spec.Gateways, "mesh") {
			continue
		}
		for _, h := range spec.Hosts {
			full := fqdn(h, o.ID.Namespace)
			if all[full] == nil {
				all[full] = map[string][]string{}
			}
			for _, scope := range scopesOf(spec.ExportTo, o.ID.Namespace) {
				all[full][scope] = append(all[full][scope], nameOf(o))
			}
		}
	}
	return all
}

// scopesOf are the namespaces that something is exported to.
func scopesOf(exportTo []string, home string) []string {
	if len(exportTo) == 0 || slices.Contains(exportTo, "*") {
		return []string{"*"}
	}
	scopes := slices.Clone(exportTo)
	for i, s := range scopes {
		if s == "." {
			scopes[i] = home
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// sharedEntry judges that ServiceEntries give one port several protocols. The analyzer names any one of several ports.
func (r *run) sharedEntry(c *claim) verdict {
	mine, _ := specOf[*networking.ServiceEntry](c.object)
	for _, h := range mine.GetHosts() {
		for _, p := range mine.GetPorts() {
			names, protocols := []string{}, []string{}
			for _, o := range r.index().entries[h] {
				entry, ok := specOf[*networking.ServiceEntry](o)
				if !ok || !meet(scopesOf(entry.ExportTo, o.ID.Namespace), scopesOf(mine.ExportTo, c.namespace())) {
					continue
				}
				for _, other := range entry.Ports {
					if other.GetNumber() == p.GetNumber() {
						names, protocols = append(names, nameOf(o)), append(protocols, strings.ToUpper(other.GetProtocol()))
					}
				}
			}
			if protocols = unique(protocols); len(protocols) > 1 {
				return c.said("spec.ports", strings.Join(unique(names), ", "), h, int(p.GetNumber()), strings.Join(protocols, ", "))
			}
		}
	}
	return c.kept()
}

func unique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// meet says whether two exports reach a namespace together.
func meet(a, b []string) bool {
	return slices.Contains(a, "*") || slices.Contains(b, "*") || slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// sharedWorkload keeps one message of those that say the same of several Pods, that of the first: the Pods of one Deployment have all the same Sidecars.
func (r *run) sharedWorkload(c *claim) verdict {
	v := c.kept()
	v.group = c.parameter(0)
	return v
}

// sharedPort judges that Gateways serve the same hosts on the same port. While it compares them, the analyzer adds the hosts of each to those of the
// others, and then names Gateways that have nothing to do with the matter.
func (r *run) sharedPort(c *claim) verdict {
	mine, _ := specOf[*networking.Gateway](c.object)
	at := slices.IndexFunc(mine.GetServers(), func(s *networking.Server) bool {
		return number(s.GetPort().GetNumber()) == c.parameter(2) && strings.Join(s.Hosts, ",") == c.parameter(3)
	})
	if at < 0 {
		return c.kept()
	}
	var names []string
	for name := range strings.SplitSeq(c.parameter(0), ",") {
		namespace, short, _ := strings.Cut(name, "/")
		o := r.find(istioNetworking, "Gateway", namespace, short)
		if o == nil {
			continue
		}
		if other, ok := specOf[*networking.Gateway](o); ok && slices.ContainsFunc(other.Servers, func(s *networking.Server) bool { return clash(s, mine.Servers[at]) }) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return verdict{}
	}
	return c.said(fmt.Sprintf("spec.servers[%d].hosts", at), strings.Join(names, ","), c.parameter(1), c.parameter(2), c.parameter(3))
}

// clash says whether two servers listen at the same place for a host.
func clash(a, b *networking.Server) bool {
	return a.GetPort().GetNumber() == b.GetPort().GetNumber() && a.Bind == b.Bind &&
		slices.ContainsFunc(a.Hosts, func(h string) bool { return slices.Contains(b.Hosts, h) })
}

// subsetAtGateway judges that a route through a gateway ignores the subsets of another VirtualService. The analyzer compares hosts as they are
// written, so two Services of one name in two namespaces are one to it.
func (r *run) subsetAtGateway(c *claim) verdict {
	namespace, name, _ := strings.Cut(c.parameter(0), "/")
	other := r.find(istioNetworking, "VirtualService", namespace, name)
	if other == nil || other == c.object {
		return verdict{}
	}
	mine, _ := specOf[*networking.VirtualService](c.object)
	theirs, _ := specOf[*networking.VirtualService](other)
	for i, route := range mine.GetHttp() {
		for j, d := range route.GetRoute() {
			host := fqdn(d.GetDestination().GetHost(), c.namespace())
			there := slices.ContainsFunc(theirs.GetHosts(), func(h string) bool { return fqdn(h, namespace) == host })
			if there && d.GetDestination().GetSubset() == "" {
				return c.at(fmt.Sprintf("spec.http[%d].route[%d].destination.host", i, j))
			}
		}
	}
	return verdict{}
}
