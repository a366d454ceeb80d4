package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/proxy"
	"github.com/mooring-dev/mooring/render/check/world"
	"github.com/mooring-dev/mooring/test/poll"
)

// TestMain finds goroutines that a closed Mesh left behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const shop = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: shop}
spec:
  selector: {app: reviews}
  ports: [{name: http, port: 9080}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers:
  - port: {number: 80, name: http, protocol: HTTP}
    hosts: [shop.example.com]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec:
  host: web
  subsets: [{name: v1, labels: {version: v1}}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [shop.example.com, web]
  gateways: [public, mesh]
  http:
  - match: [{uri: {prefix: /reviews}}, {uri: {prefix: /ratings}}]
    delegate: {name: reviews}
  - route:
    - destination: {host: web, subset: v1}
      weight: 90
    - destination: {host: web, subset: v2}
      weight: 10
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: shop}
spec:
  http:
  - match: [{uri: {prefix: /reviews/slow}}]
    route: [{destination: {host: reviews, port: {number: 9080}}}]
  - route: [{destination: {host: reviews}}]
`

// TestRoutesAreTraced follows each route to the entry and the match that made it, through a delegate too.
func TestRoutesAreTraced(t *testing.T) {
	m := mesh(t, t.Context(), shop)
	var got []string
	for _, p := range m.Proxies() {
		c, err := m.Ask(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for vh, i := range c.Routes {
			r := vh.Routes[i]
			line := fmt.Sprintf("%s: %s:%d %s %s", p, vh.Host, vh.Port, r.From.Object.ID.Name, r.From.MatchField())
			if r.Root.Object != r.From.Object {
				line += " by " + r.Root.MatchField()
			}
			for _, to := range r.Targets {
				line += fmt.Sprintf(" -> %s %s %t", strings.TrimPrefix(to.Field, r.From.Field()+"."), to.Cluster, to.Exists)
			}
			got = append(got, line)
		}
	}
	want := []string{
		"the gateway istio=ingressgateway in istio-system: shop.example.com:80 reviews spec.http[0].match[0] by spec.http[0].match[0] -> route[0].destination outbound|9080||reviews.shop.svc.cluster.local true",
		"the gateway istio=ingressgateway in istio-system: shop.example.com:80 reviews spec.http[1] by spec.http[0].match[0] -> route[0].destination outbound|9080||reviews.shop.svc.cluster.local true",
		"the gateway istio=ingressgateway in istio-system: shop.example.com:80 reviews spec.http[1] by spec.http[0].match[1] -> route[0].destination outbound|9080||reviews.shop.svc.cluster.local true",
		"the gateway istio=ingressgateway in istio-system: shop.example.com:80 web spec.http[1] -> route[0].destination outbound|80|v1|web.shop.svc.cluster.local true -> route[1].destination outbound|80|v2|web.shop.svc.cluster.local false",
		"the sidecars in shop: shop.example.com:80 reviews spec.http[0].match[0] by spec.http[0].match[0] -> route[0].destination outbound|9080||reviews.shop.svc.cluster.local true",
		"the sidecars in shop: shop.example.com:80 reviews spec.http[1] by spec.http[0].match[0] -> route[0].destination outbound|80||reviews.shop.svc.cluster.local false",
		"the sidecars in shop: shop.example.com:80 reviews spec.http[1] by spec.http[0].match[1] -> route[0].destination outbound|80||reviews.shop.svc.cluster.local false",
		"the sidecars in shop: shop.example.com:80 web spec.http[1] -> route[0].destination outbound|80|v1|web.shop.svc.cluster.local true -> route[1].destination outbound|80|v2|web.shop.svc.cluster.local false",
	}
	if diff := cmp.Diff(want, dropPrefix(got, "web.shop.svc.cluster.local:80")); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
}

// dropPrefix leaves out the routes of a second host of the same VirtualService.
func dropPrefix(lines []string, host string) []string {
	var out []string
	for _, line := range lines {
		if !strings.Contains(line, ": "+host+" ") {
			out = append(out, line)
		}
	}
	return out
}

// TestNothingIsLeftBehind makes many meshes: goroutines end, and memory stays.
func TestNothingIsLeftBehind(t *testing.T) {
	w := worldOf(t, shop)
	run := func(times int) uint64 {
		goroutines := runtime.NumGoroutine()
		for range times {
			m, err := proxy.New(t.Context(), w, proxy.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range m.Proxies() {
				if _, err := m.Ask(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			m.Close()
			m.Close()
		}
		// What was told to end does so in its own time.
		poll.Await(t, 20*time.Second, "all goroutines have ended", func() error {
			if n := runtime.NumGoroutine(); n > goroutines {
				return fmt.Errorf("%d goroutines, %d before", n, goroutines)
			}
			return nil
		})
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	run(1) // the library starts what it keeps
	early, late := run(49), run(450)
	t.Logf("heap after 50 meshes %d KiB, after 500 %d KiB", early/1024, late/1024)
	if late > early+2<<20 {
		t.Errorf("the heap grew from %d to %d bytes over 450 meshes", early, late)
	}
}

// TestDeadline is kept by all that takes long.
func TestDeadline(t *testing.T) {
	over, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("time is up")
	cancel(reason)
	if m, err := proxy.New(over, worldOf(t, shop), proxy.Options{}); m != nil || !errors.Is(err, reason) {
		t.Errorf("a context that has ended gives %v, %v", m, err)
	}
	m := mesh(t, t.Context(), shop)
	if _, err := m.Ask(over, m.Proxies()[0]); !errors.Is(err, reason) {
		t.Errorf("Ask gives %v", err)
	}
}

func mesh(t *testing.T, ctx context.Context, text string) *proxy.Mesh {
	t.Helper()
	m, err := proxy.New(ctx, worldOf(t, text), proxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func worldOf(t testing.TB, text string) *world.World {
	t.Helper()
	return world.NewConverter().After(&render.Set{Objects: parse(t, text)}, nil)
}

func parse(t testing.TB, text string) []render.Object {
	t.Helper()
	var all []render.Object
	d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := d.Decode(u); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			all = append(all, render.Object{Content: render.ContentOf(u)})
		}
	}
}
