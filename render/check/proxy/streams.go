package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/networking/util"
	"istio.io/istio/pkg/config/schema/gvk"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// Stream is a route of connections: where an entry below tcp or tls of a VirtualService leads. Envoy has it in a listener.
type Stream struct {
	Object *world.Object
	// Listener as Envoy calls it, and the port that it listens on.
	Listener string
	Port     int
	// Names of the servers, or ranges of addresses, that tell its connections from others of the listener; none when it takes all.
	Names   []string
	Targets []Target
}

// Listening are the streams of a proxy.
type Listening struct {
	// Streams in the order of the names of their listeners.
	Streams []Stream
	// Listeners by name, also those without a stream.
	Listeners map[string]bool
}

// Listen asks what becomes of a proxy's connections. It costs as much as all else that Ask gives, and nothing where no VirtualService has tcp or tls. The
// Mesh must be the one that was asked, and open.
func (m *Mesh) Listen(ctx context.Context, c *Config) (*Listening, error) {
	out := &Listening{Listeners: map[string]bool{}}
	if !m.streams() {
		return out, nil
	}
	listeners := m.generator.BuildListeners(c.node, m.push) // those of Services as a map had them
	slices.SortFunc(listeners, func(a, b *listener.Listener) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range listeners {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("ask for %s: %w", c.Proxy, context.Cause(ctx))
		}
		out.Listeners[l.Name] = true
		chains := l.GetFilterChains()
		if l.GetDefaultFilterChain() != nil {
			chains = append(slices.Clone(chains), l.GetDefaultFilterChain())
		}
		for _, chain := range chains {
			if s, ok := m.stream(c.Proxy, l, chain); ok {
				out.Streams = append(out.Streams, s)
			}
		}
	}
	for i := range out.Streams {
		targets := out.Streams[i].Targets
		missing := m.Lacks(c, targets)
		for k := range targets {
			targets[k].Exists = !slices.ContainsFunc(missing, func(t Target) bool { return t.Cluster == targets[k].Cluster })
		}
	}
	return out, nil
}

// streams says whether some VirtualService has any.
func (m *Mesh) streams() bool {
	return slices.ContainsFunc(m.world.Of(networkingGroup, "VirtualService"), func(o *world.Object) bool {
		spec, ok := specOf[*networking.VirtualService](o)
		return ok && len(spec.GetTcp())+len(spec.GetTls()) > 0
	})
}

// stream reads a chain of filters; false for one that no VirtualService made.
func (m *Mesh) stream(p Proxy, l *listener.Listener, chain *listener.FilterChain) (Stream, bool) {
	s := Stream{Listener: l.Name, Port: int(l.GetAddress().GetSocketAddress().GetPortValue()), Object: m.writtenIn(chain)}
	if s.Object == nil && !p.Gateway {
		return s, false // what a Service has by itself
	}
	s.Names = slices.Clone(chain.GetFilterChainMatch().GetServerNames())
	for _, r := range chain.GetFilterChainMatch().GetPrefixRanges() {
		s.Names = append(s.Names, fmt.Sprintf("%s/%d", r.GetAddressPrefix(), r.GetPrefixLen().GetValue()))
	}
	for _, name := range clustersOf(chain) {
		if s.Object == nil {
			s.Object = m.leadingTo(name)
		}
		if s.Object != nil {
			t := target(name, Source{Object: s.Object, HTTP: -1, Match: -1}, "")
			t.Field = streamField(s.Object, t)
			s.Targets = append(s.Targets, t)
		}
	}
	return s, len(s.Targets) > 0
}

// clustersOf a chain that ends in a TCP proxy.
func clustersOf(chain *listener.FilterChain) []string {
	var out []string
	for _, f := range chain.GetFilters() {
		end := &tcp.TcpProxy{}
		if f.GetTypedConfig() == nil || !f.GetTypedConfig().MessageIs(end) || f.GetTypedConfig().UnmarshalTo(end) != nil {
			continue
		}
		if end.GetCluster() != "" {
			out = append(out, end.GetCluster())
		}
		for _, c := range end.GetWeightedClusters().GetClusters() {
			out = append(out, c.GetName())
		}
	}
	return out
}

// writtenIn finds the VirtualService that the library says a chain comes from: …/namespaces/NAMESPACE/virtual-service/NAME.
func (m *Mesh) writtenIn(chain *listener.FilterChain) *world.Object {
	path := chain.GetMetadata().GetFilterMetadata()[util.IstioMetadataKey].GetFields()["config"].GetStringValue()
	parts := strings.Split(path, "/")
	if len(parts) < 3 || parts[len(parts)-2] != gvk.KebabKind(gvk.VirtualService.Kind) {
		return nil
	}
	return m.world.Find(render.ID{Group: networkingGroup, Kind: gvk.VirtualService.Kind, Namespace: parts[len(parts)-3], Name: parts[len(parts)-1]})
}

// leadingTo finds a VirtualService with a destination of that cluster: the library does not say where a gateway's chain comes from.
func (m *Mesh) leadingTo(cluster string) *world.Object {
	for _, o := range m.world.Of(networkingGroup, gvk.VirtualService.Kind) {
		if streamField(o, target(cluster, Source{Object: o}, "")) != "" {
			return o
		}
	}
	return nil
}

// streamField is the path of the destination that a cluster comes from.
func streamField(o *world.Object, t Target) string {
	spec, ok := specOf[*networking.VirtualService](o)
	if !ok {
		return ""
	}
	find := func(entry string, i int, routes []*networking.RouteDestination) string {
		for k, r := range routes {
			d := r.GetDestination()
			if d.GetSubset() == t.Subset && string(model.ResolveShortnameToFQDN(d.GetHost(), o.Config().Meta)) == t.Host &&
				(d.GetPort() == nil || int(d.GetPort().GetNumber()) == t.Port) {
				return fmt.Sprintf("spec.%s[%d].route[%d].destination", entry, i, k)
			}
		}
		return ""
	}
	for i, e := range spec.GetTls() {
		if field := find("tls", i, e.GetRoute()); field != "" {
			return field
		}
	}
	for i, e := range spec.GetTcp() {
		if field := find("tcp", i, e.GetRoute()); field != "" {
			return field
		}
	}
	return ""
}
