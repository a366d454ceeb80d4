package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// deadRoute is a destination whose cluster a proxy does not have although it gets the route: the answer is 503 (NC).
type deadRoute struct {
	config *proxy.Config
	host   *proxy.VirtualHost
	target proxy.Target
	// written is the destination as it stands in the VirtualService.
	written *networking.Destination
	// services of the target's host, of all namespaces; there is one at least.
	services []proxy.Service
}

// deadRoutes of all proxies. A host that no Service and no ServiceEntry has is left to IST0101, and so is a host that nobody can know of.
func (t *traffic) deadRoutes(yield func(deadRoute) bool) {
	for _, c := range t.configs {
		for vh, i := range c.Routes {
			for _, target := range vh.Routes[i].Targets {
				if target.Exists || target.Field == "" || !t.meant(c, vh, vh.Routes[i]) {
					continue
				}
				d := deadRoute{config: c, host: vh, target: target, written: destinationAt(target)}
				if d.written == nil {
					continue
				}
				d.services = t.mesh.Services(proxy.Resolve(d.written.Host, target.Source.Object))
				if len(d.services) > 0 && !yield(d) {
					return
				}
			}
		}
	}
}

// meant says whether requests for the virtual host are to be expected. On port 80 sidecars get a virtual host for every VirtualService, also where the service has
// no such port or the proxy does not know it; such a name is called only if it is one of the outside world.
func (t *traffic) meant(c *proxy.Config, vh *proxy.VirtualHost, r proxy.Route) bool {
	if c.Proxy.Gateway || vh.Served {
		return true
	}
	outside := len(t.mesh.Services(vh.Host)) == 0 && !strings.HasSuffix(vh.Host, ".svc.cluster.local") && strings.Contains(vh.Host, ".")
	return outside && concerns(r.Root.Object, exportToOf(r.Root.Object), c.Proxy)
}

// destinationAt is what stands at the field of a target.
func destinationAt(t proxy.Target) *networking.Destination {
	spec, ok := specOf[*networking.VirtualService](t.Source.Object)
	if !ok || t.Source.HTTP >= len(spec.Http) {
		return nil
	}
	entry := spec.Http[t.Source.HTTP]
	for i, r := range entry.GetRoute() {
		if t.Field == fmt.Sprintf("%s.route[%d].destination", t.Source.Field(), i) {
			return r.GetDestination()
		}
	}
	for i, m := range entry.GetMirrors() {
		if t.Field == fmt.Sprintf("%s.mirrors[%d].destination", t.Source.Field(), i) {
			return m.GetDestination()
		}
	}
	return entry.GetMirror()
}

func exportToOf(o *world.Object) []string {
	switch o.ID.Kind {
	case "VirtualService":
		spec, _ := specOf[*networking.VirtualService](o)
		return spec.GetExportTo()
	case "DestinationRule":
		spec, _ := specOf[*networking.DestinationRule](o)
		return spec.GetExportTo()
	case "ServiceEntry":
		spec, _ := specOf[*networking.ServiceEntry](o)
		return spec.GetExportTo()
	}
	var out []string
	for _, one := range strings.Split(o.GetAnnotations()["networking.istio.io/exportTo"], ",") {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

// visible are the services that the proxies may know, were it not for their Sidecar.
func (t *traffic) visible(d deadRoute) []proxy.Service {
	return slices.DeleteFunc(slices.Clone(d.services), func(s proxy.Service) bool {
		return !t.mesh.Visible(s, d.config.Proxy.Namespace)
	})
}

// faultsByField keeps one problem of each field of each object: that of the proxy that the object is meant for, or else of the first.
type faultsByField struct {
	found map[string]*fieldFault
}

type fieldFault struct {
	object *world.Object
	problem
	// meant for the proxy: the fault is certain to hit somebody.
	meant bool
}

func (f *faultsByField) add(o *world.Object, p problem, meant bool) {
	key := o.ID.String() + " " + p.Field
	if f.found == nil {
		f.found = map[string]*fieldFault{}
	}
	if have := f.found[key]; have == nil || meant && !have.meant {
		f.found[key] = &fieldFault{object: o, problem: p, meant: meant}
	}
}

// report all, as errors where the object is meant for the proxy, and else as warnings.
func (f *faultsByField) report(v *view) {
	for _, key := range slices.SortedFunc(maps.Keys(f.found), cmp.Compare[string]) {
		one := f.found[key]
		v.report(one.object, one.problem)
		if !one.meant {
			v.findings[len(v.findings)-1].Level = Warning
		}
	}
}

// mirror says that only copies of requests go there, for which nobody waits.
func (d deadRoute) mirror() bool {
	return strings.Contains(d.target.Field, ".mirror")
}

// callers says who is answered what.
func (d deadRoute) callers() string {
	if d.mirror() {
		return fmt.Sprintf("the copies of requests for %s:%d are lost at %s", d.host.Host, d.host.Port, d.config.Proxy)
	}
	return fmt.Sprintf("requests for %s:%d get 503 from %s", d.host.Host, d.host.Port, d.config.Proxy)
}

// dotOr is how an exportTo names a namespace.
func dotOr(namespace, own string) string {
	switch namespace {
	case own:
		return `"."`
	case proxy.Elsewhere:
		return "the namespaces of the callers"
	}
	return namespace
}
