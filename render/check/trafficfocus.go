package check

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
)

// focus is the namespaces whose sidecars are asked, so that a small commit to a large mesh costs little: those of the set's objects, those that they are
// exported to or match, and those that speak of them, with a Sidecar, a DestinationRule or a VirtualService of their own. All others are told the same as the one that
// stands for everybody.
type focus struct {
	namespaces, hosts map[string]bool
}

func focusOn(set *render.Set, w *world.World) *focus {
	f := &focus{namespaces: map[string]bool{}, hosts: map[string]bool{}}
	for _, o := range set.Objects {
		if o.Content == nil {
			continue
		}
		if known := w.Find(o.ID()); known != nil {
			f.namespaces[known.ID.Namespace] = true
			f.speaksOf(known)
		}
	}
	own := f.namespaces
	f.namespaces = map[string]bool{}
	for namespace := range own {
		f.namespaces[namespace] = true
	}
	for _, o := range w.Of(networkingGroup, "Sidecar") {
		spec, _ := specOf[*networking.Sidecar](o)
		for _, l := range spec.GetEgress() {
			if slices.ContainsFunc(l.GetHosts(), func(h string) bool { namespace, _, _ := strings.Cut(h, "/"); return own[namespace] }) {
				f.namespaces[o.ID.Namespace] = true
			}
		}
	}
	for _, kind := range []string{"DestinationRule", "VirtualService"} {
		for _, o := range w.Of(networkingGroup, kind) {
			if slices.ContainsFunc(hostsNamed(o), func(h string) bool { return f.hosts[h] }) {
				f.namespaces[o.ID.Namespace] = true
			}
		}
	}
	return f
}

// speaksOf notes the hosts and the other namespaces that an object of the set names.
func (f *focus) speaksOf(o *world.Object) {
	for _, h := range hostsNamed(o) {
		f.hosts[h] = true
	}
	for _, namespace := range exportToOf(o) {
		f.namespaces[namespace] = true
	}
	if spec, ok := specOf[*networking.VirtualService](o); ok {
		for _, h := range spec.Http {
			for _, m := range h.GetMatch() {
				f.namespaces[m.GetSourceNamespace()] = true
			}
		}
	}
}

// hostsNamed are the full names of the hosts that an object is about.
func hostsNamed(o *world.Object) []string {
	var names []string
	switch o.ID.Kind {
	case "VirtualService":
		names = hostsOf(o)
	case "DestinationRule":
		spec, _ := specOf[*networking.DestinationRule](o)
		names = []string{spec.GetHost()}
	case "ServiceEntry":
		spec, _ := specOf[*networking.ServiceEntry](o)
		names = spec.GetHosts()
	case "Service":
		names = []string{o.ID.Name}
	}
	var out []string
	for _, name := range names {
		out = append(out, proxy.Resolve(name, o))
	}
	return out
}

// concerns says whether the proxy is to be asked.
func (f *focus) concerns(p proxy.Proxy) bool {
	return p.Gateway || p.Namespace == proxy.Elsewhere || !p.Special || f.namespaces[p.Namespace]
}
