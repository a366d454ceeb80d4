package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// unreachedRoute finds VirtualServices and entries of them that Istio leaves out of the configuration of every proxy. A gateway that does not exist or does not take
// the host is for IST0101 and IST0132 to say, what an earlier route shadows for MOOR051, and what exportTo hides for MOOR052.
var unreachedRoute = meshRule{
	Rule: Rule{
		Code: "MOOR055", Level: Error,
		Title: "no proxy gets the route",
		Mend:  "let it match what some proxy serves, or remove it",
	},
	check: func(ctx context.Context, v *view) {
		t := v.proxies(ctx, true)
		if t == nil {
			return
		}
		u := &unreached{view: v, seen: map[proxy.Source]bool{}, cutOff: map[proxy.Source]bool{}, roots: map[*world.Object]bool{}}
		for _, c := range t.configs {
			for vh, i := range c.Routes {
				r := vh.Routes[i]
				u.seen[entryOf(r.From)], u.seen[entryOf(r.Root)], u.roots[r.Root.Object] = true, true, true
			}
		}
		for _, o := range t.cutOff() {
			u.cutOff[entryOf(o.from)] = true
		}
		for o, spec := range specs[*networking.VirtualService](v, networkingGroup, "VirtualService") {
			if len(spec.Hosts) == 0 {
				continue // a delegate is looked at with its root
			}
			u.whole(o, spec)
			for i, entry := range spec.Http {
				u.entry(o, spec, i, entry)
			}
		}
	},
}

// unreached is what is looked at for one world.
type unreached struct {
	*view
	// seen are the entries that some proxy has, cutOff those behind one that takes all; neither has a match.
	seen, cutOff map[proxy.Source]bool
	// roots are the VirtualServices that some proxy has routes of.
	roots map[*world.Object]bool
}

func entryOf(s proxy.Source) proxy.Source {
	return proxy.Source{Object: s.Object, HTTP: s.HTTP, Match: -1}
}

// entry of a root that no proxy has.
func (u *unreached) entry(o *world.Object, spec *networking.VirtualService, i int, entry *networking.HTTPRoute) {
	this := proxy.Source{Object: o, HTTP: i, Match: -1}
	if entry == nil || u.cutOff[this] {
		return
	}
	if d := entry.GetDelegate(); d != nil {
		u.delegate(o, this, d)
		return
	}
	if u.seen[this] || len(entry.Match) == 0 {
		return
	}
	bound := boundTo(o, spec)
	for _, m := range entry.Match {
		named := resolveGateways(o, m.GetGateways())
		if len(named) == 0 || slices.ContainsFunc(named, func(g string) bool { return slices.Contains(bound, g) }) {
			return
		}
	}
	u.report(o, problem{
		Field: this.Field(),
		Message: fmt.Sprintf("no proxy gets it: it matches requests on %s only, and the VirtualService is for %s",
			strings.Join(entry.Match[0].Gateways, ", "), strings.Join(bound, ", ")),
		Mend: "name gateways in match that are in spec.gateways too",
	})
}

// delegate that is not there, may not be seen, or whose matches have nothing in common with those of the root.
func (u *unreached) delegate(o *world.Object, this proxy.Source, d *networking.Delegate) {
	id := render.ID{Group: networkingGroup, Kind: "VirtualService", Namespace: d.Namespace, Name: d.Name}
	if id.Namespace == "" {
		id.Namespace = o.ID.Namespace
	}
	field := this.Field() + ".delegate"
	to := u.Find(id)
	switch {
	case to == nil && !u.Knows(networkingGroup, "VirtualService", id.Namespace):
		u.unknown("the delegate "+id.String(), u.Why(networkingGroup, "VirtualService"))
	case to == nil:
		u.report(o, problem{
			Field: field, Message: "no proxy gets it: there is no " + id.String() + " to delegate to", Mend: "correct the name, or write the delegate",
		})
	case len(hostsOf(to)) > 0:
		u.report(o, problem{
			Field: field, Message: fmt.Sprintf("no proxy gets it: %s has hosts, and so it is no delegate", id), Mend: "remove spec.hosts of the delegate",
		})
	case !proxy.Exported(exportToOf(to), to.ID.Namespace, o.ID.Namespace):
		u.report(o, problem{
			Field:   field,
			Message: fmt.Sprintf("no proxy gets it: exportTo of %s (%s) leaves out %s", id, strings.Join(exportToOf(to), ", "), o.ID.Namespace),
			Mend:    "add " + dotOr(o.ID.Namespace, to.ID.Namespace) + " to exportTo of the delegate",
		})
	case u.roots[o] && u.onlyRoot(id):
		u.conflicts(to, this)
	}
}

// conflicts are entries of a delegate that match what the root does not hand over: Istio drops them.
func (u *unreached) conflicts(delegate *world.Object, root proxy.Source) {
	spec, ok := specOf[*networking.VirtualService](delegate)
	if !ok {
		return
	}
	for i, entry := range spec.Http {
		this := proxy.Source{Object: delegate, HTTP: i, Match: -1}
		if entry == nil || u.seen[this] || u.cutOff[this] || conditional(entry) || len(entry.Match) == 0 {
			continue
		}
		u.report(delegate, problem{
			Field:   this.Field(),
			Message: fmt.Sprintf("no proxy gets it: its matches are not within those of %s of %s, which delegates to it", root.Field(), root.Object.ID),
			Mend:    "match what the root matches, and less of it: a prefix below the root's prefix, no regular expression where the root has one, and all of the root's headers",
		})
	}
}

// conditional says that an entry asks something of the proxy, such as labels.
func conditional(entry *networking.HTTPRoute) bool {
	return slices.ContainsFunc(entry.Match, func(m *networking.HTTPMatchRequest) bool {
		return len(m.GetGateways()) > 0 || len(m.GetSourceLabels()) > 0 || m.GetSourceNamespace() != "" || m.GetPort() != 0
	})
}

// onlyRoot says that one entry alone delegates to it: what does not go with one root may go with another.
func (u *unreached) onlyRoot(delegate render.ID) bool {
	roots := 0
	for o, spec := range specs[*networking.VirtualService](u.view, networkingGroup, "VirtualService") {
		for _, entry := range spec.Http {
			d := entry.GetDelegate()
			if d != nil && d.Name == delegate.Name && (d.Namespace == delegate.Namespace || d.Namespace == "" && o.ID.Namespace == delegate.Namespace) {
				roots++
				if conditional(entry) {
					return false
				}
			}
		}
	}
	return roots == 1
}

func hostsOf(o *world.Object) []string {
	spec, _ := specOf[*networking.VirtualService](o)
	return spec.GetHosts()
}

// boundTo are the gateways of a VirtualService, by namespace and name.
func boundTo(o *world.Object, spec *networking.VirtualService) []string {
	if len(spec.Gateways) == 0 {
		return []string{"mesh"}
	}
	return resolveGateways(o, spec.Gateways)
}

func resolveGateways(o *world.Object, names []string) []string {
	var out []string
	for _, name := range names {
		if name != "mesh" && !strings.Contains(name, "/") {
			name = o.ID.Namespace + "/" + name
		}
		out = append(out, name)
	}
	return out
}
