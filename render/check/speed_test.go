package check_test

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check"
)

// crowd is a set of n objects of the kinds that a mesh has most of, none alike.
func crowd(tb testing.TB, n int) *render.Set {
	tb.Helper()
	shapes := []struct{ apiVersion, kind, spec string }{
		{"networking.istio.io/v1", "VirtualService", `{hosts: [%s], http: [{match: [{uri: {prefix: /api}}], route: [{destination: {host: %[1]s}, weight: 90}, {destination: {host: %[1]s-next}, weight: 10}], timeout: 5s, retries: {attempts: 3, perTryTimeout: 1s, retryOn: 5xx}}, {route: [{destination: {host: %[1]s}}]}]}`},
		{"networking.istio.io/v1", "DestinationRule", `{host: %s, trafficPolicy: {connectionPool: {tcp: {maxConnections: 100, connectTimeout: 3s}}, outlierDetection: {consecutive5xxErrors: 5, interval: 10s, baseEjectionTime: 30s}}, subsets: [{name: v1, labels: {version: v1}}]}`},
		{"security.istio.io/v1", "AuthorizationPolicy", `{selector: {matchLabels: {app: %s}}, rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/web]}}], to: [{operation: {methods: [GET], paths: [/api/*]}}]}]}`},
		{"v1", "Service", `{selector: {app: %s}, ports: [{name: http, port: 80}]}`},
		{"apps/v1", "Deployment", `{selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: web, image: "shop.example.com/web:1"}]}}}`},
	}
	set := &render.Set{}
	for i := range n {
		shape, name := shapes[i%len(shapes)], fmt.Sprintf("web-%d", i/len(shapes))
		var spec any
		if err := yaml.Unmarshal(fmt.Appendf(nil, shape.spec, name), &spec); err != nil {
			tb.Fatal(err)
		}
		o := object(shape.apiVersion, shape.kind, name, spec)
		js, err := o.Unstructured().MarshalJSON()
		if err != nil {
			tb.Fatal(err)
		}
		if err := o.Unstructured().UnmarshalJSON(js); err != nil { // whole numbers as a render has them
			tb.Fatal(err)
		}
		set.Objects = append(set.Objects, o)
	}
	return set
}

// BenchmarkStructure looks at sets with the rules on single objects, with a checker that has not seen them and with one that has.
func BenchmarkStructure(b *testing.B) {
	for _, n := range []int{500, 15_000} {
		set := crowd(b, n)
		b.Run(fmt.Sprintf("%d/first", n), func(b *testing.B) {
			for b.Loop() {
				single(b, check.New(), set)
			}
		})
		b.Run(fmt.Sprintf("%d/second", n), func(b *testing.B) {
			checker := check.New()
			single(b, checker, set)
			for b.Loop() {
				single(b, checker, set)
			}
		})
	}
}

func single(b *testing.B, checker *check.Checker, set *render.Set) {
	found, err := checker.Singly(b.Context(), set)
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range found {
		if f.Level == check.Error {
			b.Fatal(f)
		}
	}
}
