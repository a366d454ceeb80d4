package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render/check/proxy"
)

// routeToNothing finds destinations that exist, but not as the proxy that gets the route is told of them. That a host, a port that is written or a
// subset exists nowhere at all is what IST0101 says, and that a port is missing IST0112; neither is repeated.
var routeToNothing = meshRule{
	Rule: Rule{
		Code: "MOOR050", Level: Error,
		Title: "the route leads to a cluster that the proxy does not have",
		Mend:  "let the destination name what the proxies know",
	},
	check: func(ctx context.Context, v *view) {
		t := v.proxies(ctx, false)
		if t == nil {
			return
		}
		var faults faultsByField
		alive := t.aliveSomewhere()
		for d := range t.deadRoutes {
			message, mend := t.whyNothing(v, d)
			if message == "" {
				continue
			}
			o := d.target.Source.Object
			p := problem{Field: d.target.Field, Message: d.callers() + ": " + message, Mend: mend}
			meant := !d.mirror() && concerns(o, exportToOf(o), d.config.Proxy) && !alive[o.ID.String()+d.target.Field+d.config.Proxy.String()]
			faults.add(o, p, meant)
		}
		faults.report(v)
	},
}

// aliveSomewhere are the destinations that work for a proxy on some port: what is wrong on another is less sure to hurt.
func (t *traffic) aliveSomewhere() map[string]bool {
	out := map[string]bool{}
	for _, c := range t.configs {
		for vh, i := range c.Routes {
			for _, target := range vh.Routes[i].Targets {
				if target.Exists && t.meant(c, vh, vh.Routes[i]) {
					out[target.Source.Object.ID.String()+target.Field+c.Proxy.String()] = true
				}
			}
		}
	}
	return out
}

// whyNothing says why the proxy has no such cluster; empty where that is not this rule's to say, or not certain.
func (t *traffic) whyNothing(v *view, d deadRoute) (message, mend string) {
	visible := t.visible(d)
	if len(visible) == 0 {
		return "", "" // MOOR053
	}
	s := visible[0]
	name := s.Object.ID.String()
	if s.ExternalName != "" {
		if len(t.mesh.Services(s.ExternalName)) > 0 {
			return "", ""
		}
		return fmt.Sprintf("%s is only another name for %s, and no ServiceEntry has that host", name, s.ExternalName),
			"write a ServiceEntry for " + s.ExternalName + " and route to that"
	}
	if !d.config.Knows(d.target.Host) {
		return "", "" // MOOR053
	}
	if !s.Has(d.target.Port) {
		if d.written.GetPort() != nil || len(s.Ports) != 1 {
			return "", "" // IST0101 and IST0112
		}
		return fmt.Sprintf("without a port the route leads to port %d, where the request came in, and %s has port %d only", d.target.Port, name, s.Ports[0]),
			"write port: {number: " + strconv.Itoa(int(s.Ports[0])) + "} in the destination"
	}
	if slices.Contains(s.UDP, uint32(d.target.Port)) {
		return fmt.Sprintf("port %d of %s is UDP, which no proxy routes", d.target.Port, name), "route to a port that is not UDP"
	}
	if d.target.Subset != "" && !s.Selector || d.target.Subset != "" && s.Object.ID.Kind == "Service" {
		return t.whyNoSubset(v, d, s)
	}
	return "", ""
}

// whyNoSubset tells which rule has the subset, and why it does not count. That none has it is for IST0101 to say.
func (t *traffic) whyNoSubset(v *view, d deadRoute, s proxy.Service) (message, mend string) {
	from := d.config.Proxy.Namespace
	usedNamespace, usedName := d.config.Rule(d.target.Host)
	for o, spec := range specs[*networking.DestinationRule](v, networkingGroup, "DestinationRule") {
		has := slices.ContainsFunc(spec.Subsets, func(one *networking.Subset) bool { return one.GetName() == d.target.Subset })
		if !has || proxy.Resolve(spec.Host, o) != d.target.Host {
			continue
		}
		subset := fmt.Sprintf("subset %s of %s is in %s, ", d.target.Subset, d.target.Host, o.ID)
		switch {
		case o.ID.Namespace == usedNamespace && o.ID.Name == usedName:
			return subset + "and no endpoint has its labels", "give an endpoint of " + s.Object.ID.String() + " the labels of the subset"
		case !proxy.Exported(spec.ExportTo, o.ID.Namespace, from):
			return subset + "whose exportTo (" + strings.Join(spec.ExportTo, ", ") + ") leaves them out",
				"add " + dotOr(from, o.ID.Namespace) + " to exportTo of " + o.ID.String()
		case usedName != "":
			return fmt.Sprintf("%swhich gives way to DestinationRule/%s/%s", subset, usedNamespace, usedName),
				fmt.Sprintf("write the subset into DestinationRule/%s/%s", usedNamespace, usedName)
		default:
			return subset + "where only the proxies of that namespace look for it",
				"move the DestinationRule to namespace " + s.Object.ID.Namespace + ", where the service is"
		}
	}
	return "", ""
}
