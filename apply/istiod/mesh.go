package istiod

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply"
)

// Ask says by which way istiod is asked.
type Ask string

// The ways.
const (
	// PortForward goes through the API server to each istiod, which then takes the question for one of its own machine and asks
	// for no proof of identity.
	PortForward Ask = "PortForward"
	// Service goes over the network to each istiod, with a token.
	Service Ask = "Service"
	// Never does not ask.
	Never Ask = "Never"
)

// The defaults of a Policy.
const (
	DefaultPause   = 5 * time.Second
	DefaultTimeout = time.Minute
)

// Options of a Client.
type Options struct {
	// URLs of istiods' debug interfaces, such as http://127.0.0.1:15014. With them no Pods are looked for, and a Mesh that asks by
	// Service asks these.
	URLs []string
	// TokenFile holds the token that is shown to istiod by Service; it is read for every question, because a kubelet renews
	// it. Empty for none.
	TokenFile string
}

// Client reaches the istiods of one cluster, with one identity. It is safe for concurrent use.
type Client struct {
	config   *rest.Config
	core     corev1.CoreV1Interface
	metadata metadata.Interface
	opts     Options
}

// New makes a Client that uses cfg's identity for every request to the API server.
func New(cfg *rest.Config, opts Options) (*Client, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // the API server says how fast we may be
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandler = rest.NoWarnings{}
	}
	c := &Client{config: cfg, opts: opts}
	client, err := rest.HTTPClientFor(cfg)
	if err == nil {
		c.core, err = corev1.NewForConfigAndClient(cfg, client)
	}
	if err == nil {
		c.metadata, err = metadata.NewForConfigAndClient(cfg, client)
	}
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", cfg.Host, err)
	}
	for _, url := range opts.URLs {
		if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
			return nil, fmt.Errorf("address of istiod %q: it is http://host:port, such as http://istiod.istio-system:15014", url)
		}
	}
	return c, nil
}

// Policy says how much is done to find out.
type Policy struct {
	// Ask is the way; empty means PortForward.
	Ask Ask
	// Pause is waited for instead, where istiod cannot be asked; 0 means DefaultPause.
	Pause time.Duration
	// Timeout bounds the wait for the proxies; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Mesh is the mesh of a cluster for the length of one run.
func (c *Client) Mesh(p Policy) *Mesh {
	if p.Ask == "" {
		p.Ask = PortForward
	}
	if p.Pause <= 0 {
		p.Pause = DefaultPause
	}
	if p.Timeout <= 0 {
		p.Timeout = DefaultTimeout
	}
	return &Mesh{client: c, policy: p}
}

// Mesh knows how far a change has come on its way to the proxies. It is for one run, and for one question at a time.
type Mesh struct {
	client  *Client
	policy  Policy
	unasked string
}

var _ apply.Mesh = (*Mesh)(nil)

// Unasked says why an istiod was not asked and the pause was waited for instead; empty when all could be asked.
func (m *Mesh) Unasked() string { return m.unasked }

// Propagated returns once every connected proxy has acknowledged what was written, and all before it. The package comment says how that is
// known. Where it cannot be known it returns after the pause, and Unasked says why. An error is a *LateError, or the end of ctx.
func (m *Mesh) Propagated(ctx context.Context, written []apply.Written) error {
	began := time.Now()
	if m.policy.Ask == Never {
		return m.rest(ctx, began, "spec.propagation.ask is Never")
	}
	within, cancel := context.WithTimeoutCause(ctx, m.policy.Timeout, errTimeout)
	defer cancel()
	w := newWatch(m, written)
	defer w.close()
	unasked, err := w.run(within)
	if ctx.Err() != nil {
		return fmt.Errorf("wait for the proxies: %w", context.Cause(ctx))
	}
	if err != nil || unasked == "" {
		return err
	}
	return m.rest(ctx, began, unasked)
}

// rest waits for what is left of the pause.
func (m *Mesh) rest(ctx context.Context, began time.Time, why string) error {
	m.unasked = why
	select {
	case <-time.After(m.policy.Pause - time.Since(began)):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pause for the proxies: %w", context.Cause(ctx))
	}
}

// closeIdle ends the connections that a client holds open.
func closeIdle(c *http.Client) { c.CloseIdleConnections() }
