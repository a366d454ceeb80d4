package analysis_test

import "testing"

const noCluster = "no cluster was asked, and the files have no such "

func TestHosts(t *testing.T) {
	const notFound = "Error IST0101 VirtualService/shop/web spec.http[0].route[0].destination.host: Referenced host not found: "
	run(t, []story{
		{"beside", files(route("shop", "web", "{host: web}"), service("shop", "web", "")), nil},
		{"misspelled", files(route("shop", "web", "{host: wbe}"), service("shop", "web", "")), []string{notFound + `"wbe"`}},
		{"nobody looked", files(route("shop", "web", "{host: web}")), []string{"unknown IST0101 host web.shop.svc.cluster.local: " + noCluster + "Service"}},
		{"in the cluster", over(route("shop", "web", "{host: web}"), service("shop", "web", "")), nil},
		{"not in the cluster", over(route("shop", "web", "{host: web}"), service("shop", "api", "")), []string{notFound + `"web"`}},
		{"in another namespace", files(route("shop", "web", "{host: pay.bank.svc.cluster.local}"), service("shop", "web", ""), service("bank", "pay", "")), nil},
		{
			"in a namespace that nobody knows", files(route("shop", "web", "{host: pay.bank.svc.cluster.local}"), service("shop", "web", "")),
			[]string{"unknown IST0101 host pay.bank.svc.cluster.local: " + noCluster + "Service"},
		},
		{"in kube-system, which the analyzers do not read", over(route("shop", "web", "{host: kube-dns.kube-system.svc.cluster.local}"), service("kube-system", "kube-dns", "")), nil},
		{"in a cluster of another domain", over(route("shop", "web", "{host: web.shop.svc.acme.internal}"), service("shop", "web", "")), nil},
		{
			"outside", files(route("shop", "web", "{host: api.example.com}"), service("shop", "web", "")),
			[]string{"unknown IST0101 host api.example.com: " + noCluster + "ServiceEntry"},
		},
		{"outside, not in the cluster", over(route("shop", "web", "{host: api.example.com}"), service("shop", "web", "")), []string{notFound}},
		{
			"outside, for this namespace alone, and a route for all",
			files("{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [web], exportTo: ['*'], http: [{route: [{destination: {host: api.example.com}}]}]}}",
				"{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: api, namespace: shop}, spec: {hosts: [api.example.com], exportTo: ['.'], resolution: DNS, ports: [{number: 443, name: tls, protocol: TLS}]}}"), nil,
		},
		{
			"of other clusters", over(route("shop", "web", "{host: web}"), "{apiVersion: v1, kind: Secret, metadata: {name: east, namespace: istio-system, labels: {istio/multiCluster: 'true'}}}"),
			[]string{"unknown IST0101 host web.shop.svc.cluster.local: "},
		},
		{
			"many that nobody looked for",
			files(route("shop", "a", "{host: a}"), route("shop", "b", "{host: b}"), route("shop", "c", "{host: c}"), route("shop", "d", "{host: d}"), route("shop", "e", "{host: e}")),
			[]string{"unknown IST0101 host a.shop.svc.cluster.local, b.shop.svc.cluster.local, c.shop.svc.cluster.local and 2 more: "},
		},
	})
}

func TestPorts(t *testing.T) {
	const two = ", {name: http-admin, port: 8080}"
	run(t, []story{
		{"there", files(route("shop", "web", "{host: web, port: {number: 8080}}"), service("shop", "web", two)), nil},
		{
			"not there", files(route("shop", "web", "{host: web, port: {number: 81}}"), service("shop", "web", "")),
			[]string{`Error IST0101 VirtualService/shop/web spec.http[0].route[0].destination.port.number: Referenced host:port not found: "web:81"`},
		},
		{
			"needed", files(route("shop", "web", "{host: web}"), service("shop", "web", two)),
			[]string{"Error IST0112 VirtualService/shop/web spec.http[0].route[0].destination.host: "},
		},
		{
			"of another entry for the host",
			files(route("shop", "web", "{host: api.example.com, port: {number: 80}}"),
				"{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: a, namespace: shop}, spec: {hosts: [api.example.com], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}}",
				"{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: b, namespace: shop}, spec: {hosts: [api.example.com], resolution: DNS, ports: [{number: 443, name: tls, protocol: TLS}]}}"), nil,
		},
	})
}

