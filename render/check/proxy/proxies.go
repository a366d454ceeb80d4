package proxy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/labels"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render/check/world"
)

const networkingGroup = "networking.istio.io"

// Elsewhere is the namespace of a proxy that stands for all namespaces that nothing in the mesh speaks of.
const Elsewhere = "elsewhere"

// Proxy names a proxy by what its configuration depends on.
type Proxy struct {
	Namespace string
	// Labels of the pod, as far as something selects by them.
	Labels map[string]string
	// Gateway is true for a proxy that lets traffic in or out, and false for a sidecar.
	Gateway bool
	// Assumed says that nobody knows in which namespace the gateway runs: Istio's own was taken.
	Assumed bool
	// Special says that the sidecars of the namespace, or of that workload, are told something of their own.
	Special bool
	// Alike are the namespaces, sorted, whose sidecars are told the same.
	Alike []string
}

// String names a proxy for a reader.
func (p Proxy) String() string {
	var b strings.Builder
	if p.Gateway {
		b.WriteString("the gateway")
	} else {
		b.WriteString("the sidecars")
	}
	for i, key := range slices.Sorted(maps.Keys(p.Labels)) {
		if i == 0 && !p.Gateway {
			b.WriteString(" of")
		}
		b.WriteString(" " + key + "=" + p.Labels[key])
	}
	if p.Namespace == Elsewhere {
		return b.String() + " in all other namespaces"
	}
	return b.String() + " in " + p.Namespace
}

// Proxies are those that may be told different things, in the same order every time: gateways first.
func (m *Mesh) Proxies() []Proxy { return m.proxies }

