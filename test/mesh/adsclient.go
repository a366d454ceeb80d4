package mesh

import (
	"context"
	"fmt"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	envoycore "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"istio.io/istio/pilot/pkg/networking/core"
	v3 "istio.io/istio/pilot/pkg/xds/v3"
	"istio.io/istio/pilot/test/xdstest"
)

// Ask asks a running istiod, at the address of its plain gRPC port, what it tells a node.
func Ask(ctx context.Context, address string, node *envoycore.Node) (c Config, err error) {
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return c, err
	}
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).StreamAggregatedResources(ctx)
	if err != nil {
		return c, err
	}
	clusters, err := fetch[cluster.Cluster](stream, node, v3.ClusterType, nil)
	if err != nil {
		return c, err
	}
	endpoints, err := fetch[endpoint.ClusterLoadAssignment](stream, node, v3.EndpointType, xdstest.ExtractEdsClusterNames(clusters))
	if err != nil {
		return c, err
	}
	listeners, err := fetch[listener.Listener](stream, node, v3.ListenerType, nil)
	if err != nil {
		return c, err
	}
	routes, err := fetch[route.RouteConfiguration](stream, node, v3.RouteType, core.ExtractRoutesFromListeners(listeners))
	if err != nil {
		return c, err
	}
	return canonical(listeners, routes, clusters, endpoints)
}

// fetch asks for the resources of one type and acknowledges the first answer.
func fetch[T any, P interface {
	*T
	proto.Message
}](stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient, node *envoycore.Node, kind string, names []string) ([]P, error) {
	if err := stream.Send(&discovery.DiscoveryRequest{Node: node, TypeUrl: kind, ResourceNames: names}); err != nil {
		return nil, fmt.Errorf("ask for %s: %w", kind, err)
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return nil, fmt.Errorf("wait for %s: %w", kind, err)
		}
		if answer.TypeUrl != kind {
			continue // a push of what was asked for before
		}
		if err := stream.Send(&discovery.DiscoveryRequest{
			TypeUrl: kind, ResourceNames: names, VersionInfo: answer.VersionInfo, ResponseNonce: answer.Nonce,
		}); err != nil {
			return nil, fmt.Errorf("acknowledge %s: %w", kind, err)
		}
		return unpack[T, P](answer.Resources)
	}
}

func unpack[T any, P interface {
	*T
	proto.Message
}](packed []*anypb.Any) ([]P, error) {
	var out []P
	for _, p := range packed {
		message := P(new(T))
		if err := p.UnmarshalTo(message); err != nil {
			return nil, err
		}
		out = append(out, message)
	}
	return out, nil
}
