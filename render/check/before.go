package check

import (
	"context"
	"sync"
	"unsafe"
	"weak"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// before is the mesh as it lives. It is made once of a reading of the cluster, for all checks beside that reading: of a large mesh it is half of their
// work, and most of their memory. The token of the library guards it.
type before struct {
	cluster *world.Cluster
	world   *world.World
	// found is what Istio's analyzers say of it, once they were asked.
	found    []Finding
	analyzed bool
}

// befores remembers the last reading as long as somebody checks beside it.
type befores struct {
	mu   sync.Mutex
	last weak.Pointer[before] // guarded by mu
}

// of gives the mesh of a reading; nil without one.
func (bs *befores) of(c *world.Cluster) *before {
	if c == nil {
		return nil
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if b := bs.last.Value(); b != nil && same(b.cluster.Objects, c.Objects) {
		return b
	}
	b := &before{cluster: c}
	bs.last = weak.Make(b)
	return b
}

// same says whether two lists are one.
func same(x, y []*unstructured.Unstructured) bool {
	return len(x) > 0 && len(x) == len(y) && unsafe.SliceData(x) == unsafe.SliceData(y)
}

// in is the mesh as a world; nil without one.
func (b *before) in(c *world.Converter) *world.World {
	if b == nil {
		return nil
	}
	if b.world == nil {
		b.world = c.Before(b.cluster)
	}
	return b.world
}

// faults of the mesh as it lives, as far as they may be those of a set.
func (b *before) faults(ctx context.Context, set *render.Set) ([]Finding, error) {
	if !b.analyzed {
		found, _, err := analyze(ctx, b.world)
		if err != nil {
			return nil, err
		}
		b.found, b.analyzed = found, true
	}
	ruled, _ := runMeshRules(ctx, b.world, nil, set) // nil: nothing is new in it
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return append(b.found[:len(b.found):len(b.found)], ruled...), nil
}
