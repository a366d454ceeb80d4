package proxy

import (
	"maps"
	"slices"

	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config/host"
	"istio.io/istio/pkg/config/protocol"
	"istio.io/istio/pkg/config/visibility"

	"github.com/mooring-dev/mooring/render/check/world"
)

// Service is what a Service or a ServiceEntry says of one host.
type Service struct {
	Object *world.Object
	Host   string
	Ports  []uint32
	// UDP are those of the ports that no proxy routes to.
	UDP []uint32
	// ExternalName is the host that stands behind a Service of that type.
	ExternalName string
	// Selector picks workloads whose labels are not known here.
	Selector bool

	service *model.Service
}

// Services that have exactly this host, of all namespaces.
func (m *Mesh) Services(name string) []Service {
	var out []Service
	for _, s := range m.registry.named[host.Name(name)] {
		one := Service{
			Object: m.registry.objects[s], Host: name, ExternalName: s.Attributes.K8sAttributes.ExternalName,
			Selector: len(s.Attributes.LabelSelectors) > 0, service: s,
		}
		for _, p := range s.Ports {
			one.Ports = append(one.Ports, uint32(p.Port))
			if p.Protocol == protocol.UDP {
				one.UDP = append(one.UDP, uint32(p.Port))
			}
		}
		out = append(out, one)
	}
	return out
}

// Visible says whether proxies of a namespace may know the service at all.
func (m *Mesh) Visible(s Service, namespace string) bool {
	return m.push.IsServiceVisible(s.service, namespace)
}

// Has says whether the service has the port.
func (s Service) Has(port int) bool {
	return slices.Contains(s.Ports, uint32(port))
}

// Exported says to which of the namespaces a list of exportTo names; with a default of all.
func Exported(to []string, own, namespace string) bool {
	return len(to) == 0 || slices.ContainsFunc(to, func(one string) bool {
		switch visibility.Instance(one) {
		case visibility.Public:
			return true
		case visibility.Private:
			return own == namespace
		default:
			return one == namespace
		}
	})
}

// Resolve gives the full name of a host that an object names.
func Resolve(name string, o *world.Object) string {
	c := o.Config()
	if c == nil {
		return name
	}
	return string(model.ResolveShortnameToFQDN(name, c.Meta))
}

// Rule is the DestinationRule that counts for a host at a proxy, as namespace and name; empty without one.
func (c *Config) Rule(name string) (namespace, object string) {
	rule := c.node.SidecarScope.DestinationRule(model.TrafficDirectionOutbound, c.node, host.Name(name))
	if rule == nil || rule.GetRule() == nil {
		return "", ""
	}
	return rule.GetRule().Namespace, rule.GetRule().Name
}

// Sidecar is the name and namespace of the Sidecar object that counts for a proxy; empty without one.
func (c *Config) Sidecar() (namespace, object string) {
	scope := c.node.SidecarScope
	if c.Proxy.Gateway || scope.Sidecar == nil {
		return "", ""
	}
	for _, o := range c.sidecars {
		if o.ID.Name == scope.Name && (o.ID.Namespace == c.Proxy.Namespace || namespace == "") {
			namespace, object = o.ID.Namespace, o.ID.Name
		}
	}
	return namespace, object
}

// Gateways are the Gateway objects that select the proxy, as namespace/name.
func (c *Config) Gateways() []string {
	if c.node.MergedGateway == nil {
		return nil
	}
	names := slices.Collect(maps.Values(c.node.MergedGateway.GatewayNameForServer))
	slices.Sort(names)
	return slices.Compact(names)
}
