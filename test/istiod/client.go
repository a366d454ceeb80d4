package istiod

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	v3 "istio.io/istio/pilot/pkg/xds/v3"

	"github.com/mooring-dev/mooring/test/poll"
)

// connectTimeout bounds the wait for the first whole configuration.
const connectTimeout = 30 * time.Second

// ErrSilent from [Behaviour.Answer] leaves a response without an answer, as a proxy that hangs does.
var ErrSilent = errors.New("no answer")

// Behaviour is what a client makes of responses. The zero value acknowledges each.
type Behaviour struct {
	// Answer is asked before a response is taken up. nil takes it up and acknowledges it; ErrSilent does neither, ever; any other error rejects it with
	// that message. It may be nil.
	Answer func(Response) error
	// Seen is called after every single response, when the state holds what it gave and before it is acknowledged: so whoever sees the
	// acknowledgement in /debug/syncz knows that Seen has returned. The state is valid, and stands still, during the call alone. It may be nil.
	Seen func(Response, *State)
}

// Response is one answer of istiod, without what is in the resources.
type Response struct {
	// N counts the responses that the client has had, from 1.
	N int
	// At is when it came.
	At time.Time
	// Type is CDS, EDS, LDS or RDS.
	Type string
	// Nonce and Version as istiod gave them.
	Nonce, Version string
	// Resources and Removed are names, in istiod's order.
	Resources, Removed []string
}

// String reads "12 CDS 3 resources, removed [a b]".
func (r Response) String() string {
	text := fmt.Sprintf("%d %s %d resources", r.N, r.Type, len(r.Resources))
	if len(r.Removed) > 0 {
		text += fmt.Sprintf(", removed %v", r.Removed)
	}
	return text
}

// Client is a connected proxy.
type Client struct {
	proxy     Proxy
	address   string
	behaviour Behaviour
	cancel    context.CancelFunc
	done      chan struct{}

	mu     sync.RWMutex // held by run for writing, so that run itself may read without
	state  *State
	synced bool // the first whole configuration is there
	last   error

	// What follows is run's alone.
	responses  int
	subscribed map[string]map[string]bool   // by type; a type that was not asked for has no entry
	versions   map[string]map[string]string // by type, for a reconnect
	answered   map[string]bool              // by type
}

// Connect connects a proxy and returns once it has its first whole configuration. It stays connected until the test's end. A client that does not
// acknowledge everything never has one: use [Dial].
func Connect(t testing.TB, i *Istiod, p Proxy, b Behaviour) *Client {
	t.Helper()
	c := Dial(t, i, p, b)
	ctx, cancel := context.WithTimeout(t.Context(), connectTimeout)
	defer cancel()
	if err := c.await(ctx, func() bool { return c.synced }); err != nil {
		t.Fatalf("%s has no configuration: %v", p, err)
	}
	return c
}

// Dial connects a proxy in the background. It stays connected until the test's end.
func Dial(t testing.TB, i *Istiod, p Proxy, b Behaviour) *Client {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &Client{
		proxy: p, address: i.XDS, behaviour: b, cancel: cancel, done: make(chan struct{}), state: newState(), answered: map[string]bool{},
		versions: map[string]map[string]string{v3.ClusterType: {}, v3.EndpointType: {}, v3.ListenerType: {}, v3.RouteType: {}},
	}
	go c.run(ctx)
	t.Cleanup(c.Close)
	return c
}

// Close disconnects.
func (c *Client) Close() {
	c.cancel()
	<-c.done
}

// Proxy is who the client is.
func (c *Client) Proxy() Proxy { return c.proxy }

// Snapshot is what the proxy has now.
func (c *Client) Snapshot() *State {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.state.clone()
}

// Await returns once the state is as wanted, or with the reason why it did not become so.
func (c *Client) Await(ctx context.Context, done func(*State) bool) error {
	return c.await(ctx, func() bool { return done(c.state) })
}

func (c *Client) await(ctx context.Context, done func() bool) error {
	return poll.Until(ctx, "istiod has said so", func() error {
		c.mu.RLock()
		defer c.mu.RUnlock()
		if done() {
			return nil
		}
		return errors.Join(errors.New("not yet"), c.last)
	})
}

