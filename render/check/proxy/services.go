package proxy

import (
	"fmt"
	"net/netip"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/serviceregistry/kube"
	"istio.io/istio/pilot/pkg/serviceregistry/provider"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/host"
	"istio.io/istio/pkg/config/labels"
	"istio.io/istio/pkg/config/protocol"
	"istio.io/istio/pkg/config/visibility"
	"istio.io/istio/pkg/util/sets"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render/check/world"
)

const domain = constants.DefaultClusterLocalDomain

// registry is what istiod's service registries would know.
type registry struct {
	model.NetworkGatewaysHandler

	services []*model.Service
	byHost   map[host.Name]*model.Service
	named    map[host.Name][]*model.Service
	objects  map[*model.Service]*world.Object
	// endpoints of services that Envoy resolves by DNS.
	endpoints map[*model.Service][]*model.IstioEndpoint
}

func newRegistry(w *world.World, age func(*world.Object) metav1.Time) *registry {
	r := &registry{
		byHost: map[host.Name]*model.Service{}, named: map[host.Name][]*model.Service{}, objects: map[*model.Service]*world.Object{},
		endpoints: map[*model.Service][]*model.IstioEndpoint{},
	}
	for _, o := range w.Of("", "Service") {
		if svc := service(o); svc != nil {
			svc.CreationTimestamp = age(o)
			r.add(o, kube.ConvertService(*svc, nil, domain, constants.DefaultClusterName, domain))
		}
	}
	workloads := w.Of("networking.istio.io", "WorkloadEntry")
	for _, o := range w.Of("networking.istio.io", "ServiceEntry") {
		c := o.Config()
		if c == nil || o.MetadataOnly {
			continue
		}
		spec, ok := c.Spec.(*networking.ServiceEntry)
		if !ok {
			continue
		}
		for _, s := range serviceEntry(c.Meta, spec) {
			s.CreationTime = age(o).Time
			r.add(o, s)
			r.endpoints[s] = endpoints(c.Namespace, spec, s, workloads)
		}
	}
	return r
}

func (r *registry) add(o *world.Object, s *model.Service) {
	r.services = append(r.services, s)
	r.named[s.Hostname] = append(r.named[s.Hostname], s)
	r.objects[s] = o
	if r.byHost[s.Hostname] == nil {
		r.byHost[s.Hostname] = s
	}
}

// service is a Service of a world as Kubernetes' clients have it; nil when its spec was not read.
func service(o *world.Object) *corev1.Service {
	c := o.Config()
	if c == nil || o.MetadataOnly {
		return nil
	}
	spec, ok := c.Spec.(*corev1.ServiceSpec)
	if !ok {
		return nil
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: c.Name, Namespace: c.Namespace, Labels: c.Labels, Annotations: c.Annotations,
		},
		Spec: *spec,
	}
}

// serviceEntry is what istiod makes of a ServiceEntry: a service for each host and address.
func serviceEntry(meta config.Meta, in *networking.ServiceEntry) []*model.Service {
	var out []*model.Service
	for _, name := range in.Hosts {
		for _, address := range addresses(in.Addresses) {
			s := &model.Service{
				Hostname:        host.Name(name),
				DefaultAddress:  address,
				MeshExternal:    in.Location == networking.ServiceEntry_MESH_EXTERNAL,
				Resolution:      resolution(in.Resolution),
				ServiceAccounts: in.SubjectAltNames,
				Attributes: model.ServiceAttributes{
					ServiceRegistry: provider.External,
					Name:            name,
					Namespace:       meta.Namespace,
					Labels:          meta.Labels,
					ExportTo:        exports(in.ExportTo),
					LabelSelectors:  in.GetWorkloadSelector().GetLabels(),
					K8sAttributes:   model.K8sAttributes{ObjectName: meta.Name},
				},
			}
			for _, p := range in.Ports {
				s.Ports = append(s.Ports, &model.Port{Name: p.Name, Port: int(p.Number), Protocol: protocol.Parse(p.Protocol)})
			}
			out = append(out, s)
		}
	}
	return out
}

