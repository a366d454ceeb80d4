package unmanaged_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/unmanaged"
	"github.com/mooring-dev/mooring/render/check/world"
)

// mesh is what the Mooring mesh/prod has, with "ours" as its label, and what it stands on.
const mesh = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: shop, labels: {ours: prod}}
spec: {hosts: [reviews]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: shop, labels: {ours: prod}}
spec: {host: reviews}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop, labels: {ours: prod}}
spec: {hosts: [shop.example.com], gateways: [front, infra/shared]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: shop, labels: {ours: prod}}
spec:
  selector: {istio: ingress}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["shop/*.example.com"]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: pay, namespace: shop, labels: {ours: prod}}
spec: {hosts: [pay.example.net, "*.bank.example.net"], workloadSelector: {labels: {app: pay}}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: ratings, namespace: shop, labels: {ours: prod}}
spec: {host: ratings}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: reviews, namespace: shop, labels: {ours: prod}}
spec: {selector: {matchLabels: {app: reviews}}, mtls: {mode: STRICT}}
---
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: shop}
spec: {selector: {app: reviews}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: reviews-v1, namespace: shop}
spec: {selector: {matchLabels: {app: reviews}}, template: {metadata: {labels: {app: reviews, version: v1}}}}
---
apiVersion: v1
kind: Pod
metadata: {name: reviews-v1-abc, namespace: shop, labels: {app: reviews, version: v1, pod-template-hash: abc}}
---
apiVersion: v1
kind: Pod
metadata: {name: ingress-abc, namespace: infra, labels: {istio: ingress}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other, namespace: other}
spec: {selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: other}}}}
`

const (
	reviews = "reviews.shop.svc.cluster.local"
	ratings = "ratings.shop.svc.cluster.local"
)

// Each object, and what it bears on: hosts, workloads, and why. Nothing where it bears on nothing.
func TestFind(t *testing.T) {
	tests := []struct {
		name, kind, meta, spec string
		want                   string
	}{
		{
			"a second VirtualService", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop", "hosts: [reviews]",
			reviews + " | | is a second VirtualService for the host of VirtualService/shop/reviews: sidecars take the older of the two and leave the other out",
		},
		{
			"it names the host in full, in another namespace, for clients there", "networking.istio.io/v1 VirtualService", "name: x, namespace: other",
			"hosts: [" + reviews + "], exportTo: ['.']",
			reviews + " | | is a second VirtualService for the host of VirtualService/shop/reviews: sidecars take the older of the two and leave the other out, for clients in namespace other alone",
		},
		{"the short name in another namespace is another host", "networking.istio.io/v1 VirtualService", "name: x, namespace: other", "hosts: [reviews]", ""},
		{
			"on the gateway of the Mooring's route", "networking.istio.io/v1 VirtualService", "name: x, namespace: infra", "hosts: [shop.example.com], gateways: [shared]",
			"shop.example.com | | is a second VirtualService for the host of VirtualService/shop/web on gateway infra/shared: the routes of both are joined, the older object's first",
		},
		{"the host on another gateway", "networking.istio.io/v1 VirtualService", "name: x, namespace: infra", "hosts: [shop.example.com], gateways: [third]", ""},
		{"another host under the Mooring's Gateway", "networking.istio.io/v1 VirtualService", "name: x, namespace: infra", "hosts: [blog.example.com], gateways: [shop/front]", ""},
		{
			"the host of a DestinationRule", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop", "hosts: [ratings]",
			ratings + " | | routes a host that DestinationRule/shop/ratings is for",
		},
		{
			"a star over what no other route names", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop", "hosts: ['*.shop.svc.cluster.local']",
			ratings + " | | routes *.shop.svc.cluster.local, and with it a host that DestinationRule/shop/ratings is for",
		},
		{
			"one of many of a ServiceEntry", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop", "hosts: [a.bank.example.net]",
			"a.bank.example.net | | routes a host that ServiceEntry/shop/pay is for",
		},
		{
			"a second DestinationRule", "networking.istio.io/v1 DestinationRule", "name: x, namespace: shop", "host: reviews",
			reviews + " | | is a second DestinationRule for the host of DestinationRule/shop/reviews: the subsets of both are joined, and the traffic policy is the older one's",
		},
		{
			"a DestinationRule of the clients", "networking.istio.io/v1 DestinationRule", "name: x, namespace: other", "host: " + reviews,
			reviews + " | | is a second DestinationRule for the host of DestinationRule/shop/reviews: clients in namespace other take this one",
		},
		{
			"a DestinationRule for a host without one", "networking.istio.io/v1 DestinationRule", "name: x, namespace: shop", "host: pay.example.net",
			"pay.example.net | | sets traffic policy and subsets of a host that ServiceEntry/shop/pay is for",
		},
		{
			"a DestinationRule for all in the cluster loses where there is one", "networking.istio.io/v1 DestinationRule", "name: x, namespace: istio-system", "host: '*.local'", "",
		},
		{
			"a ServiceEntry", "networking.istio.io/v1 ServiceEntry", "name: x, namespace: other", "hosts: [" + reviews + "]",
			reviews + " | | gives a host that VirtualService/shop/reviews is for endpoints and ports of its own",
		},
		{
			"a Gateway that a route is bound to", "networking.istio.io/v1 Gateway", "name: shared, namespace: infra", "selector: {istio: edge}, servers: [{hosts: ['*']}]",
			"shop.example.com | | is the Gateway that VirtualService/shop/web is bound to: it says on which ports, and with which certificates, the host is served",
		},
		{
			"a Gateway on the same pods", "networking.istio.io/v1 Gateway", "name: x, namespace: infra", "selector: {istio: ingress}, servers: [{hosts: [shop.example.com]}]",
			"shop.example.com | | serves a host of Gateway/shop/front on the same pods: where ports collide, one of the two is left out",
		},
		{"a Gateway on other pods", "networking.istio.io/v1 Gateway", "name: x, namespace: infra", "selector: {istio: egress}, servers: [{hosts: [shop.example.com]}]", ""},
		{
			"a WorkloadEntry", "networking.istio.io/v1 WorkloadEntry", "name: x, namespace: shop", "address: 10.0.0.1, labels: {app: pay}",
			"pay.example.net | | adds the endpoint 10.0.0.1 to a host that ServiceEntry/shop/pay is for",
		},
		{
			"a forgotten EnvoyFilter", "networking.istio.io/v1alpha3 EnvoyFilter", "name: x, namespace: shop", "workloadSelector: {labels: {app: reviews}}",
			reviews + " | Deployment/shop/reviews-v1 | patches the Envoy configuration of workloads that its selector picks",
		},
		{
			"an EnvoyFilter for a namespace", "networking.istio.io/v1alpha3 EnvoyFilter", "name: x, namespace: shop", "",
			reviews + " | Deployment/shop/reviews-v1 | patches the Envoy configuration of all workloads of namespace shop",
		},
		{
			"an EnvoyFilter for the gateway's pods", "networking.istio.io/v1alpha3 EnvoyFilter", "name: x, namespace: infra", "workloadSelector: {labels: {istio: ingress}}",
			"*.example.com | Pod/infra/ingress-abc | patches the Envoy configuration of workloads that its selector picks",
		},
		{"an EnvoyFilter for others", "networking.istio.io/v1alpha3 EnvoyFilter", "name: x, namespace: other", "", ""},
		{
			"an AuthorizationPolicy of the mesh", "security.istio.io/v1 AuthorizationPolicy", "name: x, namespace: istio-system", "action: DENY",
			"*.example.com " + reviews + " | Deployment/shop/reviews-v1 Pod/infra/ingress-abc | decides (DENY) who may call all workloads of the mesh, because it lies in the root namespace istio-system",
		},
		{
			"an AuthorizationPolicy for a waypoint", "security.istio.io/v1 AuthorizationPolicy", "name: x, namespace: shop", "targetRefs: [{kind: Service, group: '', name: reviews}]",
			reviews + " | | decides (ALLOW) who may call the waypoint of Service reviews, which it names and whose host VirtualService/shop/reviews is for",
		},
		{"a PeerAuthentication that the Mooring's outranks", "security.istio.io/v1 PeerAuthentication", "name: x, namespace: shop", "mtls: {mode: DISABLE}", ""},
		{
			"a PeerAuthentication beside the Mooring's", "security.istio.io/v1 PeerAuthentication", "name: x, namespace: shop", "selector: {matchLabels: {version: v1}}, mtls: {mode: DISABLE}",
			reviews + " | Deployment/shop/reviews-v1 | sets mutual TLS (DISABLE) for workloads that its selector picks",
		},
		{
			"a RequestAuthentication", "security.istio.io/v1 RequestAuthentication", "name: x, namespace: shop", "selector: {matchLabels: {app: reviews}}",
			reviews + " | Deployment/shop/reviews-v1 | judges the tokens of requests to workloads that its selector picks",
		},
		{
			"a Telemetry", "telemetry.istio.io/v1 Telemetry", "name: x, namespace: shop", "accessLogging: [{disabled: true}]",
			reviews + " | Deployment/shop/reviews-v1 | sets metrics, traces or access logs of all workloads of namespace shop",
		},
		{
			"a WasmPlugin", "extensions.istio.io/v1alpha1 WasmPlugin", "name: x, namespace: shop", "selector: {matchLabels: {app: reviews}}",
			reviews + " | Deployment/shop/reviews-v1 | loads a WebAssembly filter into workloads that its selector picks",
		},
		{
			"a Sidecar", "networking.istio.io/v1 Sidecar", "name: x, namespace: shop", "egress: [{hosts: ['./*']}]",
			reviews + " | Deployment/shop/reviews-v1 | sets which hosts are seen by all workloads of namespace shop",
		},
		{"a Sidecar of the root namespace with a selector", "networking.istio.io/v1 Sidecar", "name: x, namespace: istio-system", "workloadSelector: {labels: {app: reviews}}", ""},
		{"of another Mooring", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop, labels: {ours: dev}", "hosts: [reviews]", ""},
		{
			"a copy with our label", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop, labels: {applyset.kubernetes.io/part-of: id-prod}", "hosts: [pay.example.net]",
			"pay.example.net | | routes a host that ServiceEntry/shop/pay is for",
		},
		{
			"of a Mooring that is gone", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop, labels: {ours: gone}", "hosts: [pay.example.net]",
			"pay.example.net | | routes a host that ServiceEntry/shop/pay is for",
		},
		{"of Istio's charts", "networking.istio.io/v1alpha3 EnvoyFilter", "name: x, namespace: istio-system, labels: {app.kubernetes.io/part-of: istio}", "", ""},
		{"of istioctl", "networking.istio.io/v1alpha3 EnvoyFilter", "name: x, namespace: istio-system, labels: {operator.istio.io/component: Pilot}", "", ""},
		{"made by Flagger", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop, ownerReferences: [{apiVersion: flagger.app/v1beta1, kind: Canary, name: c, uid: u, controller: true}]", "hosts: [reviews]", ""},
		{"known to somebody", "networking.istio.io/v1 VirtualService", "name: x, namespace: shop, annotations: {mooring.dev/reconcile: disabled}", "hosts: [reviews]", ""},
		{"a kind of others", "v1 ConfigMap", "name: x, namespace: shop", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			apiVersion, kind, _ := strings.Cut(tt.kind, " ")
			object := fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {%s}\nspec: {%s}\n", apiVersion, kind, tt.meta, tt.spec)
			c := &world.Cluster{Objects: parse(t, mesh+object)}
			var got []string
			for _, f := range unmanaged.Read(c, owners(true)).Find(unmanaged.Owned(c)["id-prod"]) {
				got = append(got, strings.Join(f.Hosts, " ")+" | "+strings.Join(f.Workloads, " ")+" | "+f.Why)
			}
			want := []string{tt.want}
			if tt.want == "" {
				want = nil
			}
			for i, g := range got {
				got[i] = strings.ReplaceAll(g, "|  |", "| |")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What a Mooring wants is about to be taken over, and what may be a Mooring's that the reader may not see is left out.
func TestNotUnmanaged(t *testing.T) {
	stray := "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x, namespace: shop, labels: {ours: gone}}\nspec: {hosts: [reviews]}\n"
	objects := parse(t, mesh+stray)
	n, owned := unmanaged.Read(&world.Cluster{Objects: objects}, owners(true)), unmanaged.Owned(&world.Cluster{Objects: objects})["id-prod"]
	if found := n.Find(owned); len(found) != 1 {
		t.Fatalf("found %v, want the stray one", found)
	}
	wanted := append(slices.Clone(owned), render.ContentOf(objects[len(objects)-1]))
	if found := n.Find(wanted); len(found) != 0 {
		t.Errorf("what is wanted is found: %v", found)
	}
	n = unmanaged.Read(&world.Cluster{Objects: objects}, owners(false))
	if found := n.Find(owned); len(found) != 0 {
		t.Errorf("what may be another Mooring's is found: %v", found)
	}
	if found := n.Find(nil); len(found) != 0 {
		t.Errorf("something bears on a Mooring without objects: %v", found)
	}
}

// Between two questions what was read rests, and what is asked for then is the same. An object that has nothing to do with a Mooring is not looked at.
func TestStraysRest(t *testing.T) {
	stray := "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x, namespace: shop}\nspec: {hosts: [reviews]}\n"
	foreign := "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: y, namespace: other}\nspec: {host: nothing.of.ours}\n"
	c := &world.Cluster{Objects: parse(t, mesh+stray+foreign)}
	n, owned := unmanaged.Read(c, owners(true)), unmanaged.Owned(c)["id-prod"]
	before := n.Find(owned)
	both := n.Rest(false)
	render.Rest(owned, false)
	if diff := cmp.Diff(before, n.Find(owned)); diff != "" || len(before) != 1 {
		t.Errorf("after a rest (-before +after):\n%s", diff)
	}
	one := n.Rest(false)
	if one <= 0 || one >= both {
		t.Errorf("a question woke objects of %d bytes, of %d that all have", one, both)
	}
	n.Find(owned)
	if again := n.Rest(false); again != one || n.Rest(false) != 0 {
		t.Errorf("the same question woke objects of %d bytes and then of %d, and none of %d", one, again, n.Rest(false))
	}
	n.Find(nil)
	if n.Rest(false) != 0 {
		t.Error("a Mooring without objects wakes some")
	}
	var none *unmanaged.Neighbourhood
	if none.Rest(false) != 0 {
		t.Error("nothing has something to let go")
	}
}

// Who wrote to the object, the last one first; a status is nobody's doing.
func TestWriters(t *testing.T) {
	stray := `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: x
  namespace: shop
  creationTimestamp: "2026-01-02T03:04:05Z"
  managedFields:
  - {manager: kubectl-create, operation: Update, time: "2026-01-02T03:04:05Z"}
  - {manager: kubectl-edit, operation: Update, time: "2026-02-02T03:04:05Z"}
  - {manager: pilot-discovery, operation: Update, subresource: status, time: "2026-03-02T03:04:05Z"}
