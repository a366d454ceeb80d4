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

// BenchmarkCommit renders commit after commit with one cache: each changes one of 1,000 objects, in files of their own or in one file, or none.
func BenchmarkCommit(b *testing.B) {
	many := mesh(1000, true)
	var text strings.Builder
	for i := range 1000 {
		text.WriteString("---\n" + string(many[fmt.Sprintf("vs%05d.yaml", i)].Data))
	}
	one := files("kustomization.yaml", "namespace: mesh\nresources: [vs00500.yaml]\n", "vs00500.yaml", text.String())
	for name, test := range map[string]struct {
		repo   fstest.MapFS
		change bool
	}{"nothing": {many, false}, "one of many files": {many, true}, "one large file": {one, true}} {
		b.Run(name, func(b *testing.B) {
			r := &render.Renderer{Cache: render.NewCache(1 << 30)}
			if _, err := r.Render(b.Context(), commit(test.repo), "."); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				next := test.repo
				if test.change {
					next = with(next, "vs00500.yaml", strings.Replace(string(next["vs00500.yaml"].Data), "weight: 90", fmt.Sprintf("weight: %d", i), 1))
				}
				if _, err := r.Render(b.Context(), commit(next), "."); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
