package analysis_test

import (
	"strings"
	"testing"
)

const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}"

func TestPoliciesWithoutWorkloads(t *testing.T) {
	policy := func(namespace, spec string) string {
		return "{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: web, namespace: " + namespace + "}, spec: {" + spec + "}}"
	}
	const (
		selects = "selector: {matchLabels: {app: web}}"
		nothing = "Warning IST0127 AuthorizationPolicy/shop/web spec.selector: "
		root    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: 'rootNamespace: mesh-root'}}"
	)
	web := pod("shop", "web-1", "{app: web}")
	run(t, []story{
		{"with a Pod", over(policy("shop", selects), web), nil},
		{"without one", over(policy("shop", selects), pod("shop", "api-1", "{app: api}")), []string{nothing}},
		{"with a Pod that has no proxy", over(policy("shop", selects), "{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, labels: {app: web}}}"), []string{nothing}},
		{"with a Pod that comes with the commit", over(join(policy("shop", selects), deployment("shop", "web", "{app: web}"), namespace)), nil},
		{"with one by a revision", over(join(policy("shop", selects), deployment("shop", "web", "{app: web}")), "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio.io/rev: 1-31}}}"), nil},
		{
			"with one that is not to have a proxy", over(join(policy("shop", selects), deployment("shop", "web", "{app: web, sidecar.istio.io/inject: 'false'}"))),
			[]string{nothing},
		},
		{"with one in ambient mode", over(join(policy("shop", selects), deployment("shop", "web", "{app: web}")), "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio.io/dataplane-mode: ambient}}}"), nil},
		{"with a virtual machine", over(policy("shop", selects), "{apiVersion: networking.istio.io/v1, kind: WorkloadEntry, metadata: {name: vm, namespace: shop}, spec: {address: 10.0.0.1, labels: {app: web}}}"), nil},
		{"offline", files(policy("shop", "rules: [{}]")), []string{"unknown IST0127 workloads of AuthorizationPolicy/shop/web: " + noCluster + "Pod"}},
		{"with a target", over(policy("shop", "targetRefs: [{kind: Service, group: '', name: web}]")), nil},
		{"of the whole mesh", over(policy("istio-system", "rules: [{}]")), nil},
		{"of the whole mesh, elsewhere", over(join(policy("mesh-root", "rules: [{}]"), root)), nil},
		{"of the whole mesh, elsewhere, for some", over(join(policy("mesh-root", selects), root), web), nil},
		{"of the root namespace that is none", over(join(policy("istio-system", selects), root), pod("istio-system", "api", "{app: api}")), []string{"Warning IST0127 AuthorizationPolicy/istio-system/web "}},
		{"of a namespace that is not there", over(policy("shop", selects+", rules: [{from: [{source: {notNamespaces: [bnak]}}]}]"), web), []string{`Error IST0101 AuthorizationPolicy/shop/web spec.rules[0].from[0].source.notNamespaces[0]: Referenced namespace not found: "bnak"`}},
		{"of system namespaces", over(policy("shop", selects+", rules: [{from: [{source: {namespaces: [kube-system, 'istio-*']}}]}]"), web,
			"{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}", "{apiVersion: v1, kind: Namespace, metadata: {name: istio-system}}"), nil},
		{
			"of a namespace that nobody looked for", files(namespace, policy("istio-system", "rules: [{from: [{source: {namespaces: [bank]}}]}]")),
			[]string{"unknown IST0101 namespace bank: "},
		},
	})
}

