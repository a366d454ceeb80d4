package sync

import (
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/app"
	"github.com/mooring-dev/mooring/render/mesh"
)

// cacheBytes is what a renderer may keep of earlier renders. It is a quarter of the memory that deploy/deployment.yaml gives the agent: what is kept
// is shared by all Moorings, and a commit then costs what it changes.
const cacheBytes = 256 << 20

// NewRenderer makes the renderer that everything renders with: the agent, its previews, and "mooring render" and "mooring check" on a work tree. A
// second way to make one would be a second opinion of what a commit means. It may be used by many goroutines.
func NewRenderer() *render.Renderer {
	return &render.Renderer{
		Expanders: []render.Expander{app.Expander{}, mesh.Expander{}},
		Cache:     render.NewCache(cacheBytes),
	}
}
