package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/render/check/world"
)

// hiddenDestination finds routes that a proxy gets to services that it may not know.
var hiddenDestination = meshRule{
	Rule: Rule{
		Code: "MOOR053", Level: Error,
		Title: "the destination is hidden from the proxies that get the route",
		Mend:  "export the destination to the callers, or the route to fewer of them",
	},
	check: func(ctx context.Context, v *view) {
		t := v.proxies(ctx, false)
		if t == nil {
			return
		}
		var faults faultsByField
		for d := range t.deadRoutes {
			o, from := d.target.Source.Object, d.config.Proxy.Namespace
			p := problem{Field: d.target.Field}
			visible := t.visible(d)
			switch {
			case len(visible) == 0 && d.config.Proxy.Assumed:
				v.unknown(fmt.Sprintf("%s of %s", d.target.Field, o.ID),
					fmt.Sprintf("%s is not exported to all namespaces, and nobody knows in which one the gateway runs", d.services[0].Object.ID))
				continue
			case len(visible) == 0:
				hides := d.services[0].Object
				p.Message = fmt.Sprintf("%s: %s hides it from them (exportTo %s)", d.callers(), hides.ID, strings.Join(hiding(hides), ", "))
				p.Mend = "add " + dotOr(from, hides.ID.Namespace) + " to exportTo of " + hides.ID.String() + ", or export the VirtualService to fewer namespaces"
			case visible[0].ExternalName == "" && !d.config.Knows(d.target.Host):
				namespace, name := d.config.Sidecar()
				if name == "" {
					continue
				}
				p.Message = fmt.Sprintf("%s: Sidecar/%s/%s hides %s from it", d.callers(), namespace, name, d.target.Host)
				p.Mend = fmt.Sprintf("add %s/%s to egress hosts of Sidecar/%s/%s", visible[0].Object.ID.Namespace, d.target.Host, namespace, name)
			default:
				continue
			}
			faults.add(o, p, !d.mirror() && concerns(o, exportToOf(o), d.config.Proxy))
		}
		faults.report(v)
	},
}

// hiding is the exportTo that keeps an object to itself, or what stands for it in the mesh's configuration.
func hiding(o *world.Object) []string {
	if to := exportToOf(o); len(to) > 0 {
		return to
	}
	return []string{"of the mesh's defaults"}
}
