package traffic_test

import (
	"slices"
	"testing"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/mooring-dev/mooring/test/istiod"
	"github.com/mooring-dev/mooring/test/proof/traffic"
)

// ruled is the metadata that istiod gives to what a VirtualService made.
func ruled() *core.Metadata { return by("orders") }

func by(name string) *core.Metadata {
	fields, err := structpb.NewStruct(map[string]any{"config": "/apis/networking.istio.io/v1/namespaces/apps/virtual-service/" + name})
	if err != nil {
		panic(err)
	}
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": fields}}
}

func packed(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

// state has the clusters, ready for use but for the cold ones, and one route configuration.
func state(config *route.RouteConfiguration, clusters, cold []string) *istiod.State {
	s := &istiod.State{
		Clusters: map[string]*cluster.Cluster{}, Endpoints: map[string]*endpoint.ClusterLoadAssignment{},
		Listeners: map[string]*listener.Listener{}, Routes: map[string]*route.RouteConfiguration{config.GetName(): config},
	}
	for _, name := range slices.Concat(clusters, cold) {
		s.Clusters[name] = &cluster.Cluster{Name: name, ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_EDS}}
	}
	for _, name := range clusters {
		s.Endpoints[name] = &endpoint.ClusterLoadAssignment{ClusterName: name}
	}
	return s
}

// to is a route configuration in which a host leads to a cluster.
func to(name string, by *core.Metadata) *route.RouteConfiguration {
	return &route.RouteConfiguration{Name: "80", VirtualHosts: []*route.VirtualHost{{
		Name: "orders", Domains: []string{"orders"},
		Routes: []*route.Route{{Name: "r", Metadata: by, Action: &route.Route_Route{Route: &route.RouteAction{
			ClusterSpecifier: &route.RouteAction_Cluster{Cluster: name},
		}}}},
	}}}
}

