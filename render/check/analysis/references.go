package analysis

import (
	"fmt"
	"slices"
	"strings"

	"istio.io/api/label"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/host"
	"istio.io/istio/pkg/config/schema/gvk"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/mooring-dev/mooring/render/check/world"
)

// missing judges IST0101: whether what an object refers to is known not to be there.
func (r *run) missing(c *claim) verdict {
	name := c.parameter(1)
	switch c.parameter(0) {
	case "host", "mirror host":
		return r.missingHost(c, name)
	case "host:port":
		return r.missingPort(c, name)
	case "host+subset in destinationrule", "mirror+subset in destinationrule":
		return r.missingSubset(c, name)
	case "gateway":
		return r.missingGateway(c, name)
	case "namespace":
		return r.missingNamespace(c, name)
	case "selector":
		return r.missingWorkload(c)
	case "credentialName":
		return r.missingSecret(c, name)
	}
	return c.kept()
}

func (r *run) missingGateway(c *claim, name string) verdict {
	namespace, short, ok := strings.Cut(name, "/")
	if !ok {
		namespace, short = c.namespace(), name
	}
	switch {
	case r.find(istioNetworking, "Gateway", namespace, short) != nil:
		return verdict{}
	case r.world.Knows(istioNetworking, "Gateway", namespace):
		return c.kept()
	}
	return r.notKnown(c, "Gateway", namespace+"/"+short, istioNetworking, "Gateway")
}

// missingNamespace judges that a policy names a namespace that does not exist. The analyzer is not given kube-system and its like, and
// counts the items of notNamespaces as if they were those of namespaces.
func (r *run) missingNamespace(c *claim, name string) verdict {
	for _, o := range r.world.Of("", "Namespace") {
		if matchesName(name, o.ID.Name) {
			return verdict{}
		}
	}
	if !r.knowsAll("", "Namespace") {
		return r.notKnown(c, "namespace", name, "", "Namespace")
	}
	policy, ok := specOf[*security.AuthorizationPolicy](c.object)
	if !ok {
		return c.kept()
	}
	for i, rule := range policy.Rules {
		for j, from := range rule.From {
			at := fmt.Sprintf("spec.rules[%d].from[%d].source.", i, j)
			if k := slices.Index(from.GetSource().GetNamespaces(), name); k >= 0 {
				return c.at(fmt.Sprintf("%snamespaces[%d]", at, k))
			}
			if k := slices.Index(from.GetSource().GetNotNamespaces(), name); k >= 0 {
				return c.at(fmt.Sprintf("%snotNamespaces[%d]", at, k))
			}
		}
	}
	return c.kept()
}

func matchesName(pattern, name string) bool {
	switch {
	case pattern == "*":
		return true
	case strings.HasPrefix(pattern, "*"):
		return strings.HasSuffix(name, pattern[1:])
	case strings.HasSuffix(pattern, "*"):
		return strings.HasPrefix(name, pattern[:len(pattern)-1])
	}
	return pattern == name
}

// missingWorkload judges that a selector selects nothing.
func (r *run) missingWorkload(c *claim) verdict {
	if r.knowsAll("", "Pod") && !r.index().remote {
		return c.kept()
	}
	r.notKnown(c, "workloads of", c.object.ID.String(), "", "Pod")
	also := map[string]string{"Gateway": "IST0162", "Sidecar": "IST0110", "Telemetry": "IST0159"}
	if code := also[c.object.ID.Kind]; code != "" {
		r.unknown.add(code, "workloads of", c.object.ID.String(), r.why("", "Pod"))
	}
	return verdict{}
}

// missingSecret judges that the Secret of a Gateway does not exist. One that a controller is going to write counts as there.
func (r *run) missingSecret(c *claim, name string) verdict {
	if strings.Contains(name, "://") {
		return verdict{} // the name of something else than a Secret
	}
	namespace := r.gatewayNamespace(c)
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	if r.find("", "Secret", namespace, name) != nil || r.writesSecret(namespace, name) {
		return verdict{}
	}
	if r.knowsAll("", "Secret") {
		return c.kept()
	}
	return r.notKnown(c, "Secret", namespace+"/"+name, "", "Secret")
}

