package world_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
	"github.com/mooring-dev/mooring/test/poll"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	js, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(js); err != nil {
		t.Fatal(err)
	}
	return u
}

func set(objects ...*unstructured.Unstructured) *render.Set {
	s := &render.Set{}
	for _, u := range objects {
		s.Objects = append(s.Objects, render.Object{Content: render.ContentOf(u)})
	}
	return s
}

// service in a namespace; more is YAML below metadata.
func service(t testing.TB, namespace, name, more string) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf("{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: %s%s}, spec: {ports: [{port: 80}]}}", name, namespace, more))
}

func names(objects []*world.Object) []string {
	var list []string
	for _, o := range objects {
		name := o.ID.String()
		if o.Foreign {
			name += " foreign"
		}
		list = append(list, name)
	}
	return list
}

func TestTheSetLiesOverTheCluster(t *testing.T) {
	const ours = `, labels: {applyset.kubernetes.io/part-of: unit-a}`
	const kept = `, labels: {applyset.kubernetes.io/part-of: unit-a}, annotations: {mooring.dev/prune: disabled}`
	const theirs = `, labels: {applyset.kubernetes.io/part-of: unit-b}`
	namespace := object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {applyset.kubernetes.io/part-of: unit-a}}}")
	cluster := &world.Cluster{Unit: "unit-a", Objects: []*unstructured.Unstructured{
		service(t, "shop", "web", ours), service(t, "shop", "gone", ours), service(t, "shop", "kept", kept), service(t, "bank", "pay", theirs), namespace,
	}}
	wanted := set(service(t, "shop", "web", ""), service(t, "shop", "new", ""))
	c := world.NewConverter()

	after := c.After(wanted, cluster)
	want := []string{"Service/bank/pay foreign", "Service/shop/kept foreign", "Service/shop/new", "Service/shop/web"}
	if diff := cmp.Diff(want, names(after.Of("", "Service"))); diff != "" {
		t.Errorf("after the commit (-want +got):\n%s", diff)
	}
	if got := after.Find(render.ID{Kind: "Service", Namespace: "shop", Name: "web"}); got == nil || got.Content != wanted.Objects[0].Content {
		t.Error("an object of both must be as the set has it")
	}
	if after.Find(render.IDOf(namespace)) == nil {
		t.Error("a namespace is never pruned")
	}
	want = []string{"Service/bank/pay foreign", "Service/shop/gone foreign", "Service/shop/kept foreign", "Service/shop/web foreign"}
	if diff := cmp.Diff(want, names(c.Before(cluster).Of("", "Service"))); diff != "" {
		t.Errorf("before the commit (-want +got):\n%s", diff)
	}

	cluster.Unit = "" // nothing is pruned
	if got := len(c.After(wanted, cluster).Of("", "Service")); got != 5 {
		t.Errorf("%d Services without pruning, want 5", got)
	}
	if c.Before(nil) != nil {
		t.Error("without a cluster there is no before")
	}
	if diff := cmp.Diff([]schema.GroupKind{{Kind: "Namespace"}, {Kind: "Service"}}, after.Kinds()); diff != "" {
		t.Error(diff)
	}
}

func TestKnows(t *testing.T) {
	c := world.NewConverter()
	wanted := set(service(t, "shop", "web", ""))
	alone := c.After(wanted, nil)
	if !alone.Knows("", "Service", "shop") || alone.Knows("", "Service", "bank") || alone.Knows("", "Secret", "shop") || alone.Live() {
		t.Error("without a cluster, a kind is known where the set defines it")
	}
	live := c.After(wanted, &world.Cluster{Unread: map[schema.GroupKind]string{{Kind: "Secret"}: "secrets is forbidden"}})
	if !live.Knows("", "Service", "bank") || live.Knows("", "Secret", "shop") || !live.Live() {
		t.Error("with a cluster, a kind is known unless it was not read")
	}
	if got := live.Why("", "Secret"); got != "secrets is forbidden" {
		t.Errorf("why: %q", got)
	}
	if alone.Why("", "Service") == "" {
		t.Error("there is always a reason")
	}
}

func TestConfig(t *testing.T) {
	c := world.NewConverter()
	route := object(t, `{apiVersion: networking.istio.io/v1beta1, kind: VirtualService, metadata: {name: web, namespace: shop, labels: {a: b}}, spec: {hosts: [web], http: [{timeout: 3s}]}}`)
	all := set(route,
		service(t, "shop", "web", ""),
		object(t, `{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: none, namespace: shop}}`),
		object(t, `{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: "null", namespace: shop}, spec: null}`),
		object(t, `{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: text, namespace: shop}, spec: none}`),
		object(t, `{apiVersion: v1, kind: Secret, metadata: {name: tls, namespace: shop}, type: kubernetes.io/tls, data: {tls.crt: YQ==}}`),
		object(t, `{apiVersion: networking.istio.io/v0, kind: VirtualService, metadata: {name: other, namespace: shop}}`),
		object(t, `{apiVersion: example.com/v1, kind: Other, metadata: {name: other, namespace: shop}}`))
	w := c.After(all, nil)
	find := func(group, kind, name string) *world.Object {
		t.Helper()
		o := w.Find(render.ID{Group: group, Kind: kind, Namespace: "shop", Name: name})
		if o == nil {
			t.Fatalf("%s %s is not there", kind, name)
		}
		return o
	}
	web := find("networking.istio.io", "VirtualService", "web").Config()
	spec, ok := web.Spec.(*networking.VirtualService)
	if !ok || spec.Http[0].Timeout.AsDuration() != 3*time.Second || web.Labels["a"] != "b" || web.Namespace != "shop" {
		t.Errorf("VirtualService: %+v", web)
	}
	if find("networking.istio.io", "VirtualService", "web").Config() != web || c.Converted() != 1 {
		t.Error("an object is converted once")
	}
	if got, ok := find("", "Service", "web").Config().Spec.(*corev1.ServiceSpec); !ok || got.Ports[0].Port != 80 {
		t.Errorf("Service: %+v", got)
	}
	if got, ok := find("", "Secret", "tls").Config().Spec.(*corev1.Secret); !ok || string(got.Data["tls.crt"]) != "a" {
		t.Errorf("Secret: %+v", got)
	}
	for _, name := range []string{"none", "null"} {
		if find("security.istio.io", "AuthorizationPolicy", name).Config() == nil {
			t.Errorf("an object whose spec is %s has an empty one", name)
		}
	}
	if find("security.istio.io", "AuthorizationPolicy", "text").Config() != nil {
		t.Error("a spec that is a text converts to nothing")
	}
	if find("networking.istio.io", "VirtualService", "other").Config() != nil || find("example.com", "Other", "other").Config() != nil {
		t.Error("what Istio does not know converts to nothing")
	}
}

func TestKeptLetsGo(t *testing.T) {
	var kept world.Kept[int]
	u := service(t, "shop", "web", "")
	calls := 0
	find := func() int { calls++; return 7 }
	first, second := kept.Of(u, find), kept.Of(u, find)
	if first != 7 || second != 7 || calls != 1 {
		t.Errorf("asked %d times, want once", calls)
	}
	for i := range 100 {
		kept.Of(service(t, "shop", fmt.Sprint("s", i), ""), find)
	}
	poll.Await(t, 20*time.Second, "what is known of objects that are gone goes", func() error {
		runtime.GC()
		if n := kept.Len(); n > 1 {
			return fmt.Errorf("%d values of objects that are gone are kept", n-1)
		}
		return nil
	})
	runtime.KeepAlive(u)
}
