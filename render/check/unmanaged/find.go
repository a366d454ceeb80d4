package unmanaged

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// Find what bears on these objects, which are those of one Mooring: as they live ([Owned]), or as it wants them. What it wants is never a
// finding. Sorted by object.
func (n *Neighbourhood) Find(owned []*render.Content) []Finding {
	if len(n.strays) == 0 || len(owned) == 0 {
		return nil
	}
	e := n.estate(owned)
	var found []Finding
	for _, o := range n.strays {
		if e.own[o.id] {
			continue
		}
		b := e.judge(o)
		if b.why == "" {
			continue
		}
		found = append(found, Finding{
			Object: o.id, Hosts: sorted(b.hosts), Workloads: sorted(b.workloads), Why: b.why,
			Writers: writers(o.content.Unstructured()), Created: o.content.Unstructured().GetCreationTimestamp().Time,
		})
	}
	return found
}

// bearing is what an object bears on, and why. The first reason is the one that is told.
type bearing struct {
	hosts, workloads map[string]bool
	why              string
}

func (b *bearing) host(name, why string, args ...any) {
	note(&b.hosts, name)
	if b.why == "" {
		b.why = fmt.Sprintf(why, args...)
	}
}

// note a name; most objects bear on nothing.
func note(names *map[string]bool, name string) {
	if *names == nil {
		*names = map[string]bool{}
	}
	(*names)[name] = true
}

func (e *estate) judge(o *object) *bearing {
	b := &bearing{}
	switch {
	case o.is("VirtualService"):
		e.route(b, o)
	case o.is("DestinationRule"):
		e.rule(b, o)
	case o.is("ServiceEntry"):
		e.entry(b, o)
	case o.is("Gateway"):
		e.gateway(b, o)
	case o.is("WorkloadEntry"):
		e.endpoint(b, o)
	default:
		e.policy(b, o)
	}
	return b
}

// route judges a VirtualService.
func (e *estate) route(b *bearing, o *object) {
	for _, h := range o.hosts {
		claims := e.overlapping(h)
		if len(claims) == 0 {
			continue
		}
		gateways, only := o.boundTo(), o.onlyFor()
		inSidecars := slices.Contains(gateways, meshGateway)
		slices.SortStableFunc(claims, func(x, y claim) int { return rank(x, "VirtualService") - rank(y, "VirtualService") })
		for _, c := range claims {
			switch {
			case c.by.is("VirtualService"):
				common := common(gateways, c.by.boundTo())
				if common == "" || !covers(c.host, h) {
					continue // the Mooring's host is the more exact one, and wins
				}
				b.host(h, "%s%s", rivalry(h, c, common), only)
			case c.by.is("Gateway"):
				if h == c.host && h != "*" && slices.Contains(gateways, c.by.id.Namespace+"/"+c.by.id.Name) {
					b.host(h, "routes a host that %s serves%s", c.by.id, only)
				}
			case covers(c.host, h):
				b.host(h, "routes a host that %s is for%s", c.by.id, only)
			case inSidecars && !e.routed[c.host]:
				b.host(c.host, "routes %s, and with it a host that %s is for%s", h, c.by.id, only)
			}
		}
	}
}

// rivalry of two VirtualServices says what Istio makes of them.
func rivalry(h string, c claim, gateway string) string {
	switch {
	case h != c.host:
		return fmt.Sprintf("takes %s out of the hosts of %s: the more exact host wins", h, c.by.id)
	case gateway == meshGateway:
		return fmt.Sprintf("is a second VirtualService for the host of %s: sidecars take the older of the two and leave the other out", c.by.id)
	}
	return fmt.Sprintf("is a second VirtualService for the host of %s on gateway %s: the routes of both are joined, the older object's first", c.by.id, gateway)
}

