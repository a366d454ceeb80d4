package istiod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	//lint:ignore SA1019 k8s.io/streaming, which takes its place, is no direct requirement of this module, and has the same code
	"k8s.io/apimachinery/pkg/util/httpstream"
	//lint:ignore SA1019 k8s.io/streaming, which takes its place, is no direct requirement of this module, and has the same code
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	"k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	tunnel "k8s.io/client-go/tools/portforward"
	clientspdy "k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/transport/websocket"
)

// forward is a port-forward to one Pod: a connection through the API server and the kubelet, in which each stream arrives in the
// Pod as a connection from its own loopback. No port is opened on our side, where others could use it.
type forward struct {
	connection httpstream.Connection

	mu     sync.Mutex
	number int
}

// dialPod opens a port-forward: over a WebSocket, or as SPDY where the API server, or something before it, does not know these. Why a WebSocket was
// not to be had does not matter then: what stands in the way of both is said by the second.
func dialPod(ctx context.Context, cfg *rest.Config, at *url.URL) (*forward, error) {
	connection, err := dialWebSocket(ctx, cfg, at)
	if err != nil && ctx.Err() == nil {
		connection, err = dialSPDY(ctx, cfg, at)
	}
	if err != nil {
		return nil, err
	}
	return &forward{connection: connection}, nil
}

func dialWebSocket(ctx context.Context, cfg *rest.Config, at *url.URL) (httpstream.Connection, error) {
	transport, holder, err := websocket.RoundTripperFor(cfg)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	socket, err := websocket.Negotiate(transport, holder, request, portforward.WebsocketsSPDYTunnelingPortForwardV1)
	if err != nil {
		return nil, err
	}
	connection, err := spdy.NewClientConnection(tunnel.NewTunnelingConnection("istiod", socket))
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return connection, nil
}

func dialSPDY(ctx context.Context, cfg *rest.Config, at *url.URL) (httpstream.Connection, error) {
	transport, upgrader, err := clientspdy.RoundTripperFor(cfg)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(httpstream.HeaderProtocolVersion, portforward.PortForwardV1Name)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, answered(response)
	}
	return upgrader.NewConnection(response)
}

// answered makes an error of an answer of the API server, or of whoever is before it.
func answered(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("read the answer %s: %w", response.Status, err)
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Status == metav1.StatusFailure {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return fmt.Errorf("%s: %s", response.Status, body)
}

func (f *forward) close() { _ = f.connection.Close() }

// dial opens a connection to a port of the Pod.
func (f *forward) dial(port int) (net.Conn, error) {
	f.mu.Lock()
	f.number++
	number := f.number
	f.mu.Unlock()
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(number))
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	faults, err := f.connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("port-forward: %w", err)
	}
	_ = faults.Close() // nothing is written to it; what is read from it is not touched by this
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := f.connection.CreateStream(headers)
	if err != nil {
		f.connection.RemoveStreams(faults)
		return nil, fmt.Errorf("port-forward: %w", err)
	}
	c := &streamConn{Stream: data, port: port, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.fault, _ = io.ReadAll(io.LimitReader(faults, 4<<10)) // ends with the connection at the latest
		if len(c.fault) > 0 {
			_ = data.Reset()
		}
	}()
	c.end = sync.OnceFunc(func() {
		_ = data.Reset()
		_ = faults.Reset()
		f.connection.RemoveStreams(data, faults)
	})
	return c, nil
}

// streamConn makes a net.Conn of the two streams of a forwarded connection.
type streamConn struct {
	httpstream.Stream
	port  int
	end   func()
	done  chan struct{} // closed when fault is complete
	fault []byte        // what the kubelet says about the connection
}

func (c *streamConn) Close() error {
	c.end()
	return nil
}

// Read gives the kubelet's reason instead of the bare end that it makes of the connection.
func (c *streamConn) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if err == nil || n > 0 {
		return n, err
	}
	select {
	case <-c.done:
	case <-time.After(100 * time.Millisecond): // the reason travels in a stream of its own
		return n, err
	}
	if len(c.fault) > 0 {
		return n, fmt.Errorf("port-forward to port %d: %s", c.port, c.fault)
	}
	return n, err
}

func (c *streamConn) LocalAddr() net.Addr              { return addr("port-forward") }
func (c *streamConn) RemoteAddr() net.Addr             { return addr("port-forward:" + strconv.Itoa(c.port)) }
func (c *streamConn) SetDeadline(time.Time) error      { return nil } // questions are bounded by their contexts
func (c *streamConn) SetReadDeadline(time.Time) error  { return nil }
func (c *streamConn) SetWriteDeadline(time.Time) error { return nil }

type addr string

func (a addr) Network() string { return "port-forward" }
func (a addr) String() string  { return string(a) }