func TestSharedThings(t *testing.T) {
	vs := func(namespace, name, spec string) string {
		return "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: " + name + ", namespace: " + namespace + "}, spec: {" + spec + ", http: [{redirect: {uri: /}}]}}"
	}
	gateway := func(name, hosts string) string {
		return "{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: " + name + ", namespace: shop}, spec: {selector: {istio: ingress}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [" + hosts + "]}]}}"
	}
	ingress := []string{pod("istio-ingress", "ingress-1", "{istio: ingress}"), "{apiVersion: v1, kind: Service, metadata: {name: ingress, namespace: istio-ingress}, spec: {selector: {istio: ingress}, ports: [{name: http, port: 80, protocol: TCP}]}}"}
	both := "Error IST0109 VirtualService/shop/"
	run(t, []story{
		{"one host twice", files(vs("shop", "a", "hosts: [web]"), vs("shop", "b", "hosts: [api, web.shop.svc.cluster.local]")), []string{both + "a spec.hosts[0]: ", both + "b spec.hosts[1]: "}},
		{"in two namespaces", files(vs("shop", "a", "hosts: [web]"), vs("bank", "b", "hosts: [web]")), nil},
		{"on a gateway", files(vs("shop", "a", "hosts: [web]"), vs("shop", "b", "hosts: [web], gateways: [mesh-like]"), gateway("mesh-like", "web.shop.svc.cluster.local")), []string{"unknown IST0101 workloads of", "unknown IST0162"}},
		{"exported apart", files(vs("shop", "a", "hosts: [web], exportTo: [bank]"), vs("shop", "b", "hosts: [web], exportTo: ['.']")), nil},
		{"exported to all and to one", files(vs("shop", "a", "hosts: [web]"), vs("shop", "b", "hosts: [web], exportTo: ['.']")), []string{both + "a ", both + "b "}},
		{"a longer host", files(vs("shop", "a", "hosts: [web], exportTo: ['.']"), vs("shop", "b", "hosts: ['*.shop.svc.cluster.local']")), nil},
		{"a port", over(join(gateway("a", "x.example.com"), gateway("b", "y.example.com"), gateway("c", "x.example.com")), ingress...), []string{
			"Error IST0145 Gateway/shop/a spec.servers[0].hosts: Conflict with gateways shop/c (", "Error IST0145 Gateway/shop/c spec.servers[0].hosts: Conflict with gateways shop/a (",
		}},
		{"a name of Services in two namespaces", over(join(service("shop", "web", ""), service("bank", "web", ""), gateway("a", "'*'"),
			"{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web, namespace: bank}, spec: {host: web, subsets: [{name: v1, labels: {app: web}}]}}",
			"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: bank}, spec: {hosts: [web], http: [{route: [{destination: {host: web, subset: v1}}]}]}}",
			"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [x.example.com], gateways: [a], http: [{route: [{destination: {host: web}}]}]}}"),
			append(ingress, pod("bank", "web-1", "{app: web}"))...), nil},
		{"a subset and a gateway", over(join(service("shop", "web", ""), gateway("a", "'*'"),
			"{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web, namespace: shop}, spec: {host: web, subsets: [{name: v1, labels: {app: web}}]}}",
			"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [web], http: [{route: [{destination: {host: web, subset: v1}}]}]}}",
			"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: entry, namespace: shop}, spec: {hosts: [x.example.com], gateways: [a], http: [{route: [{destination: {host: web}}]}]}}"),
			append(ingress, pod("shop", "web-1", "{app: web}"))...), []string{"Warning IST0140 VirtualService/shop/entry spec.http[0].route[0].destination.host: "}},
	})
}

func TestTheMeshItself(t *testing.T) {
	const (
		logs  = "{apiVersion: telemetry.istio.io/v1, kind: Telemetry, metadata: {name: logs, namespace: shop}, spec: {accessLogging: [{}]}}"
		plain = "{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: 'enableTracing: true'}}"
		named = "{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: 'defaultProviders: {accessLogging: [envoy]}'}}"
		nets  = "{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {meshNetworks: 'networks: {east: {endpoints: [{fromRegistry: east}], gateways: [{address: 1.1.1.1, port: 443}]}}'}}"
		entry = "{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: db, namespace: shop}, spec: {hosts: [db.example.com], resolution: DNS, ports: [{number: 3306, name: tcp, protocol: TCP}]}}"
		east  = "{apiVersion: v1, kind: Secret, metadata: {name: east, namespace: istio-system, labels: {istio/multiCluster: 'true'}}, data: {east: YQ==}}"
	)
	run(t, []story{
		{"no provider", files(logs, plain), []string{"Warning IST0157 Telemetry/shop/logs spec.accessLogging: "}},
		{"a default one", files(logs, named), nil},
		{"nobody looked", files(logs), []string{"unknown IST0157 mesh configuration for Telemetry/shop/logs: " + noCluster + "ConfigMap"}},
		{"addresses", over(entry), []string{"Warning IST0134 ServiceEntry/shop/db spec.ports[0].name: "}},
		{"addresses that istiod allocated", over(service("shop", "web", ""), strings.TrimSuffix(entry, "}")+", status: {addresses: [{value: 240.240.0.1, host: db.example.com}]}}"), nil},
		{"an unknown registry", over(nets), []string{"Error IST0126 ConfigMap/istio-system/istio data.meshNetworks: Unknown service registry east"}},
		{"a registry of a cluster", over(join(nets, east)), nil},
		{"a registry of a cluster that is read by name alone", over(nets, east), []string{"unknown IST0126 registry east: metadata of each Secret"}},
	})
}

