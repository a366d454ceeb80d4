package check

import (
	"context"

	"github.com/mooring-dev/mooring/render"
)

// Singly is the part of a check that looks at each object by itself.
func (c *Checker) Singly(ctx context.Context, set *render.Set) ([]Finding, error) {
	return c.checkSingly(ctx, set)
}
