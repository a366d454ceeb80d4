package istiod_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/istiod"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

func TestMain(m *testing.M) { os.Exit(istiod.Run(m)) }

const shop = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: orders, namespace: $NS}
spec:
  hosts: [orders.$NS.example]
  ports: [{number: 8080, name: http, protocol: HTTP}]
  resolution: STATIC
  location: MESH_INTERNAL
  endpoints:
  - {address: 10.2.0.1, labels: {version: v1}}
  - {address: 10.2.0.2, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: orders, namespace: $NS}
spec:
  host: orders.$NS.example
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: $NS}
spec:
  selector: {istio: ingressgateway}
  servers: [{hosts: [orders.$NS.example], port: {number: 80, name: http, protocol: HTTP}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: orders, namespace: $NS}
spec:
  hosts: [orders.$NS.example]
  gateways: [front, mesh]
  http: [{route: [{destination: {host: orders.$NS.example, subset: v1}}]}]
`

// fixture is a small mesh in a namespace of its own.
type fixture struct {
	*testing.T
	cluster *kube.Cluster
	pilot   *istiod.Istiod
	ns      string
}

func start(t *testing.T) *fixture {
	t.Helper()
	cluster := kube.Start(t)
	f := &fixture{T: t, cluster: cluster, ns: cluster.Namespace(t)}
	f.apply(shop)
	f.pilot = istiod.Start(t, cluster, istiod.Options{Env: []string{"PILOT_DEBOUNCE_AFTER=20ms"}})
	return f
}

func (f *fixture) apply(stream string) {
	f.Helper()
	file := f.TempDir() + "/mesh.yaml"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(stream, "$NS", f.ns)), 0o600); err != nil {
		f.Fatal(err)
	}
	if _, err := f.cluster.Kubectl(f.Context(), "apply", "-f", file); err != nil {
		f.Fatal(err)
	}
}

// route names the cluster of a subset of orders.
func (f *fixture) route(subset string) string {
	return fmt.Sprintf("outbound|8080|%s|orders.%s.example", subset, f.ns)
}

// routedTo says whether any route of the state names the cluster.
func routedTo(s *istiod.State, cluster string) bool {
	for _, r := range s.Routes {
		for _, host := range r.VirtualHosts {
			for _, route := range host.Routes {
				if route.GetRoute().GetCluster() == cluster {
					return true
				}
			}
		}
	}
	return false
}

func (f *fixture) await(c *istiod.Client, what string, done func(*istiod.State) bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Second)
	defer cancel()
	if err := c.Await(ctx, done); err != nil {
		f.Fatalf("%s: never so: %s: %v", c.Proxy(), what, err)
	}
}

// syncz is what istiod says of a proxy.
func (f *fixture) syncz(p istiod.Proxy) map[string]any {
	f.Helper()
	request, err := http.NewRequestWithContext(f.Context(), http.MethodGet, "http://"+f.pilot.HTTP+"/debug/syncz", nil)
	if err != nil {
		f.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var all []map[string]any
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		f.Fatal(err)
	}
	for _, one := range all {
		if one["proxy"] == p.ID() {
			return one
		}
	}
	return nil
}

// TestConnected follows a change to a sidecar and to a gateway.
func TestConnected(t *testing.T) {
	f := start(t)
	seen := make(chan istiod.Response, 1000)
	for _, p := range []istiod.Proxy{{Namespace: f.ns}, {Gateway: true}} {
		c := istiod.Connect(t, f.pilot, p, istiod.Behaviour{Seen: func(r istiod.Response, s *istiod.State) {
			for name := range s.Endpoints {
				if s.Clusters[name] == nil {
					t.Errorf("%s: after %s there are endpoints of %s, which is no cluster", p, r, name)
				}
			}
			seen <- r
		}})
		before := c.Snapshot()
		if !routedTo(before, f.route("v1")) || routedTo(before, f.route("v2")) || !before.Warm(f.route("v1")) || !before.Warm(f.route("v2")) {
			t.Fatalf("%s has not what the mesh holds: %v", p, before.Routes)
		}
		if got := len(before.Endpoints[f.route("v2")].GetEndpoints()); got != 1 {
			t.Errorf("%s: %d localities with endpoints of v2, want one", p, got)
		}
		f.apply(strings.ReplaceAll(shop, "subset: v1", "subset: v2"))
		f.await(c, "the route leads to v2", func(s *istiod.State) bool { return routedTo(s, f.route("v2")) })
		f.apply(strings.ReplaceAll(strings.ReplaceAll(shop, "subset: v1", "subset: v2"), "{name: v1, labels: {version: v1}},", ""))
		f.await(c, "v1 is gone", func(s *istiod.State) bool {
			return s.Clusters[f.route("v1")] == nil && s.Endpoints[f.route("v1")] == nil
		})
		f.apply(shop)
		f.await(c, "v1 is back, and warm", func(s *istiod.State) bool { return s.Warm(f.route("v1")) && routedTo(s, f.route("v1")) })
		c.Close()
	}
	close(seen)
	kinds := map[string]int{}
	last := 0
	for r := range seen {
		kinds[r.Type]++
		if r.N != last+1 && r.N != 1 {
			t.Errorf("response %d comes after %d", r.N, last)
		}
		last = r.N
	}
	for _, kind := range []string{"CDS", "EDS", "LDS", "RDS"} {
		if kinds[kind] < 2 {
			t.Errorf("%d responses of type %s, want one for each proxy at the least", kinds[kind], kind)
		}
	}
}

// TestBehaviour has a proxy that acknowledges, one that rejects and one that hangs, and looks at what istiod knows of them.
func TestBehaviour(t *testing.T) {
	f := start(t)
	var reject, hang atomic.Bool
	good := istiod.Connect(t, f.pilot, istiod.Proxy{Namespace: f.ns, Name: "good"}, istiod.Behaviour{})
	bad := istiod.Connect(t, f.pilot, istiod.Proxy{Namespace: f.ns, Name: "bad"}, istiod.Behaviour{Answer: func(istiod.Response) error {
		if reject.Load() {
			return errors.New("the test says no")
		}
		return nil
	}})
	mute := istiod.Connect(t, f.pilot, istiod.Proxy{Namespace: f.ns, Name: "mute"}, istiod.Behaviour{Answer: func(istiod.Response) error {
		if hang.Load() {
			return istiod.ErrSilent
		}
		return nil
	}})
	reject.Store(true)
	hang.Store(true)
	f.apply(strings.ReplaceAll(shop, "subset: v1", "subset: v2"))
	f.await(good, "the route leads to v2", func(s *istiod.State) bool { return routedTo(s, f.route("v2")) })
	f.eventually("istiod knows what became of its routes", func() bool {
		acked := f.syncz(good.Proxy())
		refused, _ := f.syncz(bad.Proxy())["resources"].(map[string]any)
		text, _ := json.Marshal(refused)
		waiting := f.syncz(mute.Proxy())
		return acked["route_sent"] == acked["route_acked"] && strings.Contains(string(text), "the test says no") && waiting["route_sent"] != waiting["route_acked"]
	})
	for _, c := range []*istiod.Client{bad, mute} {
		if routedTo(c.Snapshot(), f.route("v2")) {
			t.Errorf("%s took up what it did not acknowledge", c.Proxy())
		}
	}
}

// TestReconnect kills istiod, changes the mesh, and starts another at the same address.
func TestReconnect(t *testing.T) {
	f := start(t)
	c := istiod.Connect(t, f.pilot, istiod.Proxy{Namespace: f.ns}, istiod.Behaviour{})
	if err := syscall.Kill(f.pilot.PID(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if !c.Snapshot().Warm(f.route("v1")) {
		t.Error("a proxy forgets what it has when istiod hangs")
	}
	f.apply(strings.ReplaceAll(strings.ReplaceAll(shop, "subset: v1", "subset: v2"), "{name: v1, labels: {version: v1}},", ""))
	f.pilot.Kill()
	f.pilot.Restart(t)
	f.await(c, "v1 is gone and the route leads to v2", func(s *istiod.State) bool {
		return s.Clusters[f.route("v1")] == nil && s.Warm(f.route("v2")) && routedTo(s, f.route("v2")) && !routedTo(s, f.route("v1"))
	})
	if all := c.Snapshot(); !slices.ContainsFunc([]string{"virtualInbound", "virtualOutbound"}, func(n string) bool { return all.Listeners[n] != nil }) {
		t.Errorf("the listeners are not there any more: %v", all.Listeners)
	}
}

func (f *fixture) eventually(what string, done func() bool) {
	f.Helper()
	poll.AwaitTrue(f, 20*time.Second, what, done)
}
