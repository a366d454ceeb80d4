package istiod

import (
	"fmt"
	"maps"
	"slices"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"istio.io/istio/pilot/pkg/networking/core"
	v3 "istio.io/istio/pilot/pkg/xds/v3"
)

// State is what a proxy has been given and not been taken away, by name. Endpoints go by the name that their cluster asks for, which is the cluster's own
// with Istio.
type State struct {
	Clusters  map[string]*cluster.Cluster
	Endpoints map[string]*endpoint.ClusterLoadAssignment
	Listeners map[string]*listener.Listener
	Routes    map[string]*route.RouteConfiguration
}

func newState() *State {
	return &State{
		Clusters: map[string]*cluster.Cluster{}, Endpoints: map[string]*endpoint.ClusterLoadAssignment{},
		Listeners: map[string]*listener.Listener{}, Routes: map[string]*route.RouteConfiguration{},
	}
}

// Warm says whether the proxy could send traffic to a cluster: it has it, and its endpoints if it asks for some.
func (s *State) Warm(name string) bool {
	c, ok := s.Clusters[name]
	if !ok {
		return false
	}
	if c.GetType() != cluster.Cluster_EDS {
		return true
	}
	_, ok = s.Endpoints[endpointsOf(c)]
	return ok
}

// endpointsOf is the name under which a cluster asks for endpoints.
func endpointsOf(c *cluster.Cluster) string {
	if name := c.GetEdsClusterConfig().GetServiceName(); name != "" {
		return name
	}
	return c.GetName()
}

// wanted are the resources that the state makes necessary, of a type that is subscribed to by name.
func (s *State) wanted(kind string) map[string]bool {
	out := map[string]bool{}
	switch kind {
	case v3.EndpointType:
		for _, c := range s.Clusters {
			if c.GetType() == cluster.Cluster_EDS {
				out[endpointsOf(c)] = true
			}
		}
	case v3.RouteType:
		for _, name := range core.ExtractRoutesFromListeners(slices.Collect(maps.Values(s.Listeners))) {
			out[name] = true
		}
	}
	return out
}

// has says whether the resource is there.
func (s *State) has(kind, name string) (ok bool) {
	switch kind {
	case v3.ClusterType:
		_, ok = s.Clusters[name]
	case v3.EndpointType:
		_, ok = s.Endpoints[name]
	case v3.ListenerType:
		_, ok = s.Listeners[name]
	case v3.RouteType:
		_, ok = s.Routes[name]
	}
	return ok
}

func (s *State) remove(kind, name string) {
	switch kind {
	case v3.ClusterType:
		delete(s.Clusters, name)
	case v3.EndpointType:
		delete(s.Endpoints, name)
	case v3.ListenerType:
		delete(s.Listeners, name)
	case v3.RouteType:
		delete(s.Routes, name)
	}
}

// read parses the resources of a response and gives what puts them into a state.
func read(kind string, resources []*discovery.Resource) (put func(*State), err error) {
	switch kind {
	case v3.ClusterType:
		return reading(resources, func(s *State) map[string]*cluster.Cluster { return s.Clusters })
	case v3.EndpointType:
		return reading(resources, func(s *State) map[string]*endpoint.ClusterLoadAssignment { return s.Endpoints })
	case v3.ListenerType:
		return reading(resources, func(s *State) map[string]*listener.Listener { return s.Listeners })
	case v3.RouteType:
		return reading(resources, func(s *State) map[string]*route.RouteConfiguration { return s.Routes })
	}
	return nil, fmt.Errorf("read a response of type %s: nobody asked for that", kind)
}

func reading[T any, P interface {
	*T
	proto.Message
}](resources []*discovery.Resource, in func(*State) map[string]P) (func(*State), error) {
	parsed := make(map[string]P, len(resources))
	for _, r := range resources {
		message := P(new(T))
		if err := r.GetResource().UnmarshalTo(message); err != nil {
			return nil, fmt.Errorf("read %s: %w", r.GetName(), err)
		}
		parsed[r.GetName()] = message
	}
	return func(s *State) { maps.Copy(in(s), parsed) }, nil
}

// clone copies the maps. The messages are never changed, so they are shared.
func (s *State) clone() *State {
	return &State{Clusters: maps.Clone(s.Clusters), Endpoints: maps.Clone(s.Endpoints), Listeners: maps.Clone(s.Listeners), Routes: maps.Clone(s.Routes)}
}
