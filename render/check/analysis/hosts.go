package analysis

import (
	"slices"
	"strings"

	"istio.io/api/annotation"
	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-dev/mooring/render/check/world"
)

const (
	istioNetworking = "networking.istio.io"
	clusterDomain   = ".svc.cluster.local"
	// multiCluster is the label of Secrets that let istiod read other clusters.
	multiCluster = "istio/multiCluster"
)

// index finds the objects that give a host to the mesh or rules to a host.
type index struct {
	// entries by host, and those whose host begins with a star.
	entries  map[string][]*world.Object
	wildcard []string
	// rules are DestinationRules by the full name of their host.
	rules map[string][]*world.Object
	// remote is true where other clusters belong to the mesh, of which nothing is known.
	remote bool
}

func (r *run) index() *index {
	if r.known != nil {
		return r.known
	}
	x := &index{entries: map[string][]*world.Object{}, rules: map[string][]*world.Object{}}
	for _, o := range r.world.Of(istioNetworking, "ServiceEntry") {
		for _, h := range listAt(o, "spec", "hosts") {
			if strings.HasPrefix(h, "*") && x.entries[h] == nil {
				x.wildcard = append(x.wildcard, h)
			}
			x.entries[h] = append(x.entries[h], o)
		}
	}
	for _, o := range r.world.Of(istioNetworking, "DestinationRule") {
		host := fqdn(textAt(o, "spec", "host"), o.ID.Namespace)
		x.rules[host] = append(x.rules[host], o)
	}
	for _, o := range r.world.Of("", "Secret") {
		x.remote = x.remote || o.GetLabels()[multiCluster] == "true"
	}
	r.known = x
	return x
}

// fqdn is the full name of a host that was written in a namespace: a name without dots is that of a Service beside it.
func fqdn(host, namespace string) string {
	if strings.HasPrefix(host, "*") || strings.Contains(host, ".") {
		return host
	}
	return host + "." + namespace + clusterDomain
}

// serviceOf reads the name of a Service from a host, in whatever domain the cluster is.
func serviceOf(host string) (name, namespace string, ok bool) {
	parts := strings.SplitN(host, ".", 4)
	if len(parts) < 4 || parts[2] != "svc" || parts[0] == "" || strings.HasPrefix(host, "*") {
		return "", "", false
	}
	return parts[0], parts[1], true
}

// presence says whether something is there.
type presence int

const (
	absent presence = iota
	present
	// unseen is neither known to be there nor known not to be.
	unseen
)

// host looks for a host that an object of the namespace names. The kind is the one that would have to be known.
func (r *run) host(host, namespace string) (is presence, group, kind string) {
	full := fqdn(host, namespace)
	x := r.index()
	for _, o := range x.entries[full] {
		if visible(listAt(o, "spec", "exportTo"), o.ID.Namespace, namespace) {
			return present, "", ""
		}
	}
	for _, w := range x.wildcard {
		if strings.HasSuffix(strings.TrimPrefix(full, "*"), w[1:]) {
			return present, "", ""
		}
	}
	if strings.HasPrefix(full, "*") {
		return r.hostsBelow(full[1:])
	}
	name, home, isService := serviceOf(full)
	switch {
	case strings.HasSuffix(full, ".svc.clusterset.local"):
		return unseen, "multicluster.x-k8s.io", "ServiceImport"
	case !isService:
		return r.seen("", istioNetworking, "ServiceEntry")
	}
	if o := r.find("", "Service", home, name); o != nil {
		exports := strings.FieldsFunc(o.GetAnnotations()[annotation.NetworkingExportTo.Name], func(c rune) bool { return c == ',' || c == ' ' })
		if visible(exports, home, namespace) {
			return present, "", ""
		}
		return absent, "", ""
	}
	if len(x.entries[full]) > 0 { // there, and hidden
		return absent, "", ""
	}
	return r.seen(home, "", "Service")
}

