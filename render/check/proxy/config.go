package proxy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/pkg/networking/core"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/host"
	"istio.io/istio/pkg/config/schema/kind"
	"istio.io/istio/pkg/util/sets"

	"github.com/mooring-dev/mooring/render/check/world"
)

// Config is what one proxy gets to know of routes that VirtualServices made.
type Config struct {
	Proxy Proxy
	// Hosts in the order of their ports and names.
	Hosts []VirtualHost

	clusters map[string]bool
	built    sets.String // the hosts whose clusters were built
	services map[host.Name]*model.Service
	node     *model.Proxy
	sidecars []*world.Object
}

// VirtualHost is the routes for one host on one port, in the order in which Envoy tries them. The first that matches is taken.
type VirtualHost struct {
	// Host is the name of the service or, on gateways and where no service has it, the one that the VirtualService has.
	Host string
	// Domains are all names that the routes are for: a gateway's virtual host may have several.
	Domains []string
	Port    int
	// Served says that the proxy knows a service of that name with that port.
	Served bool
	Routes []Route
}

// Route is one route of a virtual host.
type Route struct {
	// From is the entry that made the route, and Root the one that delegated to it; both are the same without a delegate.
	From, Root Source
	Match      Match
	Targets    []Target
}

// Target is where a route leads to, or mirrors to.
type Target struct {
	// Cluster as Envoy calls it.
	Cluster string
	Host    string
	Subset  string
	Port    int
	// Exists says that the proxy has the cluster.
	Exists bool
	// Field is the path of the destination in Object.
	Field  string
	Source Source
}

// Knows says whether the proxy has a service of that name in its scope.
func (c *Config) Knows(name string) bool {
	return c.services[host.Name(name)] != nil
}

// Serves says whether a service of that name in its scope has the port.
func (c *Config) Serves(name string, port int) bool {
	s := c.services[host.Name(name)]
	if s == nil {
		return false
	}
	_, ok := s.Ports.GetByPort(port)
	return ok
}

// Routes gives those that come from a VirtualService, each with its virtual host.
func (c *Config) Routes(yield func(*VirtualHost, int) bool) {
	for i := range c.Hosts {
		for k := range c.Hosts[i].Routes {
			if !yield(&c.Hosts[i], k) {
				return
			}
		}
	}
}

// Ask what a proxy gets. The error is the context's when it has ended. The answer is remembered until Close.
func (m *Mesh) Ask(ctx context.Context, p Proxy) (*Config, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("ask for %s: %w", p, context.Cause(ctx))
	}
	key := p.String()
	if known := m.asked[key]; known != nil {
		return known, nil
	}
	node := m.node(p)
	c := &Config{Proxy: p, clusters: map[string]bool{}, built: sets.String{}, services: node.SidecarScope.ServicesByHostname(), node: node}
	c.sidecars = m.world.Of(networkingGroup, "Sidecar")
	if p.Gateway {
		if err := m.gatewayHosts(c, node); err != nil {
			return nil, fmt.Errorf("ask for %s: %w", p, err)
		}
	} else if err := m.sidecarHosts(ctx, c, node); err != nil {
		return nil, err
	}
	m.clusters(c)
	m.asked[key] = c
	return c, nil
}

// clusters of the hosts that routes lead to are built.
func (m *Mesh) clusters(c *Config) {
	var all []string
	for vh, i := range c.Routes {
		for _, t := range vh.Routes[i].Targets {
			all = append(all, t.Host)
		}
	}
	m.build(c, all)
	for vh, i := range c.Routes {
		for k := range vh.Routes[i].Targets {
			t := &vh.Routes[i].Targets[k]
			t.Exists = c.clusters[t.Cluster]
		}
	}
}

// Lacks gives those of the targets, which may be another answer's, whose clusters the proxy does not have: what it would miss if it still held the
// routes of that answer. The Mesh must be the one that was asked, and open.
func (m *Mesh) Lacks(c *Config, targets []Target) []Target {
	var all []string
	for _, t := range targets {
		all = append(all, t.Host)
	}
	m.build(c, all)
	var missing []Target
	for _, t := range targets {
		if !c.clusters[t.Cluster] {
			missing = append(missing, t)
		}
	}
	return missing
}

