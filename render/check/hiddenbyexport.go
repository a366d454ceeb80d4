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

// hiddenByExport finds rules that their own exportTo keeps from the proxies that they are written for. A ServiceEntry that is made for other namespaces
// only is a common way to keep such in one place, and nothing is said of it.
var hiddenByExport = meshRule{
	Rule: Rule{
		Code: "MOOR052", Level: Warning,
		Title: "exportTo hides it from those that it is for",
		Mend:  "add the namespace to exportTo",
	},
	check: func(ctx context.Context, v *view) {
		t := v.proxies(ctx, true)
		for o, spec := range specs[*networking.DestinationRule](v, networkingGroup, "DestinationRule") {
			v.hiddenFromOwn(o, []string{spec.Host}, spec.ExportTo)
			v.hiddenFromAll(o, spec.ExportTo)
		}
		for o, spec := range specs[*networking.VirtualService](v, networkingGroup, "VirtualService") {
			if slices.Contains(boundTo(o, spec), "mesh") {
				v.hiddenFromOwn(o, spec.Hosts, spec.ExportTo)
			} else if t != nil && len(spec.Hosts) > 0 {
				v.hiddenFromGateways(t, o, spec)
			}
			v.hiddenFromAll(o, spec.ExportTo)
		}
		for o, spec := range specs[*networking.ServiceEntry](v, networkingGroup, "ServiceEntry") {
			v.hiddenFromAll(o, spec.ExportTo)
		}
	},
}

// hiddenFromOwn looks at what is written for a Service of its own namespace, and is not for the proxies of that namespace.
func (v *view) hiddenFromOwn(o *world.Object, hosts, exportTo []string) {
	if len(exportTo) == 0 || proxy.Exported(exportTo, o.ID.Namespace, o.ID.Namespace) {
		return
	}
	for _, name := range hosts {
		service, rest, _ := strings.Cut(proxy.Resolve(name, o), ".")
		if rest != o.ID.Namespace+".svc.cluster.local" || v.Find(render.ID{Kind: "Service", Namespace: o.ID.Namespace, Name: service}) == nil {
			continue
		}
		v.report(o, problem{
			Field: "spec.exportTo",
			Message: fmt.Sprintf("it is for Service/%s/%s, and the proxies of %s, where both are, do not get it: it is exported to %s only",
				o.ID.Namespace, service, o.ID.Namespace, strings.Join(exportTo, ", ")),
			Mend: `add "." to exportTo`,
		})
		return
	}
}

// hiddenFromAll looks for namespaces that do not exist. Only a cluster knows them all.
func (v *view) hiddenFromAll(o *world.Object, exportTo []string) {
	if len(exportTo) == 0 || !v.Live() || !v.Knows("", "Namespace", "") {
		return
	}
	for _, namespace := range exportTo {
		if namespace == "*" || namespace == "." || namespace == "~" || v.Find(render.ID{Kind: "Namespace", Name: namespace}) != nil {
			return
		}
	}
	v.report(o, problem{
		Field:   "spec.exportTo",
		Message: fmt.Sprintf("no proxy gets it: there is no namespace %s", strings.Join(exportTo, " and no namespace ")),
		Mend:    "correct the name of the namespace",
	})
}

// hiddenFromGateways looks at a VirtualService that is for gateways alone.
func (v *view) hiddenFromGateways(t *traffic, o *world.Object, spec *networking.VirtualService) {
	if len(spec.ExportTo) == 0 || slices.Contains(spec.ExportTo, "*") {
		return
	}
	var hidden []string
	for _, name := range boundTo(o, spec) {
		for _, c := range t.configs {
			if !slices.Contains(c.Gateways(), name) {
				continue
			}
			if c.Proxy.Assumed {
				v.unknown("exportTo of "+o.ID.String(), "nobody knows in which namespace the gateway "+name+" runs")
				return
			}
			if proxy.Exported(spec.ExportTo, o.ID.Namespace, c.Proxy.Namespace) {
				return
			}
			if !slices.Contains(hidden, c.Proxy.Namespace) {
				hidden = append(hidden, c.Proxy.Namespace)
			}
		}
	}
	if len(hidden) == 0 {
		return
	}
	v.report(o, problem{
		Field: "spec.exportTo",
		Message: fmt.Sprintf("no gateway gets it: those that it names run in %s, and it is exported to %s only",
			strings.Join(hidden, ", "), strings.Join(spec.ExportTo, ", ")),
		Mend: "add " + dotOr(hidden[0], o.ID.Namespace) + " to exportTo",
	})
	v.findings[len(v.findings)-1].Level = Error
}