// writesSecret says whether an object is there from which a controller writes the Secret.
func (r *run) writesSecret(namespace, name string) bool {
	if r.find("bitnami.com", "SealedSecret", namespace, name) != nil {
		return true
	}
	named := func(kind, group string, path ...string) bool {
		return slices.ContainsFunc(r.world.Of(group, kind), func(o *world.Object) bool {
			there := textAt(o, path...)
			return o.ID.Namespace == namespace && (there == name || there == "" && o.ID.Name == name)
		})
	}
	return named("Certificate", "cert-manager.io", "spec", "secretName") ||
		named("ExternalSecret", "external-secrets.io", "spec", "target", "name")
}

// gatewayNamespace is where the workload of a Gateway runs, as gateway.SecretAnalyzer has it.
func (r *run) gatewayNamespace(c *claim) string {
	spec, _ := specOf[*networking.Gateway](c.object)
	selector := labels.SelectorFromSet(spec.GetSelector())
	for _, p := range r.workloads().all {
		if selector.Matches(labels.Set(p.Metadata.Labels)) {
			return string(p.Metadata.FullName.Namespace)
		}
	}
	return c.namespace()
}

// badSecret judges that a Secret holds no certificate. One of which metadata alone was read, or that is encrypted in the files, tells nothing.
func (r *run) badSecret(c *claim) verdict {
	name, _ := c.value().(string)
	namespace := c.parameter(1)
	if before, after, ok := strings.Cut(name, "/"); ok {
		namespace, name = before, after
	}
	o := r.find("", "Secret", namespace, name)
	switch {
	case o == nil, o.Unstructured().Object["sops"] != nil:
		return verdict{}
	case o.MetadataOnly:
		return r.notKnown(c, "certificate in Secret", namespace+"/"+name, "", "Secret")
	}
	return c.kept()
}

// unservedHost judges that a Gateway does not serve the hosts of a VirtualService. Where the Gateway is missing, that is said already. The analyzer
// does not write out short names.
func (r *run) unservedHost(c *claim) verdict {
	namespace, name, _ := strings.Cut(c.parameter(2), "/")
	o := r.find(istioNetworking, "Gateway", namespace, name)
	if o == nil {
		return verdict{}
	}
	gateway, ok := specOf[*networking.Gateway](o)
	if !ok {
		return verdict{}
	}
	for _, server := range gateway.Servers {
		for _, served := range server.Hosts {
			if _, after, ok := strings.Cut(served, "/"); ok {
				served = after
			}
			for _, h := range listAt(c.object, "spec", "hosts") {
				if !strings.Contains(h, ".") && host.Name(served).Matches(host.Name(fqdn(h, c.namespace()))) {
					return verdict{}
				}
			}
		}
	}
	return c.kept()
}

// unledPort judges that a Gateway listens where no Service leads. The analyzer cannot follow a target port by name.
func (r *run) unledPort(c *claim) verdict {
	spec, _ := specOf[*networking.Gateway](c.object)
	selector := labels.SelectorFromSet(spec.GetSelector())
	for _, p := range r.workloads().all {
		if !selector.Matches(labels.Set(p.Metadata.Labels)) {
			continue
		}
		namespace := string(p.Metadata.FullName.Namespace)
		if !r.world.Knows("", "Service", namespace) {
			return r.notKnown(c, "Services of", c.object.ID.String(), "", "Service")
		}
		for _, s := range r.list(gvk.Service).byNamespace[p.Metadata.FullName.Namespace] {
			service, ok := s.Message.(*corev1.ServiceSpec)
			if !ok || !labels.SelectorFromSet(service.Selector).Matches(labels.Set(p.Metadata.Labels)) {
				continue
			}
			if slices.ContainsFunc(service.Ports, func(p corev1.ServicePort) bool { return p.TargetPort.StrVal != "" && p.TargetPort.IntValue() == 0 }) {
				return verdict{}
			}
		}
	}
	for i, server := range spec.GetServers() {
		if number(server.GetPort().GetNumber()) == c.parameter(0) {
			return c.at(fmt.Sprintf("spec.servers[%d].port.number", i))
		}
	}
	return c.kept()
}