func addresses(in []string) []string {
	var out []string
	for _, a := range in {
		if prefix, err := netip.ParsePrefix(a); err == nil && prefix.IsSingleIP() {
			a = prefix.Addr().String()
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return []string{constants.UnspecifiedIP}
	}
	return out
}

func resolution(in networking.ServiceEntry_Resolution) model.Resolution {
	switch in {
	case networking.ServiceEntry_DNS:
		return model.DNSLB
	case networking.ServiceEntry_DNS_ROUND_ROBIN:
		return model.DNSRoundRobinLB
	case networking.ServiceEntry_STATIC:
		return model.ClientSideLB
	case networking.ServiceEntry_DYNAMIC_DNS:
		return model.DynamicDNS
	default:
		return model.Passthrough
	}
}

func exports(names []string) sets.Set[visibility.Instance] {
	if len(names) == 0 {
		return nil
	}
	out := sets.New[visibility.Instance]()
	for _, name := range names {
		out.Insert(visibility.Instance(name))
	}
	return out
}

// endpoints that istiod would put into a cluster that Envoy resolves by DNS: without one of the labels of a subset there is no such cluster.
func endpoints(namespace string, in *networking.ServiceEntry, s *model.Service, workloads []*world.Object) []*model.IstioEndpoint {
	var out []*model.IstioEndpoint
	add := func(address string, l map[string]string) {
		for i, p := range s.Ports {
			target := in.Ports[i].TargetPort
			if target == 0 {
				target = in.Ports[i].Number
			}
			out = append(out, &model.IstioEndpoint{
				Addresses: []string{address}, EndpointPort: target, ServicePortName: p.Name, LegacyClusterPortKey: p.Port, Labels: l,
				Namespace: namespace, HealthStatus: model.Healthy, TLSMode: model.DisabledTLSModeLabel,
				Locality: model.Locality{ClusterID: constants.DefaultClusterName},
			})
		}
	}
	for i, e := range in.Endpoints {
		add(addressOf(e, i), e.Labels)
	}
	if selector := labels.Instance(in.GetWorkloadSelector().GetLabels()); len(selector) > 0 {
		for i, o := range workloads {
			if entry, ok := specOf[*networking.WorkloadEntry](o); ok && o.ID.Namespace == namespace && selector.Match(entry.Labels) {
				add(addressOf(entry, i), entry.Labels)
			}
		}
	}
	if len(out) == 0 {
		add(string(s.Hostname), nil)
	}
	return out
}

// addressOf a workload; one without an address is known by its network, and any address will do.
func addressOf(e *networking.WorkloadEntry, i int) string {
	if e.Address == "" {
		return fmt.Sprintf("240.0.%d.%d", i/250, i%250+1)
	}
	return e.Address
}

// specOf is the spec of an object that was read and that could be converted.
func specOf[T any](o *world.Object) (spec T, ok bool) {
	c := o.Config()
	if c == nil || o.MetadataOnly {
		return spec, false
	}
	spec, ok = c.Spec.(T)
	return spec, ok
}

// Services, GetService and the others are how the library asks (model.ServiceDiscovery).
func (r *registry) Services() []*model.Service { return r.services }

// GetService finds the service of a host.
func (r *registry) GetService(name host.Name) *model.Service { return r.byHost[name] }

// GetProxyServiceTargets would be what a proxy's pod serves. What comes in is not looked at.
func (r *registry) GetProxyServiceTargets(*model.Proxy) []model.ServiceTarget { return nil }

// GetProxyWorkloadLabels are those that the proxy itself says.
func (r *registry) GetProxyWorkloadLabels(*model.Proxy) labels.Instance { return nil }

// MCSServices of other clusters are not known.
func (r *registry) MCSServices() []model.MCSServiceInfo { return nil }

// NetworkGateways of other networks are not known.
func (r *registry) NetworkGateways() []model.NetworkGateway { return nil }
