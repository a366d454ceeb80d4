package istiod_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/apply/istiod"
	"github.com/mooring-dev/mooring/render"
	pilot "github.com/mooring-dev/mooring/test/istiod"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

// world is a namespace of a real API server in which a test writes as a run would.
type world struct {
	t         testing.TB
	cluster   *kube.Cluster
	client    dynamic.Interface
	namespace string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	cluster := kube.Start(t)
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, cluster: cluster, client: client, namespace: cluster.Namespace(t)}
}

// by asks the istiods at these addresses.
func (w *world) by(p istiod.Policy, at ...*pilot.Istiod) *istiod.Mesh {
	w.t.Helper()
	var urls []string
	for _, i := range at {
		urls = append(urls, "http://"+i.Monitoring)
	}
	c, err := istiod.New(w.cluster.Config(), istiod.Options{URLs: urls})
	if err != nil {
		w.t.Fatal(err)
	}
	p.Ask = istiod.Service
	return c.Mesh(p)
}

// write applies a manifest, in which NS is the test's namespace.
func (w *world) write(manifest string) apply.Written {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(manifest, "NS", w.namespace)), &o.Object); err != nil {
		w.t.Fatal(err)
	}
	got, err := w.resource(o.GroupVersionKind(), o.GetNamespace()).Apply(w.t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "mooring", Force: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return apply.Written{ID: idOf(got), UID: got.GetUID(), ResourceVersion: got.GetResourceVersion()}
}

func (w *world) delete(x apply.Written, version string) apply.Written {
	w.t.Helper()
	kind := schema.GroupVersionKind{Group: x.ID.Group, Version: version, Kind: x.ID.Kind}
	if err := w.resource(kind, x.ID.Namespace).Delete(w.t.Context(), x.ID.Name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return apply.Written{ID: x.ID, UID: x.UID, Deleted: true}
}

func (w *world) resource(kind schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	r := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
	if namespace == "" {
		return w.client.Resource(r)
	}
	return w.client.Resource(r).Namespace(namespace)
}

func idOf(o *unstructured.Unstructured) render.ID {
	return render.ID{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func serviceOf(name string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s, namespace: NS}
spec: {selector: {app: %s}, ports: [{name: http, port: 80}]}
`, name, name)
}

func rule(host string, subsets ...string) string {
	var list []string
	for _, s := range subsets {
		list = append(list, fmt.Sprintf("{name: %s, labels: {version: %s}}", s, s))
	}
	return fmt.Sprintf(`
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: %s, namespace: NS}
spec: {host: %s, subsets: [%s]}
`, host, host, strings.Join(list, ", "))
}

// propagated waits for the proxies, and says how long it took.
func (w *world) propagated(m *istiod.Mesh, written ...apply.Written) time.Duration {
	w.t.Helper()
	began := time.Now()
	if err := m.Propagated(w.t.Context(), written); err != nil {
		w.t.Fatal(err)
	}
	if why := m.Unasked(); why != "" {
		w.t.Fatalf("istiod was not asked: %s", why)
	}
	return time.Since(began)
}

// hasSubset is true for a proxy that has been given the cluster of a subset.
func (w *world) hasSubset(c *pilot.Client, host, subset string) bool {
	name := fmt.Sprintf("outbound|80|%s|%s.%s.svc.cluster.local", subset, host, w.namespace)
	_, has := c.Snapshot().Clusters[name]
	return has
}

// eventually polls until it is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	poll.AwaitTrue(t, 20*time.Second, what, so)
}

// connected is the number of proxies that an istiod knows.
func connected(t testing.TB, p *pilot.Istiod) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Monitoring+"/debug/syncz", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var all []struct{}
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	return len(all)
}