// TestWatch shows every kind of fault to a watch, and a commit without any.
func TestWatch(t *testing.T) {
	nobody := &route.RouteConfiguration{Name: "80"}
	for _, tt := range []struct {
		name   string
		passed []*istiod.State
		want   []traffic.Kind
		lasts  bool
	}{
		{"all is well", []*istiod.State{
			state(to("a", ruled()), []string{"a"}, nil), state(to("a", ruled()), []string{"a", "b"}, nil), state(to("b", ruled()), []string{"a", "b"}, nil),
			state(to("b", ruled()), []string{"b"}, nil),
		}, nil, false},
		{"cluster before route", []*istiod.State{
			state(to("a", ruled()), []string{"a", "b"}, nil), state(to("a", ruled()), []string{"b"}, nil), state(to("b", ruled()), []string{"b"}, nil),
		}, []traffic.Kind{traffic.Dangling}, false},
		{"default route before its cluster", []*istiod.State{
			state(nobody, []string{"b"}, nil), state(to("a", nil), []string{"b"}, nil), state(to("a", nil), []string{"a", "b"}, nil),
		}, []traffic.Kind{traffic.Dangling}, false},
		{"host that goes", []*istiod.State{
			state(to("a", nil), []string{"a"}, nil), state(to("a", nil), nil, nil), state(nobody, nil, nil),
		}, []traffic.Kind{traffic.Retired}, false},
		{"host that stays without its cluster", []*istiod.State{
			state(to("a", nil), []string{"a"}, nil), state(to("a", nil), nil, nil),
		}, []traffic.Kind{traffic.Dangling}, true},
		{"host that a Sidecar hides", []*istiod.State{
			state(to("a", by("stays")), []string{"a"}, nil), state(to("a", by("stays")), nil, nil), state(nobody, nil, nil),
		}, []traffic.Kind{traffic.Hidden}, false},
		{"host that goes with its rule, which should go first", []*istiod.State{
			state(to("a", ruled()), []string{"a"}, nil), state(to("a", ruled()), nil, nil), state(nobody, nil, nil),
		}, []traffic.Kind{traffic.Dangling}, false},
		{"host that stays, led elsewhere too late", []*istiod.State{
			state(to("a", by("stays")), []string{"a", "b"}, nil), state(to("a", by("stays")), []string{"b"}, nil), state(to("b", by("stays")), []string{"b"}, nil),
		}, []traffic.Kind{traffic.Dangling}, false},
		{"cold where nobody has been yet", []*istiod.State{
			state(nobody, nil, nil), state(to("b", ruled()), nil, []string{"b"}), state(to("b", ruled()), []string{"b"}, nil),
		}, nil, false},
		{"cold", []*istiod.State{
			state(to("a", ruled()), []string{"a"}, nil), state(to("b", ruled()), []string{"a"}, []string{"b"}), state(to("b", ruled()), []string{"a", "b"}, nil),
		}, []traffic.Kind{traffic.Cold}, false},
		{"unserved", []*istiod.State{
			state(to("a", ruled()), []string{"a"}, nil), state(nobody, []string{"a"}, nil), state(to("a", ruled()), []string{"a"}, nil),
		}, []traffic.Kind{traffic.Unserved}, false},
		{"bare", []*istiod.State{
			state(to("a", ruled()), []string{"a"}, nil), state(to("a", nil), []string{"a"}, nil), state(to("a", ruled()), []string{"a"}, nil),
		}, []traffic.Kind{traffic.Bare}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := traffic.NewWatch(istiod.Proxy{})
			for i, s := range tt.passed {
				w.Seen(istiod.Response{N: i + 1, At: time.Unix(int64(i), 0), Type: "CDS"}, s)
				if i == 0 {
					w.Begin()
				}
			}
			var got []traffic.Kind
			for _, f := range w.End(func(rule string) bool { return rule == "apps/stays" }).Faults {
				got = append(got, f.Kind)
				if f.Lasting != tt.lasts || f.First.N != 2 || f.Responses != 1 {
					t.Errorf("want one response with it, the second: %+v", f)
				}
			}
			if diff := gocmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUses finds a cluster in every place where a proxy may be led to one.
func TestUses(t *testing.T) {
	weighted := &route.RouteConfiguration{
		Name: "80", RequestMirrorPolicies: []*route.RouteAction_RequestMirrorPolicy{{Cluster: "mirror of all"}},
		VirtualHosts: []*route.VirtualHost{{
			Name: "h", RequestMirrorPolicies: []*route.RouteAction_RequestMirrorPolicy{{Cluster: "mirror of a host"}},
			Routes: []*route.Route{{Metadata: ruled(), Action: &route.Route_Route{Route: &route.RouteAction{
				ClusterSpecifier: &route.RouteAction_WeightedClusters{WeightedClusters: &route.WeightedCluster{
					Clusters: []*route.WeightedCluster_ClusterWeight{{Name: "weighted 1"}, {Name: "weighted 2"}},
				}},
				RequestMirrorPolicies: []*route.RouteAction_RequestMirrorPolicy{{Cluster: "mirror of a route"}},
			}}}},
		}},
	}
	s := state(weighted, nil, nil)
	s.Listeners["in"] = &listener.Listener{
		FilterChains: []*listener.FilterChain{
			{Filters: []*listener.Filter{{ConfigType: &listener.Filter_TypedConfig{TypedConfig: packed(&tcp.TcpProxy{
				ClusterSpecifier: &tcp.TcpProxy_WeightedClusters{WeightedClusters: &tcp.TcpProxy_WeightedCluster{
					Clusters: []*tcp.TcpProxy_WeightedCluster_ClusterWeight{{Name: "tcp 1"}, {Name: "tcp 2"}},
				}},
			})}}}},
			{Filters: []*listener.Filter{{ConfigType: &listener.Filter_TypedConfig{TypedConfig: packed(&hcm.HttpConnectionManager{
				RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: to("inline", nil)},
			})}}}},
		},
		DefaultFilterChain: &listener.FilterChain{Metadata: ruled(), Filters: []*listener.Filter{{ConfigType: &listener.Filter_TypedConfig{
			TypedConfig: packed(&tcp.TcpProxy{ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: "tcp"}}),
		}}}},
	}
	got := map[string]string{}
	for _, u := range traffic.Uses(s) {
		got[u.Cluster] = u.Rule
	}
	want := map[string]string{
		"mirror of all": "", "mirror of a host": "", "weighted 1": "apps/orders", "weighted 2": "apps/orders", "mirror of a route": "apps/orders",
		"tcp 1": "", "tcp 2": "", "inline": "", "tcp": "apps/orders",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}
