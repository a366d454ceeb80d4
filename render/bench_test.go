package render_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mooring-dev/mooring/render"
)

// mesh makes n VirtualServices in files of their own, with or without a kustomization.
func mesh(n int, kustomization bool) fstest.MapFS {
	repo := fstest.MapFS{}
	var list strings.Builder
	list.WriteString("namespace: mesh\nresources:\n")
	for i := range n {
		name := fmt.Sprintf("vs%05d.yaml", i)
		fmt.Fprintf(&list, "- %s\n", name)
		repo[name] = &fstest.MapFile{Data: fmt.Appendf(nil, `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: service-%d
spec:
  hosts: [service-%d]
  http:
  - match:
    - headers: {canary: {exact: "true"}}
    route:
    - destination: {host: service-%d, subset: v2}
  - route:
    - destination: {host: service-%d, subset: v1}
      weight: 90
    - destination: {host: service-%d, subset: v2}
      weight: 10
`, i, i, i, i, i)}
	}
	if kustomization {
		repo["kustomization.yaml"] = &fstest.MapFile{Data: []byte(list.String())}
	}
	return repo
}

func BenchmarkRender(b *testing.B) {
	for _, kustomization := range []bool{false, true} {
		for _, n := range []int{100, 1000} {
			repo := mesh(n, kustomization)
			b.Run(fmt.Sprintf("kustomization=%t/objects=%d", kustomization, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					set, err := new(render.Renderer).Render(b.Context(), repo, ".")
					if err != nil || len(set.Objects) != n {
						b.Fatalf("%v", err)
					}
				}
			})
		}
	}
}

// BenchmarkCommit renders commit after commit with one cache: each changes one file of 1,000, or none.
func BenchmarkCommit(b *testing.B) {
	repo := mesh(1000, true)
	for _, changed := range []int{0, 1} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			r := &render.Renderer{Cache: render.NewCache(1 << 30)}
			if _, err := r.Render(b.Context(), commit(repo), "."); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				next := repo
				if changed > 0 {
					text := strings.Replace(string(repo["vs00500.yaml"].Data), "weight: 90", fmt.Sprintf("weight: %d", i), 1)
					next = with(repo, "vs00500.yaml", text)
				}
				if _, err := r.Render(b.Context(), commit(next), "."); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