// Proxies are those that may be told different things in at least one of the worlds, so that what one of them is told can be followed from world to world.
func Proxies(worlds ...*world.World) []Proxy {
	s := newSurvey(worlds)
	all := append(s.gateways(), s.sidecars()...)
	slices.SortStableFunc(all, func(a, b Proxy) int {
		if a.Gateway != b.Gateway {
			if a.Gateway {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.String(), b.String())
	})
	return slices.CompactFunc(all, func(a, b Proxy) bool { return a.String() == b.String() })
}

// survey is what in one of some worlds makes proxies differ.
type survey struct {
	worlds []*world.World
	// namespaces of the mesh, and those among them whose sidecars are told something of their own.
	namespaces, special map[string]bool
	// keys of labels that something selects by.
	keys map[string]bool
	// workloads that something selects in a namespace.
	workloads []Proxy
	selectors []labels.Instance
	// owners are the namespaces of the ServiceEntries that have a host.
	owners map[string]string
}

func newSurvey(worlds []*world.World) *survey {
	s := &survey{worlds: worlds, namespaces: map[string]bool{}, special: map[string]bool{}, keys: map[string]bool{}, owners: map[string]string{}}
	for _, w := range worlds {
		s.read(w)
	}
	return s
}

func (s *survey) read(w *world.World) {
	s.destinationRules(w)
	s.virtualServices(w)
	s.entries(w)
	for _, o := range w.Of(networkingGroup, "Sidecar") {
		s.special[o.ID.Namespace] = true
		if spec, ok := specOf[*networking.Sidecar](o); ok {
			s.selects(o.ID.Namespace, spec.GetWorkloadSelector().GetLabels())
		}
	}
	for _, o := range w.Of(networkingGroup, "EnvoyFilter") {
		s.special[o.ID.Namespace] = true
	}
	for _, o := range w.Of(networkingGroup, "Gateway") {
		if spec, ok := specOf[*networking.Gateway](o); ok {
			s.selectors = append(s.selectors, spec.Selector)
			for key := range spec.Selector {
				s.keys[key] = true
			}
		}
	}
}

// selects notes that workloads of a namespace differ from others there.
func (s *survey) selects(namespace string, selector map[string]string) {
	if len(selector) == 0 {
		return
	}
	for key := range selector {
		s.keys[key] = true
	}
	s.special[namespace] = true
	s.workloads = append(s.workloads, Proxy{Namespace: namespace, Labels: selector})
}

// exported notes the namespaces that an object is for.
func (s *survey) exported(namespace string, to []string) {
	for _, one := range to {
		switch one {
		case ".":
			s.special[namespace] = true
		case "*", "~":
		default:
			s.special[one] = true
		}
	}
}

func (s *survey) destinationRules(w *world.World) {
	for _, o := range w.Of(networkingGroup, "DestinationRule") {
		spec, ok := specOf[*networking.DestinationRule](o)
		if !ok {
			continue
		}
		namespace := o.ID.Namespace
		s.namespaces[namespace] = true
		s.exported(namespace, spec.ExportTo)
		s.selects(namespace, spec.GetWorkloadSelector().GetMatchLabels())
		if strings.Contains(spec.Host, ".") && !strings.HasSuffix(spec.Host, "."+namespace+".svc."+domain) {
			s.special[namespace] = true // a rule of a client's namespace goes before that of the service's
		}
	}
}

func (s *survey) virtualServices(w *world.World) {
	for _, o := range w.Of(networkingGroup, "VirtualService") {
		spec, ok := specOf[*networking.VirtualService](o)
		if !ok {
			continue
		}
		s.namespaces[o.ID.Namespace] = true
		s.exported(o.ID.Namespace, spec.ExportTo)
		for _, h := range spec.Http {
			for _, match := range h.GetMatch() {
				from := cmp.Or(match.GetSourceNamespace(), o.ID.Namespace)
				if match.GetSourceNamespace() != "" {
					s.special[from] = true
				}
				s.selects(from, match.GetSourceLabels())
			}
		}
	}
}

func (s *survey) entries(w *world.World) {
	for _, o := range w.Of("", "Service") {
		s.namespaces[o.ID.Namespace] = true
		if to := o.GetAnnotations()["networking.istio.io/exportTo"]; to != "" {
			for _, one := range strings.Split(to, ",") {
				s.exported(o.ID.Namespace, []string{strings.TrimSpace(one)})
			}
		}
	}
	for _, o := range w.Of(networkingGroup, "ServiceEntry") {
		spec, ok := specOf[*networking.ServiceEntry](o)
		if !ok {
			continue
		}
		s.namespaces[o.ID.Namespace] = true
		s.exported(o.ID.Namespace, spec.ExportTo)
		for _, name := range spec.Hosts {
			if owner, taken := s.owners[name]; taken && owner != o.ID.Namespace { // each namespace takes its own
				s.special[owner], s.special[o.ID.Namespace] = true, true
			}
			s.owners[name] = o.ID.Namespace
		}
	}
}

// sidecars: one in each namespace that is told something of its own, one for all others, and one for each workload that something selects.
func (s *survey) sidecars() []Proxy {
	var plain []string
	var all []Proxy
	for _, namespace := range slices.Sorted(maps.Keys(s.namespaces)) {
		if !s.special[namespace] && namespace != constants.IstioSystemNamespace {
			plain = append(plain, namespace)
		}
	}
	common := Proxy{Namespace: Elsewhere, Alike: plain}
	if len(plain) > 0 {
		common.Namespace = plain[0]
	}
	all = append(all, common)
	for _, namespace := range slices.Sorted(maps.Keys(s.special)) {
		if namespace != constants.IstioSystemNamespace {
			all = append(all, Proxy{Namespace: namespace, Special: true, Alike: []string{namespace}})
		}
	}
	for _, p := range s.workloads {
		p.Alike, p.Special = []string{p.Namespace}, true
		all = append(all, p)
	}
	return all
}

// gateways: one for each place where a workload runs that a Gateway selects, or else one in Istio's own namespace for each selector.
func (s *survey) gateways() []Proxy {
	var all []Proxy
	found := make([]bool, len(s.selectors))
	add := func(namespace string, pod map[string]string) {
		for i, selector := range s.selectors {
			if len(selector) > 0 && selector.SubsetOf(pod) {
				found[i] = true
				all = append(all, Proxy{Namespace: namespace, Labels: s.chosen(pod), Gateway: true})
			}
		}
	}
	for _, w := range s.worlds {
		workloads(w, add)
	}
	for i, selector := range s.selectors {
		if !found[i] && (len(selector) > 0 || len(all) == 0) {
			all = append(all, Proxy{Namespace: constants.IstioSystemNamespace, Labels: selector, Gateway: true, Assumed: true})
		}
	}
	return all
}

// workloads are the places where pods run, or are about to: each with its labels, as far as somebody says so.
func workloads(w *world.World, found func(namespace string, pod map[string]string)) {
	for _, o := range w.Of("", "Pod") {
		found(o.ID.Namespace, o.GetLabels())
	}
	for _, kind := range []string{"Deployment", "DaemonSet", "StatefulSet"} {
		for _, o := range w.Of("apps", kind) {
			pod, _, _ := unstructured.NestedStringMap(o.Unstructured().Object, "spec", "template", "metadata", "labels")
			found(o.ID.Namespace, pod)
		}
	}
	for _, o := range w.Of("", "Service") {
		selector, _, _ := unstructured.NestedStringMap(o.Unstructured().Object, "spec", "selector")
		found(o.ID.Namespace, selector)
	}
}

// chosen are the labels that something selects by: pods that differ in others are told the same.
func (s *survey) chosen(pod map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range pod {
		if s.keys[key] {
			out[key] = value
		}
	}
	return out
}
