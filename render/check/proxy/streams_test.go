package proxy_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const streams = `
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: 10.1.2.3, selector: {app: db}, ports: [{name: tcp, port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: shop}
spec: {clusterIP: 10.1.2.4, selector: {app: plain}, ports: [{name: tcp, port: 5433}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: bank, namespace: shop}
spec: {hosts: [bank.example.com], ports: [{number: 443, name: tls, protocol: TLS}], resolution: DNS}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 5432, name: tcp, protocol: TCP}, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: db, namespace: shop}
spec: {host: db, subsets: [{name: v1, labels: {version: v1}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: db, namespace: shop}
spec:
  hosts: [db]
  gateways: [public, mesh]
  tcp: [{route: [{destination: {host: db, subset: v1}, weight: 90}, {destination: {host: db, subset: v2}, weight: 10}]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: bank, namespace: shop}
spec:
  hosts: [bank.example.com]
  tls: [{match: [{port: 443, sniHosts: [bank.example.com]}], route: [{destination: {host: bank.example.com}}]}]
`

// TestStreamsAreTraced follows connections to the entries that lead them.
func TestStreamsAreTraced(t *testing.T) {
	m := mesh(t, t.Context(), streams)
	var got []string
	for _, p := range m.Proxies() {
		c, err := m.Ask(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		all, err := m.Listen(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all.Streams {
			if !all.Listeners[s.Listener] {
				t.Errorf("%s is not among %v", s.Listener, all.Listeners)
			}
			line := fmt.Sprintf("%s: %s:%d %v %s", p, s.Listener, s.Port, s.Names, s.Object.ID.Name)
			for _, to := range s.Targets {
				line += fmt.Sprintf(" -> %s %s %t", to.Field, to.Cluster, to.Exists)
			}
			got = append(got, line)
		}
		if !p.Gateway && !all.Listeners["10.1.2.4_5433"] {
			t.Errorf("a listener without a stream: %v", all.Listeners)
		}
	}
	want := []string{
		"the gateway istio=ingressgateway in istio-system: 0.0.0.0_5432:5432 [] db -> spec.tcp[0].route[0].destination outbound|5432|v1|db.shop.svc.cluster.local true -> spec.tcp[0].route[1].destination outbound|5432|v2|db.shop.svc.cluster.local false",
		"the sidecars in shop: 0.0.0.0_443:443 [bank.example.com] bank -> spec.tls[0].route[0].destination outbound|443||bank.example.com true",
		"the sidecars in shop: 10.1.2.3_5432:5432 [] db -> spec.tcp[0].route[0].destination outbound|5432|v1|db.shop.svc.cluster.local true -> spec.tcp[0].route[1].destination outbound|5432|v2|db.shop.svc.cluster.local false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("streams (-want +got):\n%s", diff)
	}
	plain := mesh(t, t.Context(), shop)
	c, err := plain.Ask(t.Context(), plain.Proxies()[0])
	if err != nil {
		t.Fatal(err)
	}
	if all, err := plain.Listen(t.Context(), c); err != nil || len(all.Streams)+len(all.Listeners) > 0 {
		t.Errorf("without tcp and tls: %v, %v", all, err)
	}
}
