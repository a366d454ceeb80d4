package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/render/check/proxy"
)

// BenchmarkAsk asks all proxies of a mesh in which a third of the objects each are Services, VirtualServices and DestinationRules, over ten namespaces.
func BenchmarkAsk(b *testing.B) {
	for _, n := range []int{100, 1000, 15000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := worldOf(b, many(n/3))
			for b.Loop() {
				m, err := proxy.New(b.Context(), w, proxy.Options{})
				if err != nil {
					b.Fatal(err)
				}
				for _, p := range m.Proxies() {
					if _, err := m.Ask(b.Context(), p); err != nil {
						b.Fatal(err)
					}
				}
				m.Close()
			}
		})
	}
}

// many writes a mesh of n services, each with subsets and routes.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `
apiVersion: v1
kind: Service
metadata: {name: s%[1]d, namespace: team%[2]d}
spec: {selector: {app: s%[1]d}, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: s%[1]d, namespace: team%[2]d}
spec: {host: s%[1]d, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: s%[1]d, namespace: team%[2]d}
spec:
  hosts: [s%[1]d]
  http:
  - match: [{uri: {prefix: /v2}}]
    route: [{destination: {host: s%[1]d, subset: v2}}]
  - route: [{destination: {host: s%[1]d, subset: v1}}]
---
`, i, i%10)
	}
	return b.String()
}

// BenchmarkProxy asks one sidecar of a mesh of 15,000 objects.
func BenchmarkProxy(b *testing.B) {
	w := worldOf(b, many(5000))
	m, err := proxy.New(b.Context(), w, proxy.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	p := m.Proxies()[0]
	i := 0
	for b.Loop() {
		i++
		p.Labels = map[string]string{"run": fmt.Sprint(i)}
		if _, err := m.Ask(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}
