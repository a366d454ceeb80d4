package mesh_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/test/mesh"
)

func TestSmoke(t *testing.T) {
	set, err := (&render.Renderer{}).Render(t.Context(), os.DirFS("../../examples/shop"), "overlays/prod")
	if err != nil {
		t.Fatal(err)
	}
	var us []*unstructured.Unstructured
	for _, o := range set.Objects {
		us = append(us, o.Unstructured)
	}
	for range 3 {
		t0 := time.Now()
		m := mesh.Of(t, us)
		t.Log(time.Since(t0))
		for _, p := range m.Proxies() {
			c := m.Config(p)
			t.Log(time.Since(t0), p, len(c.Listeners), len(c.Routes), len(c.Clusters), len(c.Endpoints))
			b, _ := json.MarshalIndent(c, "", " ")
			os.WriteFile("/tmp/mw/"+p.String()+".json", b, 0o644)
		}
	}
}
