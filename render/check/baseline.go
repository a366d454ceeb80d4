package check

import (
	"context"
	"regexp"

	"github.com/mooring-dev/mooring/render"
)

// fault is what makes two findings the same for somebody who compares the mesh before with the mesh after. The place in the file is no part of it,
// nor are the indexes of list items, since an item may have moved.
type fault struct {
	code, field, message string
	object               render.ID
}

func faultOf(f Finding) fault {
	return fault{code: f.Code, object: f.Object, field: indexes.ReplaceAllString(f.Field, "[]"), message: f.Message}
}

var indexes = regexp.MustCompile(`\[[0-9]+\]`)

// markKnown marks the findings that the living mesh has already, each as often as it has it: a second fault of the same words is a new one.
func (c *Checker) markKnown(ctx context.Context, report *Report, q Request, before *before) error {
	have, err := before.faults(ctx, q.Set)
	if err != nil {
		return err
	}
	have = append(have, q.house().living(ctx, q.Set, before.world)...)
	for _, o := range q.Set.Objects {
		if lives := before.world.Find(o.ID()); lives != nil && !lives.MetadataOnly {
			have = append(have, c.checkObject(living(lives.Unstructured()))...)
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