// build the clusters of these hosts, as if those alone had changed: building all that a proxy may know takes most of the time.
func (m *Mesh) build(c *Config, names []string) {
	hosts := sets.New[model.ConfigKey]()
	for _, name := range names {
		if !c.built.InsertContains(name) {
			hosts.Insert(model.ConfigKey{Kind: kind.ServiceEntry, Name: name})
		}
	}
	if len(hosts) == 0 {
		return // without a host the library would build them all
	}
	request := &model.PushRequest{Push: m.push, ConfigsUpdated: hosts}
	built, _, _, _ := m.generator.BuildDeltaClusters(c.node, request, &model.WatchedResource{})
	for _, r := range built {
		c.clusters[r.Name] = true
	}
}

// node is the proxy as it introduces itself to istiod.
func (m *Mesh) node(p Proxy) *model.Proxy {
	role := model.SidecarProxy
	if p.Gateway {
		role = model.Router
	}
	node := &model.Proxy{
		Type: role, ID: "proxy." + p.Namespace, ConfigNamespace: p.Namespace, IPAddresses: []string{"240.240.0.1"},
		DNSDomain: p.Namespace + ".svc." + domain, Labels: p.Labels, IstioVersion: model.MaxIstioVersion,
		Metadata: &model.NodeMetadata{Namespace: p.Namespace, Labels: p.Labels, ClusterID: constants.DefaultClusterName},
	}
	node.SetSidecarScope(m.push)
	node.SetServiceTargets(m.env.ServiceDiscovery)
	node.SetGatewaysForProxy(m.push)
	node.DiscoverIPMode()
	return node
}

// sidecarHosts reads the route tables of all ports that a sidecar listens to for what its pod calls.
func (m *Mesh) sidecarHosts(ctx context.Context, c *Config, node *model.Proxy) error {
	ports := sets.New[int]()
	for _, l := range node.SidecarScope.EgressListeners {
		if l.IstioListener.GetPort() != nil {
			ports.Insert(int(l.IstioListener.Port.Number))
			continue
		}
		ports.Insert(80) // on which sidecars route hosts that no service has
		for _, s := range l.Services() {
			for _, p := range s.Ports {
				if p.Protocol.IsHTTPOrSniffed() {
					ports.Insert(p.Port)
				}
			}
		}
	}
	ports.Delete(0) // a socket's path
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("ask for %s: %w", c.Proxy, context.Cause(ctx))
		}
		table, _, _ := core.BuildSidecarOutboundVirtualHosts(node, m.push, strconv.Itoa(port), port, nil, model.DisabledCache{})
		m.read(c, table, port)
	}
	return nil
}

// gatewayHosts reads the route tables of all servers of a gateway.
func (m *Mesh) gatewayHosts(c *Config, node *model.Proxy) error {
	if node.MergedGateway == nil {
		return nil
	}
	servers := node.MergedGateway.ServersByRouteName
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		resources, _ := m.generator.BuildHTTPRoutes(node, m.request(), []string{name})
		for _, r := range resources {
			table := &route.RouteConfiguration{}
			if err := r.Resource.UnmarshalTo(table); err != nil {
				return fmt.Errorf("read the routes %s: %w", name, err)
			}
			m.read(c, table.VirtualHosts, int(servers[name][0].GetPort().GetNumber()))
		}
	}
	return nil
}

// read keeps the routes that VirtualServices made.
func (m *Mesh) read(c *Config, table []*route.VirtualHost, port int) {
	slices.SortFunc(table, func(a, b *route.VirtualHost) int { return strings.Compare(a.Name, b.Name) })
	for _, in := range table {
		out := VirtualHost{Host: in.Name, Domains: in.Domains, Port: port}
		if name, number, ok := cutPort(in.Name); ok {
			out.Host, out.Port = name, number
		}
		out.Served = c.Serves(out.Host, port)
		for _, r := range in.Routes {
			from, root, ok := m.markers.trace(r.Name)
			if ok {
				out.Routes = append(out.Routes, Route{From: from, Root: root, Match: Match{r.Match}, Targets: targets(r, from, root)})
			}
		}
		if len(out.Routes) > 0 {
			c.Hosts = append(c.Hosts, out)
		}
	}
}

// cutPort takes the name of a virtual host apart. The port of an IPv6 address stands behind a bracket.
func cutPort(name string) (string, int, bool) {
	i := strings.LastIndexByte(name, ':')
	if i < 0 {
		return name, 0, false
	}
	port, err := strconv.Atoi(name[i+1:])
	return strings.Trim(name[:i], "[]"), port, err == nil
}
