package istiod_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/apply/istiod"
	"github.com/mooring-dev/mooring/render"
	pilot "github.com/mooring-dev/mooring/test/istiod"
)

// set is what Git wants.
func (w *world) set(manifests ...string) *render.Set {
	w.t.Helper()
	set := &render.Set{}
	for _, m := range manifests {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(m, "NS", w.namespace)), &o.Object); err != nil {
			w.t.Fatal(err)
		}
		set.Objects = append(set.Objects, render.Object{Content: render.ContentOf(o), Origin: render.Origin{File: "git.yaml", Line: 1}})
	}
	return set
}

const route = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: NS}
spec: {hosts: [shop], http: [{route: [{destination: {host: shop, subset: new}}]}]}
`

// TestRunWaits runs whole plans against a real API server, with a real istiod and a proxy that stops answering: the route to a new subset is not
// written before the proxy has the subset. The next run goes on where the first was stopped.
func TestRunWaits(t *testing.T) {
	w := newWorld(t)
	p := pilot.Start(t, w.cluster, pilot.Options{})
	applier, err := apply.New(w.cluster.Config(), apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	unit := apply.Unit{ID: apply.ApplySetID("run", w.namespace, "Mooring", "mooring.dev"), Name: w.namespace + "/run"}
	run := func(timeout time.Duration, manifests ...string) (*apply.Result, error) {
		unit.Mesh = w.by(istiod.Policy{Timeout: timeout}, p)
		plan, err := applier.Plan(t.Context(), unit, w.set(manifests...), apply.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		return applier.Run(t.Context(), plan)
	}
	if _, err := run(patience, serviceOf("shop"), rule("shop", "old")); err != nil {
		t.Fatal(err)
	}
	var hangs atomic.Bool
	c := pilot.Connect(t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{Answer: func(pilot.Response) error {
		if hangs.Load() {
			return pilot.ErrSilent
		}
		return nil
	}})
	hangs.Store(true)
	_, err = run(2*time.Second, serviceOf("shop"), rule("shop", "old", "new"), route)
	if want := "proxy client." + w.namespace + " (sidecar) has not acknowledged CDS"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v, want %s", err, want)
	}
	routes := w.resource(schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "VirtualService"}, w.namespace)
	if _, err := routes.Get(t.Context(), "shop", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the route was written before the proxy had what it leads to: %v", err)
	}
	c.Close()
	pilot.Connect(t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
	if _, err := run(patience, serviceOf("shop"), rule("shop", "old", "new"), route); err != nil {
		t.Error(err)
	}
	if _, err := routes.Get(t.Context(), "shop", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}