// seen says whether what is not there is known not to be.
func (r *run) seen(namespace, group, kind string) (is presence, _, _ string) {
	switch {
	case r.index().remote, r.world.Live() && !r.world.Knows(istioNetworking, "ServiceEntry", ""):
		return unseen, istioNetworking, "ServiceEntry"
	case r.world.Live() && r.world.Knows(group, kind, namespace):
		return absent, group, kind
	case !r.world.Live() && kind == "Service" && r.world.Knows(group, kind, namespace):
		return absent, group, kind
	}
	return unseen, group, kind
}

// hostsBelow looks for any host with a suffix.
func (r *run) hostsBelow(suffix string) (is presence, group, kind string) {
	for h := range r.index().entries {
		if strings.HasSuffix(h, suffix) {
			return present, "", ""
		}
	}
	for _, o := range r.world.Of("", "Service") {
		if strings.HasSuffix(o.ID.Name+"."+o.ID.Namespace+clusterDomain, suffix) {
			return present, "", ""
		}
	}
	if !r.world.Live() {
		return unseen, "", "Service"
	}
	return r.seen("", "", "Service")
}

// visible says whether what is exported to some namespaces can be seen in one.
func visible(exportTo []string, home, from string) bool {
	return len(exportTo) == 0 || slices.ContainsFunc(exportTo, func(to string) bool {
		return to == "*" || to == from || to == "." && home == from
	})
}

// missingHost judges that a route or a mirror leads to no host.
func (r *run) missingHost(c *claim, host string) verdict {
	switch is, group, kind := r.host(host, c.namespace()); is {
	case absent:
		return c.kept()
	case unseen:
		return r.notKnown(c, "host", fqdn(host, c.namespace()), group, kind)
	}
	return verdict{}
}

// ruleWithoutHost judges that the host of a DestinationRule does not exist. The analyzer looks a host with a star up as if it were a name.
func (r *run) ruleWithoutHost(c *claim) verdict {
	return r.missingHost(c, c.parameter(0))
}

// missingPort judges that a host does not have a port. Of several ServiceEntries for one host the analyzer looks at one.
func (r *run) missingPort(c *claim, hostPort string) verdict {
	host, port, _ := cutLast(hostPort, ":")
	full := fqdn(host, c.namespace())
	for _, o := range r.index().entries[full] {
		entry, ok := specOf[*networking.ServiceEntry](o)
		if !ok || slices.ContainsFunc(entry.Ports, func(p *networking.ServicePort) bool { return number(p.GetNumber()) == port }) {
			return verdict{}
		}
	}
	if name, home, ok := serviceOf(full); ok {
		if o := r.find("", "Service", home, name); o != nil {
			service, ok := specOf[*corev1.ServiceSpec](o)
			if !ok || slices.ContainsFunc(service.Ports, func(p corev1.ServicePort) bool { return number(p.Port) == port }) {
				return verdict{}
			}
		}
	}
	return c.at(sibling(c.field(), "host", "port.number"))
}

// missingSubset judges that no DestinationRule gives a host a subset. The analyzer compares the names of hosts and the namespaces; a rule for
// *.shop.svc.cluster.local, or one of another namespace for a host outside the mesh, it does not find.
func (r *run) missingSubset(c *claim, hostSubset string) verdict {
	host, subset, _ := cutLast(hostSubset, "+")
	full := fqdn(host, c.namespace())
	rules := slices.Clone(r.index().rules[full])
	for other, more := range r.index().rules {
		if strings.HasPrefix(other, "*") && strings.HasSuffix(full, other[1:]) {
			rules = append(rules, more...)
		}
	}
	for _, o := range rules {
		rule, ok := specOf[*networking.DestinationRule](o)
		if !ok || slices.ContainsFunc(rule.Subsets, func(s *networking.Subset) bool { return s.GetName() == subset }) {
			return verdict{}
		}
	}
	if len(rules) > 0 || r.knowsAll(istioNetworking, "DestinationRule") {
		return c.at(sibling(c.field(), "host", "subset"))
	}
	return r.notKnown(c, "subset", subset+" of "+full, istioNetworking, "DestinationRule")
}