func TestNamespaces(t *testing.T) {
	const plain = "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}"
	run(t, []story{
		{"without workloads", files(plain), nil},
		{"with workloads", files(plain, deployment("shop", "web", "{app: web}"), service("shop", "web", "")), []string{"Info IST0102 Namespace/shop : "}},
		{"enabled", files(namespace, deployment("shop", "web", "{app: web}"), service("shop", "web", "")), nil},
		{"somebody else's", over(service("bank", "pay", ""), plain, pod("shop", "web-1", "{app: web}")), []string{"Info IST0102 Namespace/shop foreign : "}},
		{"silenced", files(deployment("shop", "web", "{app: web}"), service("shop", "web", ""), "{apiVersion: v1, kind: Namespace, metadata: {name: shop, annotations: {galley.istio.io/analyze-suppress: IST0102}}}"), nil},
		{"two labels", files("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled, istio.io/rev: canary}}}"), []string{"Warning IST0123 Namespace/shop metadata.labels: "}},
	})
}

func TestAnnotations(t *testing.T) {
	run(t, []story{
		{
			"unknown", files("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, annotations: {networking.istio.io/exportsTo: '.'}}, spec: {ports: [{name: http, port: 80}]}}"),
			[]string{"Warning IST0108 Service/shop/web metadata.annotations[networking.istio.io/exportsTo]: Unknown annotation: networking.istio.io/exportsTo"},
		},
		{
			"misplaced", files("{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, annotations: {sidecar.istio.io/proxyCPU: 10m}}, spec: {ports: [{name: http, port: 80}]}}"),
			[]string{"Warning IST0107 Service/shop/web metadata.annotations[sidecar.istio.io/proxyCPU]: "},
		},
	})
}

func TestInstallation(t *testing.T) {
	webhook := "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: istio-sidecar-injector}, webhooks: [{name: rev.namespace.sidecar-injector.istio.io, clientConfig: {service: {name: istiod, namespace: istio-system}}, namespaceSelector: {matchLabels: {istio-injection: enabled}}, sideEffects: None, admissionReviewVersions: [v1]}]}"
	auto := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: ingress, namespace: shop}, spec: {template: {metadata: {labels: {app: ingress}}, spec: {containers: [{name: istio-proxy, image: auto}]}}}}"
	web := service("shop", "ingress", "")
	run(t, []story{
		{"nobody looked", files(webhook), []string{"unknown IST0139 Service istio-system/istiod: " + noCluster + "Service"}},
		{"no istiod", over(webhook), []string{"Error IST0139 MutatingWebhookConfiguration/istio-sidecar-injector : Injector refers"}},
		{"istiod", over(webhook, "{apiVersion: v1, kind: Service, metadata: {name: istiod, namespace: istio-system}, spec: {ports: [{name: https-dns, port: 15012}]}}"), nil},
		{"an image that nobody fills in", over(auto, web, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: disabled}}}"), []string{"Warning IST0146 Deployment/shop/ingress : "}},
		{"an image, offline", files(auto, web), []string{"unknown IST0146 injection of Deployment/shop/ingress: "}},
	})
}
