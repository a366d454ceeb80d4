package check

import (
	"context"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// fault is what makes two findings the same for somebody who compares the mesh before with the mesh after: the place in the file and the index of a
// list item may have moved.
type fault struct {
	code, message string
	object        render.ID
}

func faultOf(f Finding) fault {
	return fault{code: f.Code, object: f.Object, message: f.Message}
}

// markKnown marks the findings that the living mesh has already, each as often as it has it: a second fault of the same words is a new one.
func (c *Checker) markKnown(ctx context.Context, report *Report, set *render.Set, before *world.World) error {
	have, _, err := c.checkWorld(ctx, before, nil)
	if err != nil {
		return err
	}
	for _, o := range set.Objects {
		if lives := before.Find(o.ID()); lives != nil && !lives.MetadataOnly {
			have = append(have, c.checkObject(living(lives.Unstructured))...)
		}
	}
	count := map[fault]int{}
	for _, f := range have {
		count[faultOf(f)]++
	}
	for i, f := range report.Findings {
		if k := faultOf(f); count[k] > 0 {
			count[k]--
			report.Findings[i].Known = true
		}
	}
	return nil
}
