package mesh_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/mooring-dev/mooring/test/istiod"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/mesh"
	"github.com/mooring-dev/mooring/test/poll"
)

func TestMain(m *testing.M) { os.Exit(istiod.Run(m)) }

// TestRealIstiod applies the shop to a real API server, asks a real istiod process over the wire what it tells each proxy, and expects what is said in process.
func TestRealIstiod(t *testing.T) {
	cluster := kube.Start(t)
	list := objects(t, os.DirFS(examples), "shop/overlays/prod")
	inProcess := mesh.Of(t, list)
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range inProcess.Kubernetes() {
		create(t, client, asUnstructured(t, o))
	}
	for _, o := range list {
		if strings.HasSuffix(o.GroupVersionKind().Group, "istio.io") {
			create(t, client, o)
		}
	}
	address := istiod.Start(t, cluster, istiod.Options{}).XDS
	for _, p := range inProcess.Proxies() {
		t.Run(p.String(), func(t *testing.T) {
			told := awaitConfig(t, address, inProcess, p)
			var out strings.Builder
			compareConfigs(&out, p, inProcess.Config(p), told)
			if out.Len() > 0 {
				t.Errorf("-in process +istiod:\n%s", out.String())
			}
		})
	}
}

// awaitConfig asks until istiod has taken up all endpoints, which come to it after all else, and leaves out the API server's own Service.
func awaitConfig(t *testing.T, address string, inProcess *mesh.Mesh, p mesh.Proxy) mesh.Config {
	t.Helper()
	const apiServer = "kubernetes.default.svc.cluster.local"
	want := inProcess.Config(p)
	var told mesh.Config
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_ = poll.Until(ctx, "istiod has taken up all", func() (err error) { // the caller says what differs
		if told, err = mesh.Ask(t.Context(), address, inProcess.Node(p)); err != nil {
			t.Fatal(err)
		}
		for _, resources := range []map[string]any{told.Listeners, told.Routes, told.Clusters, told.Endpoints} {
			for name := range resources {
				if strings.Contains(name, apiServer) || name == "10.0.0.1_443" {
					delete(resources, name)
				}
			}
		}
		var out strings.Builder
		compareConfigs(&out, p, want, told)
		if out.Len() > 0 {
			return errors.New(out.String())
		}
		return nil
	})
	return told
}

func asUnstructured(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := apiutil.GVKForObject(o, scheme.Scheme)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	return u
}

// create writes an object and, as a kubelet would, the status of a pod. The namespaces die with the cluster.
func create(t *testing.T, client dynamic.Interface, o *unstructured.Unstructured) {
	t.Helper()
	kind := o.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if kind.Kind == "Gateway" { // which it guesses to be gatewaies
		resource.Resource = "gateways"
	}
	in := client.Resource(resource).Namespace(o.GetNamespace())
	made, err := in.Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create %s %s: %v", kind.Kind, o.GetName(), err)
	}
	if kind.Kind != "Pod" {
		return
	}
	made.Object["status"] = o.Object["status"]
	if _, err := in.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("write the status of pod %s: %v", o.GetName(), err)
	}
}