// run connects, and connects anew.
func (c *Client) run(ctx context.Context) {
	defer close(c.done)
	for ctx.Err() == nil {
		err := c.stream(ctx)
		c.mu.Lock()
		c.last = err
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stream is one connection, until it breaks.
func (c *Client) stream(ctx context.Context) error {
	connection, err := grpc.NewClient(c.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(connection).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	if err := c.introduce(stream); err != nil {
		return err
	}
	for {
		answer, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("wait for istiod: %w", err)
		}
		if err := c.take(stream, answer); err != nil {
			return err
		}
	}
}

// deltaStream is the half of the stream that is spoken into.
type deltaStream interface {
	Send(*discovery.DeltaDiscoveryRequest) error
}

// introduce begins a connection: with clusters, and after a break with all that was asked for before, and what is known of it.
func (c *Client) introduce(stream deltaStream) error {
	before := c.subscribed
	c.subscribed = map[string]map[string]bool{}
	first := &discovery.DeltaDiscoveryRequest{Node: c.proxy.Node(), TypeUrl: v3.ClusterType, InitialResourceVersions: c.versions[v3.ClusterType]}
	c.subscribed[v3.ClusterType] = nil
	if err := stream.Send(first); err != nil {
		return err
	}
	for _, kind := range []string{v3.EndpointType, v3.ListenerType, v3.RouteType} {
		if _, asked := before[kind]; !asked {
			continue
		}
		request := &discovery.DeltaDiscoveryRequest{TypeUrl: kind, InitialResourceVersions: c.versions[kind]}
		for name := range before[kind] {
			request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, name)
		}
		c.subscribed[kind] = before[kind]
		if err := stream.Send(request); err != nil {
			return err
		}
	}
	return nil
}

// take takes up a response and answers it.
func (c *Client) take(stream deltaStream, answer *discovery.DeltaDiscoveryResponse) error {
	c.responses++
	response := describe(c.responses, answer)
	put, err := read(answer.TypeUrl, answer.Resources)
	if err == nil && c.behaviour.Answer != nil {
		err = c.behaviour.Answer(response)
	}
	if err == nil {
		c.apply(answer, put)
	}
	if c.behaviour.Seen != nil {
		c.behaviour.Seen(response, c.state)
	}
	if errors.Is(err, ErrSilent) {
		return nil
	}
	reply := &discovery.DeltaDiscoveryRequest{TypeUrl: answer.TypeUrl, ResponseNonce: answer.Nonce}
	if err != nil {
		reply.ErrorDetail = &status.Status{Code: int32(codes.Internal), Message: err.Error()}
	}
	if err := stream.Send(reply); err != nil {
		return fmt.Errorf("answer %s: %w", response, err)
	}
	return c.ask(stream)
}

func describe(n int, answer *discovery.DeltaDiscoveryResponse) Response {
	r := Response{
		N: n, At: time.Now(), Type: v3.GetShortType(answer.TypeUrl), Nonce: answer.Nonce, Version: answer.SystemVersionInfo, Removed: answer.RemovedResources,
	}
	for _, resource := range answer.Resources {
		r.Resources = append(r.Resources, resource.GetName())
	}
	return r
}

// apply makes the state what the response says.
func (c *Client) apply(answer *discovery.DeltaDiscoveryResponse, put func(*State)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range answer.RemovedResources {
		c.state.remove(answer.TypeUrl, name)
		delete(c.versions[answer.TypeUrl], name)
	}
	put(c.state)
	names := c.subscribed[answer.TypeUrl]
	for _, r := range answer.Resources {
		if names != nil && !names[r.GetName()] { // it was on its way when we unsubscribed
			c.state.remove(answer.TypeUrl, r.GetName())
			continue
		}
		c.versions[answer.TypeUrl][r.GetName()] = r.GetVersion()
	}
	c.forget(v3.EndpointType)
	c.forget(v3.RouteType)
	c.answered[answer.TypeUrl] = true
	c.last = nil
}

// forget drops what nothing names any more: the endpoints go with their cluster.
func (c *Client) forget(kind string) {
	wanted := c.state.wanted(kind)
	for name := range c.versions[kind] {
		if !wanted[name] {
			c.state.remove(kind, name)
			delete(c.versions[kind], name)
		}
	}
}

// ask subscribes to what the state makes necessary, and unsubscribes from what nothing names any more. Endpoints are asked for
// with the first clusters, listeners once those are warm, and routes with the first listeners.
func (c *Client) ask(stream deltaStream) error {
	if err := c.follow(stream, v3.EndpointType); err != nil {
		return err
	}
	if _, asked := c.subscribed[v3.ListenerType]; !asked {
		if !c.complete(v3.EndpointType) {
			return nil
		}
		c.subscribed[v3.ListenerType] = nil
		return stream.Send(&discovery.DeltaDiscoveryRequest{TypeUrl: v3.ListenerType})
	}
	if err := c.follow(stream, v3.RouteType); err != nil {
		return err
	}
	if !c.synced && c.answered[v3.ListenerType] && c.complete(v3.RouteType) {
		c.mu.Lock()
		c.synced = true
		c.mu.Unlock()
	}
	return nil
}

// complete says whether all is there that is wanted of a type.
func (c *Client) complete(kind string) bool {
	for name := range c.state.wanted(kind) {
		if !c.state.has(kind, name) {
			return false
		}
	}
	return true
}

// follow makes the subscription to a type what the state wants.
func (c *Client) follow(stream deltaStream, kind string) error {
	wanted := c.state.wanted(kind)
	before, asked := c.subscribed[kind]
	request := &discovery.DeltaDiscoveryRequest{TypeUrl: kind}
	for name := range wanted {
		if !before[name] {
			request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, name)
		}
	}
	for name := range before {
		if !wanted[name] {
			request.ResourceNamesUnsubscribe = append(request.ResourceNamesUnsubscribe, name)
		}
	}
	if len(request.ResourceNamesSubscribe) == 0 && (!asked || len(request.ResourceNamesUnsubscribe) == 0) {
		return nil
	}
	c.subscribed[kind] = wanted
	return stream.Send(request)
}