func TestSubsets(t *testing.T) {
	to := route("shop", "web", "{host: web, subset: v2}")
	rule := func(namespace, host, subset string) string {
		return "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web-" + subset + ", namespace: " + namespace + "}, spec: {host: '" + host + "', subsets: [{name: " + subset + ", labels: {version: " + subset + "}}]}}"
	}
	const notFound = `Error IST0101 VirtualService/shop/web spec.http[0].route[0].destination.subset: Referenced host+subset in destinationrule not found: "web+v2"`
	unselected := func(subset string) string {
		return "unknown IST0173 subset " + subset + " of DestinationRule/shop/web-" + subset + ": " + noCluster + "Pod"
	}
	run(t, []story{
		{"named", files(to, service("shop", "web", ""), rule("shop", "web", "v2")), []string{unselected("v2")}},
		{"not named", files(to, service("shop", "web", ""), rule("shop", "web", "v1")), []string{notFound, unselected("v1")}},
		{"nobody looked", files(to, service("shop", "web", "")), []string{"unknown IST0101 subset v2 of web.shop.svc.cluster.local: " + noCluster + "DestinationRule"}},
		{"in the cluster", over(to, service("shop", "web", ""), rule("shop", "web", "v2"), pod("shop", "web-1", "{app: web, version: v2}")), nil},
		{"not in the cluster", over(to, service("shop", "web", "")), []string{notFound}},
		{"of a rule for many hosts", over(to, service("shop", "web", ""), rule("shop", "*.shop.svc.cluster.local", "v2"), pod("shop", "web-1", "{app: web, version: v2}")), nil},
		{
			"without Pods", over(rule("shop", "web", "v2"), service("shop", "web", ""), pod("shop", "web-1", "{app: web, version: v1}")),
			[]string{"Error IST0173 DestinationRule/shop/web-v2 spec.subsets[0]: The Subset v2 "},
		},
		{"whose workload comes with the commit", over(join(rule("shop", "web", "v2"), deployment("shop", "web-v2", "{app: web, version: v2}")), service("shop", "web", ""), pod("shop", "web-1", "{app: web, version: v1}")), nil},
		{
			"of endpoints", over(join(rule("shop", "db.example.com", "v2"),
				"{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: db, namespace: shop}, spec: {hosts: [db.example.com], resolution: STATIC, ports: [{number: 443, name: tls, protocol: TLS}], endpoints: [{address: 10.0.0.1, labels: {version: v2}}]}}")), nil,
		},
		{
			"by place", over("{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web, namespace: shop}, spec: {host: web, subsets: [{name: east, labels: {topology.istio.io/cluster: east}}]}}", service("shop", "web", "")),
			[]string{"unknown IST0173 subset east of DestinationRule/shop/web: metadata of each Pod"},
		},
	})
}

func TestRulesWithoutHost(t *testing.T) {
	rule := func(host string) string {
		return "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: web, namespace: shop}, spec: {host: '" + host + "'}}"
	}
	const unknown = "Warning IST0174 DestinationRule/shop/web spec.host: The host "
	run(t, []story{
		{"there", over(rule("web"), service("shop", "web", "")), nil},
		{"not there", over(rule("wbe"), service("shop", "web", "")), []string{unknown}},
		{"all of a namespace", over(rule("*.shop.svc.cluster.local"), service("shop", "web", "")), nil},
		{"all of the mesh", files(rule("*.local"), service("shop", "web", "")), nil},
		{"all of a namespace without Services", over(rule("*.bank.svc.cluster.local"), service("shop", "web", "")), []string{unknown}},
		{"nobody looked", files(rule("*.bank.svc.cluster.local")), []string{"unknown IST0174 host *.bank.svc.cluster.local: " + noCluster + "Service"}},
	})
}