// emptySubset judges that a subset of a DestinationRule selects no Pod, which the analyzer says of all: it compares each subset with each Pod, and
// 10,000 subsets with 5,000 Pods keep it busy for a minute. Neither does it look at the endpoints of a ServiceEntry.
func (r *run) emptySubset(c *claim) verdict {
	rule, ok := specOf[*networking.DestinationRule](c.object)
	i := slices.IndexFunc(rule.GetSubsets(), func(s *networking.Subset) bool { return s.GetName() == c.parameter(0) })
	if !ok || i < 0 {
		return c.kept()
	}
	of := rule.Subsets[i].Labels
	entries := r.index().entries[fqdn(rule.Host, c.namespace())]
	for _, o := range entries {
		entry, ok := specOf[*networking.ServiceEntry](o)
		if !ok || slices.ContainsFunc(entry.Endpoints, func(e *networking.WorkloadEntry) bool { return selects(of, e.GetLabels()) }) {
			return verdict{}
		}
	}
	place := namesPlace(of)
	if !place && r.selected(of, entries) {
		return verdict{}
	}
	if !r.knowsAll("", "Pod") || r.index().remote || place {
		return r.notKnown(c, "subset", c.parameter(0)+" of "+c.object.ID.String(), "", "Pod")
	}
	return c.at(fmt.Sprintf("spec.subsets[%d]", i))
}

// selected says whether a Pod has the labels of a subset and, where the host is that of a ServiceEntry with a selector, those too.
func (r *run) selected(of map[string]string, entries []*world.Object) bool {
	if len(entries) == 0 {
		return r.selects(of)
	}
	return slices.ContainsFunc(entries, func(o *world.Object) bool {
		entry, _ := specOf[*networking.ServiceEntry](o)
		return r.selects(labels.Merge(entry.GetWorkloadSelector().GetLabels(), of))
	})
}

// namesPlace says whether labels are among those that istiod adds to a Pod's own, from its node and its cluster.
func namesPlace(of map[string]string) bool {
	for _, key := range []string{
		label.TopologyCluster.Name, label.TopologyNetwork.Name, label.TopologySubzone.Name,
		corev1.LabelTopologyRegion, corev1.LabelTopologyZone, corev1.LabelHostname,
	} {
		if _, ok := of[key]; ok {
			return true
		}
	}
	return false
}

// policyWithoutWorkloads judges that an AuthorizationPolicy selects nothing. The analyzer takes any policy for one that selects workloads, and keeps
// the first root namespace that it is ever told, so it is always told istio-system.
func (r *run) policyWithoutWorkloads(c *claim) verdict {
	policy, ok := specOf[*security.AuthorizationPolicy](c.object)
	if !ok || policy.TargetRef != nil || len(policy.TargetRefs) > 0 {
		return verdict{}
	}
	root := c.namespace() == r.mesh.RootNamespace
	if root && policy.Selector == nil {
		return verdict{}
	}
	if !r.knowsAll("", "Pod") || r.index().remote {
		return r.notKnown(c, "workloads of", c.object.ID.String(), "", "Pod")
	}
	if root && r.mesh.RootNamespace != constants.IstioSystemNamespace && r.selects(policy.Selector.GetMatchLabels()) {
		return verdict{}
	}
	return c.kept()
}

// selects says whether any Pod at all has the labels.
func (r *run) selects(of map[string]string) bool {
	if len(of) == 0 {
		return len(r.workloads().all) > 0
	}
	if r.byLabel == nil {
		r.byLabel = map[[2]string][]map[string]string{}
		for _, p := range r.workloads().all {
			for k, v := range p.Metadata.Labels {
				r.byLabel[[2]string{k, v}] = append(r.byLabel[[2]string{k, v}], p.Metadata.Labels)
			}
		}
	}
	var fewest []map[string]string
	first := true
	for k, v := range of {
		if with := r.byLabel[[2]string{k, v}]; first || len(with) < len(fewest) {
			fewest, first = with, false
		}
	}
	return slices.ContainsFunc(fewest, func(l map[string]string) bool { return selects(of, l) })
}

// selects says whether labels are among others.
func selects(of, labels map[string]string) bool {
	for k, v := range of {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}
