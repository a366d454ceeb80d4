package unmanaged

import (
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// estate is what a Mooring has, as far as others can bear on it.
type estate struct {
	*Neighbourhood
	own map[render.ID]bool
	// exact are the claims to hosts by name, stars those to many at once.
	exact map[string][]claim
	stars []claim
	// reached are the workloads, by namespace.
	reached map[string][]*reached
	// policies of the kinds of which one object wins.
	policies []*object
}

// claim to a host.
type claim struct {
	host string
	by   *object
}

// reached is a workload, and those hosts of the Mooring that it answers for. There are none when it is the Mooring's own, and behind no host.
type reached struct {
	*workload
	hosts []string
}

func (n *Neighbourhood) estate(owned []*render.Content) *estate {
	e := &estate{Neighbourhood: n, own: make(map[render.ID]bool, len(owned)), exact: map[string][]claim{}, reached: map[string][]*reached{}}
	var bound []*object // what says which gateways serve hosts
	for _, c := range owned {
		o := newObject(c)
		e.own[o.id] = true
		for _, h := range o.hosts {
			e.claim(claim{h, o})
		}
		switch {
		case o.is("VirtualService"), o.is("Gateway"):
			bound = append(bound, o)
		case o.is("Sidecar"), o.id.Kind == "PeerAuthentication":
			e.policies = append(e.policies, o)
		}
	}
	e.reach(bound)
	return e
}

func (e *estate) claim(c claim) {
	if strings.HasPrefix(c.host, "*") {
		e.stars = append(e.stars, c)
		return
	}
	e.exact[c.host] = append(e.exact[c.host], c)
}

// overlapping are the claims that have a host in common with this one.
func (e *estate) overlapping(h string) []claim {
	found := slices.Clone(e.exact[h])
	for _, c := range e.stars {
		if covers(c.host, h) || covers(h, c.host) {
			found = append(found, c)
		}
	}
	if strings.HasPrefix(h, "*") {
		for name, claims := range e.exact {
			if covers(h, name) {
				found = append(found, claims...)
			}
		}
	}
	return found
}

// reach finds the workloads: the Mooring's own, those behind its hosts, and the gateways that serve them.
func (e *estate) reach(bound []*object) {
	hosts := map[*workload]map[string]bool{}
	add := func(w *workload, host string) {
		if hosts[w] == nil {
			hosts[w] = map[string]bool{}
		}
		if host != "" {
			hosts[w][host] = true
		}
	}
	for namespace, all := range e.workloads {
		for _, w := range all {
			if e.own[w.id] {
				add(w, "")
			}
		}
		for _, s := range e.services[namespace] {
			name := s.hosts[0]
			if len(e.exact[name]) == 0 || len(s.selector) == 0 {
				continue
			}
			for _, w := range all {
				if within(s.selector, w.labels) {
					add(w, name)
				}
			}
		}
	}
	for gateway, served := range e.serving(bound) {
		for _, w := range e.selectedAnywhere(gateway.selector) {
			for _, h := range served {
				add(w, h)
			}
		}
	}
	for w, names := range hosts {
		e.reached[w.id.Namespace] = append(e.reached[w.id.Namespace], &reached{w, sorted(names)})
	}
}

// serving are the Gateways, whoever has them, and the Mooring's hosts that they serve.
func (e *estate) serving(bound []*object) map[*place][]string {
	found := map[*place][]string{}
	for _, o := range bound {
		if o.is("Gateway") {
			found[placeOf(o)] = o.hosts
			continue
		}
		for _, name := range o.boundTo() {
			if g := e.gatewayNamed(name); g != nil && !e.own[g.id] {
				found[g] = append(found[g], o.hosts...)
			}
		}
	}
	return found
}

// gatewayNamed is a Gateway by namespace/name; nil when there is none.
func (n *Neighbourhood) gatewayNamed(name string) *place {
	namespace, name, _ := strings.Cut(name, "/")
	for _, g := range n.gateways[namespace] {
		if g.id.Name == name {
			return g
		}
	}
	return nil
}

// selectedAnywhere are the workloads of all namespaces that labels pick: a Gateway is for pods wherever they are. One without labels is for all, which
// says nothing about anybody.
func (n *Neighbourhood) selectedAnywhere(selector map[string]string) []*workload {
	if len(selector) == 0 {
		return nil
	}
	var found []*workload
	for _, all := range n.workloads {
		for _, w := range all {
			if within(selector, w.labels) {
				found = append(found, w)
			}
		}
	}
	return found
}

func sorted(set map[string]bool) []string {
	all := make([]string, 0, len(set))
	for s := range set {
		all = append(all, s)
	}
	slices.Sort(all)
	return all
}
