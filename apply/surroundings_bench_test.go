package apply_test

import (
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

// BenchmarkSurroundings reads a cluster of 5,000 Services and 3,000 objects of Istio, of which none has changed since the reading before. kept-MB is
// what the Applier holds of it.
func BenchmarkSurroundings(b *testing.B) {
	cluster := kube.Start(b)
	if err := kube.InstallCRDs(b.Context(), cluster.Config()); err != nil {
		b.Fatal(err)
	}
	cfg := cluster.Config()
	cfg.QPS = -1
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		b.Fatal(err)
	}
	namespace := cluster.Namespace(b)
	var g errgroup.Group
	g.SetLimit(32)
	for kind, n := range map[string]int{"service": 5000, "rule": 1500, "route": 1500} {
		for i := range n {
			g.Go(func() error {
				r, u := neighbour(kind, i)
				_, err := objects.Resource(r).Namespace(namespace).Create(b.Context(), u, metav1.CreateOptions{})
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		b.Fatal(err)
	}
	a, err := apply.New(cluster.Config(), apply.Options{})
	if err != nil {
		b.Fatal(err)
	}
	before := heap()
	s, err := a.Surroundings(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	kept := heap() - before
	b.ReportAllocs()
	for b.Loop() {
		if s, err = a.Surroundings(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(kept/1e6, "kept-MB")
	b.ReportMetric(float64(len(s.Objects)), "objects")
	runtime.KeepAlive(a)
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// neighbour is one of many objects of a kind.
func neighbour(kind string, i int) (schema.GroupVersionResource, *unstructured.Unstructured) {
	name := fmt.Sprintf("web-%d", i)
	host := name + ".shop.svc.cluster.local"
	r := schema.GroupVersionResource{Version: "v1", Resource: "services"}
	u := map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{
		"clusterIP": "None", "selector": map[string]any{"app": name}, "ports": []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(8080)}},
	}}
	switch kind {
	case "rule":
		r = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "destinationrules"}
		u = map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "DestinationRule", "spec": map[string]any{
			"host": host, "subsets": []any{
				map[string]any{"name": "v1", "labels": map[string]any{"version": "v1"}}, map[string]any{"name": "v2", "labels": map[string]any{"version": "v2"}},
			},
		}}
	case "route":
		r = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1", Resource: "virtualservices"}
		to := func(subset string, weight int64) any {
			return map[string]any{"destination": map[string]any{"host": host, "subset": subset}, "weight": weight}
		}
		u = map[string]any{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "spec": map[string]any{
			"hosts": []any{host}, "http": []any{map[string]any{"route": []any{to("v1", 90), to("v2", 10)}}},
		}}
	}
	u["metadata"] = map[string]any{"name": name, "labels": map[string]any{"app": name, "team": "shop"}}
	return r, &unstructured.Unstructured{Object: u}
}
