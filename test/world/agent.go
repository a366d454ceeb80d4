package world

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/mooring-dev/mooring/test/child"
	"github.com/mooring-dev/mooring/test/poll"
)

// AgentOptions of one agent.
type AgentOptions struct {
	// Name tells the agents of a world apart, in the names of their logs; "agent" when empty. One that is started anew
	// under the same name goes on with the same store and the same log.
	Name string
	// Kubeconfig of the agent; the admin's when empty.
	Kubeconfig string
	// EmptyStore begins without what an earlier agent of that name had fetched, as on another machine.
	EmptyStore bool
	// Args are more flags.
	Args []string
}

// Agent is a running agent: the real binary in a process of its own.
type Agent struct {
	*child.Process
	// MetricsURL and ProbeURL are where it answers over http.
	MetricsURL, ProbeURL string
}

// StartAgent starts an agent and answers when it says that it is ready.
func (w *World) StartAgent(ctx context.Context, o AgentOptions) (*Agent, error) {
	if o.Name == "" {
		o.Name = "agent"
	}
	if o.Kubeconfig == "" {
		o.Kubeconfig = w.Cluster.Kubeconfig()
	}
	store := w.path(o.Name + "-store")
	if o.EmptyStore {
		if err := os.RemoveAll(store); err != nil {
			return nil, err
		}
	}
	var err error
	// A port is free when it is chosen and may be taken a moment later, so a few are tried.
	for range 5 {
		var a *Agent
		if a, err = w.tryAgent(ctx, o, store); err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

func (w *World) tryAgent(ctx context.Context, o AgentOptions, store string) (*Agent, error) {
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(w.path("bin", "mooring"), append([]string{
		"agent", "--store", store, "--kubeconfig", o.Kubeconfig,
		"--metrics-bind-address", ports[0], "--health-probe-bind-address", ports[1],
	}, o.Args...)...)
	cmd.Env = w.environment()
	p, err := child.Start(o.Name, w.path(o.Name+".log"), cmd)
	if err != nil {
		return nil, err
	}
	a := &Agent{Process: p, MetricsURL: "http://" + ports[0] + "/metrics", ProbeURL: "http://" + ports[1]}
	w.mu.Lock()
	w.agents = append(w.agents, a)
	w.mu.Unlock()
	err = poll.Until(ctx, o.Name+" is ready", func() error {
		if ended := p.Ended(); ended != nil {
			return poll.Final(ended)
		}
		return a.Probe(ctx, "readyz")
	})
	if err != nil {
		a.Kill()
		return nil, fmt.Errorf("%w\n%s", err, a.LogTail(20))
	}
	return a, nil
}

// Stop asks the agent to end, as Kubernetes does, and waits. An agent that does not end by itself is an error.
func (a *Agent) Stop() error { return a.Process.Stop(context.Background()) }

// Probe asks one of the health endpoints, "healthz" or "readyz".
func (a *Agent) Probe(ctx context.Context, name string) error {
	_, err := fetch(ctx, a.ProbeURL+"/"+name)
	return err
}

// Metrics are the agent's metrics by name and labels, as in `mooring_ready{name="prod",namespace="mesh",reason="Applied"}`.
type Metrics map[string]float64

// Metrics asks the agent for its metrics.
func (a *Agent) Metrics(ctx context.Context) (Metrics, error) {
	text, err := fetch(ctx, a.MetricsURL)
	if err != nil {
		return nil, err
	}
	all := Metrics{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := cutLast(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if all[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("parse metric %q: %w", lines.Text(), err)
		}
	}
	return all, lines.Err()
}

// Get gives the sum of the series of a metric that have these labels, each written as `name="value"`.
func (m Metrics) Get(metric string, labels ...string) float64 {
	sum := 0.0
	for _, series := range m.Series(metric, labels...) {
		sum += m[series]
	}
	return sum
}

// Series lists the series of a metric that have these labels.
func (m Metrics) Series(metric string, labels ...string) []string {
	var found []string
	for _, series := range slices.Sorted(maps.Keys(m)) {
		name, rest, _ := strings.Cut(series, "{")
		if name != metric {
			continue
		}
		has := strings.Split(strings.TrimSuffix(rest, "}"), ",")
		if !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
			found = append(found, series)
		}
	}
	return found
}

func fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %s", url, res.Status, body)
	}
	return string(body), err
}

// FreePorts gives addresses on loopback that nobody listened on a moment ago.
func FreePorts(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = l.Close() }() // all at the end, so that no two are the same
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