func TestGateways(t *testing.T) {
	gateway := func(namespace, host, more string) string {
		return "{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: web, namespace: " + namespace + "}, spec: {selector: {istio: ingress}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['" + host + "']" + more + "}]}}"
	}
	bound := func(gateway string) string {
		return "{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: web, namespace: shop}, spec: {hosts: [shop.example.com], gateways: ['" + gateway + "'], http: [{redirect: {uri: /}}]}}"
	}
	proxy, leads := pod("istio-ingress", "ingress-1", "{istio: ingress}"), "{apiVersion: v1, kind: Service, metadata: {name: ingress, namespace: istio-ingress}, spec: {selector: {istio: ingress}, ports: [{name: http, port: 80, protocol: TCP}]}}"
	const pods = "workloads of Gateway/shop/web: " + noCluster + "Pod"
	run(t, []story{
		{"in place", over(join(bound("web"), gateway("shop", "shop.example.com", "")), proxy, leads), nil},
		{"offline", files(bound("web"), gateway("shop", "shop.example.com", "")), []string{"unknown IST0101 " + pods, "unknown IST0162 " + pods}},
		{"missing", over(bound("web"), proxy), []string{`Error IST0101 VirtualService/shop/web spec.gateways[0]: Referenced gateway not found: "web"`}},
		{"nobody looked", files(bound("istio-ingress/web")), []string{"unknown IST0101 Gateway istio-ingress/web: "}},
		{"by its full name", over(join(bound("web.shop.svc.cluster.local"), gateway("shop", "shop.example.com", "")), proxy, leads), nil},
		{"by a dot", over(join(bound("./web"), gateway("shop", "*/shop.example.com", "")), proxy, leads), nil},
		{"other hosts", over(join(bound("web"), gateway("shop", "bank.example.com", "")), proxy, leads), []string{"Warning IST0132 VirtualService/shop/web spec.gateways[0]: "}},
		{"no Pods", over(gateway("shop", "*", "")), []string{`Error IST0101 Gateway/shop/web spec.selector.istio: Referenced selector not found: "istio=ingress"`}},
		{
			"Pods that come with the commit", over(join(gateway("shop", "*", ""), deployment("istio-ingress", "ingress", "{istio: ingress}")), leads), nil,
		},
		{
			"a Service in a file, whose protocol the API server fills in", over(join(gateway("shop", "*", ""),
				"{apiVersion: v1, kind: Service, metadata: {name: ingress, namespace: istio-ingress}, spec: {selector: {istio: ingress}, ports: [{name: http, port: 80}]}}"), proxy), nil,
		},
		{
			"no Service leads there", over(gateway("shop", "*", ""), proxy, service("istio-ingress", "ingress", "")),
			[]string{"Warning IST0162 Gateway/shop/web spec.servers[0].port.number: "},
		},
	})
}

func TestSecrets(t *testing.T) {
	const gateway = "{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: web, namespace: shop}, spec: {selector: {istio: ingress}, servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ['*'], tls: {mode: SIMPLE, credentialName: shop-tls}}]}}"
	proxy, leads := pod("istio-ingress", "ingress-1", "{istio: ingress}"), "{apiVersion: v1, kind: Service, metadata: {name: ingress, namespace: istio-ingress}, spec: {selector: {istio: ingress}, ports: [{name: https, port: 443, protocol: TCP}]}}"
	secret := func(namespace string) string {
		return "{apiVersion: v1, kind: Secret, metadata: {name: shop-tls, namespace: " + namespace + "}, type: kubernetes.io/tls, data: {tls.crt: YQ==, tls.key: YQ==}}"
	}
	const notFound = "Error IST0101 Gateway/shop/web spec.servers[0].tls.credentialName: Referenced credentialName not found: "
	run(t, []story{
		{"of which metadata alone is read", over(gateway, proxy, leads, secret("istio-ingress")), []string{"unknown IST0161 certificate in Secret istio-ingress/shop-tls: metadata of each Secret"}},
		{"in the wrong namespace", over(gateway, proxy, leads, secret("shop")), []string{notFound}},
		{"without a certificate", over(join(gateway, secret("istio-ingress")), proxy, leads), []string{"Error IST0161 Gateway/shop/web spec.servers[0].tls.credentialName: "}},
		{"that is going to be written", over(join(gateway, "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: shop, namespace: istio-ingress}, spec: {secretName: shop-tls}}"), proxy, leads), nil},
	})
}