spec: {hosts: [reviews]}
`
	c := &world.Cluster{Objects: parse(t, mesh+stray)}
	found := unmanaged.Read(c, owners(true)).Find(unmanaged.Owned(c)["id-prod"])
	if len(found) != 1 {
		t.Fatalf("found %v", found)
	}
	want := []unmanaged.Writer{
		{Manager: "kubectl-edit", Operation: "Update", Time: time.Date(2026, 2, 2, 3, 4, 5, 0, time.UTC)},
		{Manager: "kubectl-create", Operation: "Update", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	if diff := cmp.Diff(want, found[0].Writers); diff != "" {
		t.Errorf("writers (-want +got):\n%s", diff)
	}
	if want[1].Time != found[0].Created.UTC() {
		t.Errorf("created %v", found[0].Created)
	}
}

func owners(all bool) unmanaged.Owners {
	return unmanaged.Owners{Names: map[string]string{"id-prod": "mesh/prod", "id-dev": "mesh/dev"}, All: all}
}

// parse reads objects. The label "ours" stands for what makes one the Mooring's.
func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, document := range strings.Split(text, "---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if ours := u.GetLabels()["ours"]; ours != "" {
			u.SetLabels(map[string]string{"applyset.kubernetes.io/part-of": "id-" + ours})
			u.Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "mooring", "operation": "Apply"}}
		}
		all = append(all, u)
	}
	return all
}
