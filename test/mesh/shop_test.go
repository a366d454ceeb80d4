package mesh_test

import (
	"os"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/test/mesh"
)

// TestShopAsApplications holds the shop that is written as applications against the one in Istio's own objects, in every environment.
func TestShopAsApplications(t *testing.T) {
	dir := os.DirFS(examples)
	for _, env := range []string{"dev", "staging", "prod"} {
		t.Run(env, func(t *testing.T) {
			plain := objects(t, dir, "shop/overlays/"+env)
			short := objects(t, dir, "shop-app/overlays/"+env)
			if diff := gocmp.Diff(workloads(plain), workloads(short)); diff != "" {
				t.Errorf("not the same applications (-shop +shop-app):\n%s", diff)
			}
			named(t, plain)
			want := mesh.Of(t, plain)
			if got := len(want.Proxies()); got != 8 { // five Deployments, two clients and the gateway
				t.Errorf("%d proxies are asked: %v", got, want.Proxies())
			}
			if diff := difference(want, mesh.Of(t, short)); diff != "" {
				t.Errorf("proxies are told other things (-shop +shop-app):\n%s", diff)
			}
		})
	}
}

// named gives objects the names that the model makes, where a user meets them in the names and labels of metrics. It is the one thing in which the two shops
// differ: a server of HTTPS is called like its port, and an application's service entry like the application.
func named(t *testing.T, list []*unstructured.Unstructured) {
	t.Helper()
	for i, o := range list {
		list[i] = o.DeepCopy()
		switch {
		case o.GetKind() == "Gateway":
			nameServers(t, list[i])
		case o.GetKind() == "ServiceEntry" && o.GetName() == "fraud-check":
			list[i].SetName("payment-fraud-check")
		}
	}
}

func nameServers(t *testing.T, gateway *unstructured.Unstructured) {
	t.Helper()
	servers, _, err := unstructured.NestedSlice(gateway.Object, "spec", "servers")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		fields, _ := s.(map[string]any)
		port, _ := fields["port"].(map[string]any)
		if port["protocol"] == "HTTPS" {
			fields["name"] = port["name"]
		}
	}
	if err := unstructured.SetNestedSlice(gateway.Object, servers, "spec", "servers"); err != nil {
		t.Fatal(err)
	}
}