// rule judges a DestinationRule.
func (e *estate) rule(b *bearing, o *object) {
	h := o.hosts[0]
	claims := e.overlapping(h)
	if len(claims) == 0 {
		return
	}
	only := o.onlyFor()
	slices.SortStableFunc(claims, func(x, y claim) int { return rank(x, "DestinationRule") - rank(y, "DestinationRule") })
	for _, c := range claims {
		switch {
		case c.by.is("Gateway"):
		case c.by.is("DestinationRule") && h == c.host && o.id.Namespace == c.by.id.Namespace:
			b.host(h, "is a second DestinationRule for the host of %s: the subsets of both are joined, and the traffic policy is the older one's%s", c.by.id, only)
		case c.by.is("DestinationRule") && h == c.host:
			b.host(h, "is a second DestinationRule for the host of %s: clients in namespace %s take this one%s", c.by.id, o.id.Namespace, only)
		case c.by.is("DestinationRule"):
			if covers(c.host, h) {
				b.host(h, "takes %s out of the hosts of %s: the more exact host wins%s", h, c.by.id, only)
			}
		case covers(c.host, h):
			b.host(h, "sets traffic policy and subsets of a host that %s is for%s", c.by.id, only)
		case !e.hasRule(c.host):
			b.host(c.host, "sets the traffic policy of %s, and with it of a host that %s is for%s", h, c.by.id, only)
		}
	}
}

func (e *estate) hasRule(host string) bool {
	return slices.ContainsFunc(e.exact[host], func(c claim) bool { return c.by.is("DestinationRule") })
}

// entry judges a ServiceEntry.
func (e *estate) entry(b *bearing, o *object) {
	for _, h := range o.hosts {
		for _, c := range e.overlapping(h) {
			if !c.by.is("Gateway") && covers(c.host, h) {
				b.host(h, "gives a host that %s is for endpoints and ports of its own%s", c.by.id, o.onlyFor())
			}
		}
	}
}

// gateway judges a Gateway: one that a route of the Mooring is bound to, or one beside a Gateway of the Mooring.
func (e *estate) gateway(b *bearing, o *object) {
	name := o.id.Namespace + "/" + o.id.Name
	for _, h := range o.hosts {
		for _, c := range e.overlapping(h) {
			exact := c.host
			if covers(c.host, h) {
				exact = h
			}
			switch {
			case c.by.is("VirtualService") && slices.Contains(c.by.boundTo(), name):
				b.host(exact, "is the Gateway that %s is bound to: it says on which ports, and with which certificates, the host is served", c.by.id)
			case c.by.is("Gateway") && agree(o.selector(), c.by.selector()):
				b.host(exact, "serves a host of %s on the same pods: where ports collide, one of the two is left out", c.by.id)
			}
		}
	}
}

// agree says whether two selectors may pick the same pods. Without labels one picks all.
func agree(x, y map[string]string) bool {
	for key, value := range x {
		if other, ok := y[key]; ok && other != value {
			return false
		}
	}
	if len(x) == 0 || len(y) == 0 {
		return true
	}
	for key := range x {
		if _, ok := y[key]; ok {
			return true
		}
	}
	return false // of two that name different labels nobody knows
}

// endpoint judges a WorkloadEntry.
func (e *estate) endpoint(b *bearing, o *object) {
	labels := o.texts("spec", "labels")
	for _, s := range slices.Concat(e.services[o.id.Namespace], e.entries[o.id.Namespace]) {
		if len(s.selector) == 0 || !within(s.selector, labels) {
			continue
		}
		for _, h := range s.hosts {
			if claims := e.exact[h]; len(claims) > 0 {
				b.host(h, "adds the endpoint %s to a host that %s is for", o.text("spec", "address"), claims[0].by.id)
			}
		}
	}
}

// rank puts claims by objects of a kind first.
func rank(c claim, kind string) int {
	if c.by.is(kind) {
		return 0
	}
	return 1
}

// common gateway of two VirtualServices; empty when there is none.
func common(x, y []string) string {
	for _, name := range x {
		if slices.Contains(y, name) {
			return name
		}
	}
	return ""
}

// onlyFor says which clients see an object that is not for all.
func (o *object) onlyFor() string {
	to := o.list("spec", "exportTo")
	if len(to) == 0 || slices.Contains(to, "*") {
		return ""
	}
	for i, namespace := range to {
		if namespace == "." {
			to[i] = o.id.Namespace
		}
	}
	return ", for clients in namespace " + strings.Join(to, ", ") + " alone"
}
