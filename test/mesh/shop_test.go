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
			named(plain)
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

// named gives the service entry the name that the model makes, which a user meets in the labels of metrics. It is the one thing in which the two shops
// differ: an application's service entry is called like the application.
func named(list []*unstructured.Unstructured) {
	for i, o := range list {
		if o.GetKind() == "ServiceEntry" && o.GetName() == "fraud-check" {
			list[i] = o.DeepCopy()
			list[i].SetName("payment-fraud-check")
		}
	}
}
