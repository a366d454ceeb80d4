package analysis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"istio.io/istio/pkg/config"
	istio "istio.io/istio/pkg/config/analysis"
	"istio.io/istio/pkg/config/resource"
	"istio.io/istio/pkg/config/schema/gvk"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render/check/analysis"
	"github.com/mooring-dev/mooring/render/check/world"
)

// fake is an analyzer of the name of one of Istio's.
type fake struct {
	name    string
	analyze func(istio.Context)
}

func (f fake) Metadata() istio.Metadata {
	return istio.Metadata{Name: f.name, Inputs: []config.GroupVersionKind{gvk.Service}}
}

func (f fake) Analyze(c istio.Context) { f.analyze(c) }

func TestAPanicIsOfOneAnalyzerAlone(t *testing.T) {
	w := offline(t, join(route("shop", "web", "{host: wbe}"), service("shop", "web", "")))
	breaks := fake{"telemetry.ProviderAnalyzer", func(c istio.Context) {
		c.ForEach(gvk.Service, func(*resource.Instance) bool { panic("index out of range") })
	}}
	result, err := analysis.Run(t.Context(), w, analysis.Options{Analyzers: append([]istio.Analyzer{breaks}, analysis.Analyzers()...)})
	if err != nil {
		t.Fatal(err)
	}
	got := text(result)
	for _, want := range []string{
		"unknown IST0157 what Istio's analyzer telemetry.ProviderAnalyzer looks at: it panicked: index out of range",
		"Error IST0101 VirtualService/shop/web ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

func TestAnEndedContextEndsARun(t *testing.T) {
	why := errors.New("the commit is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	var docs []string
	for i := range 2000 {
		docs = append(docs, service("shop", fmt.Sprint("s", i), ""))
	}
	visits, asked := 0, false
	_, err := analysis.Run(ctx, offline(t, join(docs...)), analysis.Options{Analyzers: []istio.Analyzer{
		fake{"first", func(c istio.Context) {
			c.ForEach(gvk.Service, func(*resource.Instance) bool { visits++; cancel(why); return true })
			if !c.Canceled() {
				t.Error("an analyzer cannot see that the context ended")
			}
		}},
		fake{"second", func(istio.Context) { asked = true }},
	}})
	if !errors.Is(err, why) || visits >= 2000 || asked {
		t.Errorf("error %v after %d visits, second analyzer asked: %t", err, visits, asked)
	}
}

// busy is a world in which analyzers find much, some of it by chance.
func busy(t testing.TB) *world.World {
	t.Helper()
	docs := []string{service("shop", "web", ", {name: tcp-x, port: 81}")}
	for _, name := range []string{"a", "b", "c"} {
		docs = append(docs,
			"{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: "+name+", namespace: shop}, spec: {hosts: [web, api, x.example.com], http: [{route: [{destination: {host: web}}]}]}}",
			"{apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: {name: "+name+", namespace: shop}, spec: {hosts: [x.example.com, y.example.com], resolution: DNS, ports: [{number: 80, name: p, protocol: "+map[string]string{"a": "HTTP", "b": "TLS", "c": "TCP"}[name]+"}, {number: 90, name: q, protocol: "+map[string]string{"a": "TLS", "b": "HTTP", "c": "HTTP"}[name]+"}]}}",
			"{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: "+name+", namespace: shop}, spec: {selector: {istio: ingress}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [x.example.com, ./y.example.com]}]}}",
			"{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: "+name+", namespace: shop}, spec: {workloadSelector: {labels: {app: web}}, egress: [{hosts: ['./*']}]}}")
	}
	return live(t, join(docs...), join(pod("shop", "web-1", "{app: web}"), pod("shop", "web-2", "{app: web}"), pod("ingress", "i", "{istio: ingress}")))
}

func TestTwoRunsSayTheSame(t *testing.T) {
	w := busy(t)
	before := map[string]string{}
	for _, o := range w.Of("networking.istio.io", "Gateway") {
		before[o.ID.String()] = fmt.Sprint(o.Config().Spec)
	}
	first := say(t, w)
	if strings.Count(first, "IST0110") != 3 {
		t.Errorf("the Pods of a workload are counted one by one:\n%s", first)
	}
	for range 20 {
		if diff := cmp.Diff(first, say(t, w)); diff != "" {
			t.Fatalf("another run says (-first +another):\n%s", diff)
		}
	}
	for _, o := range w.Of("networking.istio.io", "Gateway") {
		if diff := cmp.Diff(before[o.ID.String()], fmt.Sprint(o.Config().Spec)); diff != "" {
			t.Errorf("a run changes what others share (-before +after):\n%s", diff)
		}
	}
}

func TestMemoryIsSteady(t *testing.T) {
	converter := world.NewConverter()
	cluster := &world.Cluster{Objects: objects(t, join(
		"{apiVersion: v1, kind: Secret, metadata: {name: east, namespace: istio-system, labels: {istio/multiCluster: 'true'}}, data: {east: YQ==}}",
		pod("shop", "web-1", "{app: web}")))}
	at := func() uint64 {
		var m runtime.MemStats
		for range 3 { // cleanups of what is gone run after the first
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var after50 uint64
	for i := 1; i <= 500; i++ {
		// Each run has objects of its own, as each commit may.
		w := converter.After(set(objects(t, join(route("shop", "web", "{host: wbe}"), service("shop", "web", "")))...), cluster)
		if got := say(t, w); !strings.Contains(got, "IST0101") {
			t.Fatalf("nothing is found:\n%s", got)
		}
		if i == 50 {
			after50 = at()
		}
	}
	after500 := at()
	t.Logf("%d kB after 50 runs, %d kB after 500", after50>>10, after500>>10)
	const slack = 1 << 20
	if after500 > after50+slack {
		t.Errorf("450 runs keep %d kB", (after500-after50)>>10)
	}
	runtime.KeepAlive(converter)
}

// large is a mesh of n Services with a VirtualService and a DestinationRule each.
func large(n int) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	object := func(version, kind, namespace, name string, spec map[string]any) {
		all = append(all, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec,
		}})
	}
	for i := range n {
		name, namespace := fmt.Sprint("service-", i), fmt.Sprint("team-", i%50)
		object("v1", "Service", namespace, name, map[string]any{
			"selector": map[string]any{"app": name},
			"ports":    []any{map[string]any{"name": "http", "port": int64(80), "protocol": "TCP", "targetPort": int64(8080)}},
		})
		object("networking.istio.io/v1", "VirtualService", namespace, name, map[string]any{
			"hosts": []any{name},
			"http": []any{map[string]any{"route": []any{
				map[string]any{"destination": map[string]any{"host": name, "subset": "v1"}, "weight": int64(90)},
				map[string]any{"destination": map[string]any{"host": name, "subset": "v2"}, "weight": int64(10)},
			}}},
		})
		object("networking.istio.io/v1", "DestinationRule", namespace, name, map[string]any{
			"host": name,
			"subsets": []any{
				map[string]any{"name": "v1", "labels": map[string]any{"version": "v1"}},
				map[string]any{"name": "v2", "labels": map[string]any{"version": "v2"}},
			},
		})
	}
	return all
}

// BenchmarkRun runs over 15,000 objects: all new, one new, and where no host is among the files or all rules are for their own namespace.
func BenchmarkRun(b *testing.B) {
	analyze := func(b *testing.B, w *world.World) {
		if _, err := analysis.Run(b.Context(), w, analysis.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	mesh := large(5000)
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			analyze(b, world.NewConverter().After(set(mesh...), nil))
		}
	})
	again := func(mesh []*unstructured.Unstructured) func(b *testing.B) {
		return func(b *testing.B) {
			c := world.NewConverter()
			analyze(b, c.After(set(mesh...), nil))
			for i := 0; b.Loop(); i++ {
				mesh[i%len(mesh)] = mesh[i%len(mesh)].DeepCopy()
				analyze(b, c.After(set(mesh...), nil))
			}
		}
	}
	b.Run("again", again(mesh))
	b.Run("after", func(b *testing.B) {
		c := world.NewConverter()
		for b.Loop() {
			c.After(set(mesh...), nil)
		}
	})
	var alone, own []*unstructured.Unstructured
	for _, u := range mesh {
		if u.GetKind() != "Service" {
			alone = append(alone, u)
		}
		if u.GetKind() == "VirtualService" {
			u = u.DeepCopy()
			_ = unstructured.SetNestedStringSlice(u.Object, []string{"."}, "spec", "exportTo")
		}
		own = append(own, u)
	}
	b.Run("no hosts", again(alone))
	var elsewhere []*unstructured.Unstructured
	for _, u := range mesh {
		if u.GetKind() == "VirtualService" {
			u = u.DeepCopy()
			u.SetNamespace("elsewhere-" + u.GetNamespace())
		}
		elsewhere = append(elsewhere, u)
	}
	b.Run("hosts elsewhere", again(elsewhere))
	b.Run("own namespace", again(own))
	var workloads []*unstructured.Unstructured
	for _, u := range mesh {
		if u.GetKind() == "Service" {
			app := map[string]any{"app": u.GetName()}
			workloads = append(workloads, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": u.GetName(), "namespace": u.GetNamespace()},
				"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": app}, "spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app"}}}}},
			}})
		}
	}
	b.Run("with workloads", again(append(workloads, mesh...)))
}
