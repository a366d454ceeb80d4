package schema_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mooring-dev/mooring/render/check/schema"
)

// usual are objects as most are.
var usual = []struct{ kind, spec string }{
	{"VirtualService", `{hosts: [web], gateways: [mesh], http: [{match: [{uri: {prefix: /api}, headers: {x: {exact: a}}}], route: [{destination: {host: web, subset: v1, port: {number: 80}}, weight: 90}, {destination: {host: web}, weight: 10}], timeout: 5s, retries: {attempts: 3, perTryTimeout: 1s}, fault: {abort: {httpStatus: 500, percentage: {value: 0.5}}}, mirrorPercentage: {value: 10}}], tcp: [{route: [{destination: {host: web}}]}]}`},
	{"DestinationRule", `{host: web, trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: user, ttl: 0s}}}, connectionPool: {tcp: {maxConnections: 100, connectTimeout: 3s}}, outlierDetection: {consecutive5xxErrors: 5, interval: 10s}, tls: {mode: ISTIO_MUTUAL}}, subsets: [{name: v1, labels: {version: v1}}]}`},
	{"ServiceEntry", `{hosts: [pay.example.com], location: MESH_EXTERNAL, resolution: STATIC, ports: [{number: 443, name: tls, protocol: TLS}], endpoints: [{address: 10.0.0.1, ports: {tls: 8443}, weight: 1}]}`},
	{"Gateway", `{selector: {istio: ingress}, servers: [{hosts: [shop.example.com], port: {number: 443, name: https, protocol: HTTPS}, tls: {mode: SIMPLE, credentialName: shop}}]}`},
	{"AuthorizationPolicy", `{selector: {matchLabels: {app: web}}, action: ALLOW, rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/web]}}], to: [{operation: {methods: [GET]}}]}]}`},
	{"PeerAuthentication", `{selector: {matchLabels: {app: web}}, mtls: {mode: STRICT}, portLevelMtls: {"8080": {mode: DISABLE}}}`},
	{"RequestAuthentication", `{jwtRules: [{issuer: shop, jwksUri: "https://shop.example.com/keys", fromHeaders: [{name: x, prefix: "b "}]}]}`},
	{"Sidecar", `{egress: [{hosts: ["./*"]}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}`},
	{"Telemetry", `{tracing: [{randomSamplingPercentage: 1.5, providers: [{name: zipkin}]}]}`},
}

// TestUsualObjectsArePlain keeps the short way short: an object as most are must not need the library.
func TestUsualObjectsArePlain(t *testing.T) {
	l := schema.New()
	for _, tt := range usual {
		plain, found, err := l.Both(istioObject(t, tt.kind, tt.spec))
		if err != nil || !plain || len(found) > 0 {
			t.Errorf("%s %s: plain %t, the library says %v, %v", tt.kind, tt.spec, plain, found, err)
		}
	}
}

// TestPlainIsFine puts all sorts of values into all places of objects, takes each away, and expects that nothing is plain that the library finds a fault in.
func TestPlainIsFine(t *testing.T) {
	l := schema.New()
	tried, plains, faulty := 0, 0, 0
	try := func(o *unstructured.Unstructured, what string) {
		plain, found, err := l.Both(o)
		if err != nil {
			t.Fatal(err)
		}
		tried++
		if plain {
			plains++
		}
		if len(found) > 0 {
			faulty++
		}
		if plain && len(found) > 0 {
			t.Errorf("%s of %s: plain, and the library says %v", what, o.GetKind(), found)
		}
	}
	all := slices.Clone(usual)
	for _, b := range bad {
		all = append(all, struct{ kind, spec string }{b.kind, b.spec})
	}
	for _, tt := range all {
		o := istioObject(t, tt.kind, tt.spec)
		try(o, tt.spec)
		everywhere(o.Object["spec"], "spec", func(path string, set func(any), old any) {
			for _, v := range values(old) {
				set(v)
				try(o, fmt.Sprintf("%s = %v in %s", path, v, tt.spec))
			}
			set(old)
		}, func(path string) { try(o, path+" in "+tt.spec) })
	}
	if plains < tried/10 || faulty < tried/10 {
		t.Errorf("of %d objects %d are plain and %d have faults: too few to tell", tried, plains, faulty)
	}
}

// values to be put in the place of another.
func values(old any) []any {
	return []any{
		nil, "", "x", "MUTUAL", strings.Repeat("é", 300), int64(0), int64(-1), int64(70000), int64(1 << 40), 0.5, 3.0, 1e30, true,
		[]any{},
		[]any{old, old},
		[]any{nil},
		slices.Repeat([]any{"x"}, 600),
		map[string]any{},
		map[string]any{"x": old},
		map[string]any{"host": "web"},
	}
}

// everywhere goes to each place below v: each can be set, and is missing once. A key of a oneof is there beside its like once, too.
func everywhere(v any, path string, at func(path string, set func(any), old any), without func(string)) {
	switch in := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(in)) {
			old := runtime.DeepCopyJSONValue(in[k])
			at(path+"."+k, func(v any) { in[k] = v }, old)
			everywhere(in[k], path+"."+k, at, without)
			delete(in, k)
			without(path + " without " + k)
			in[k] = old
		}
		for _, k := range []string{"exact", "regex", "simple", "consistentHash", "useSourceIp", "httpHeaderName", "httpStatus", "grpcStatus", "wasm", "lua"} {
			if _, there := in[k]; !there {
				in[k] = "x"
				without(path + " with " + k)
				in[k] = map[string]any{}
				without(path + " with an object " + k)
				delete(in, k)
			}
		}
	case []any:
		for i := range in {
			at(fmt.Sprintf("%s[%d]", path, i), func(v any) { in[i] = v }, in[i])
			everywhere(in[i], fmt.Sprintf("%s[%d]", path, i), at, without)
		}
	}
}
