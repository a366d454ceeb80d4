package apply

import (
	"slices"

	"github.com/mooring-dev/mooring/render"
)

// WaveDifferences is the only wave of what Compare gives.
const WaveDifferences = "differences"

// Compare says what makes one set out of another, whatever lives: a Plan to be printed, not to be run. In its fields Live is the value before and Want the one after;
// values of Secrets are masked. Defaults that only an API server knows are not filled in, so what is written out in one of the sets and left out in the other is a
// difference.
func Compare(before, after *render.Set) *Plan {
	was := make(map[render.ID]render.Object, len(before.Objects))
	for _, o := range before.Objects {
		was[o.ID()] = o
	}
	wave := Wave{Name: WaveDifferences}
	for _, o := range after.Objects {
		id := o.ID()
		step := Step{Action: Create, ID: id, APIVersion: o.GetAPIVersion(), Origin: o.Origin}
		if old, ok := was[id]; ok {
			delete(was, id)
			step.Action = Unchanged
			if step.Diff = diffObjects(id, old.Unstructured(), o.Unstructured()); len(step.Diff) > 0 {
				step.Action = Update
			}
		}
		wave.Steps = append(wave.Steps, step)
	}
	for id, o := range was {
		wave.Steps = append(wave.Steps, Step{Action: Delete, ID: id, APIVersion: o.GetAPIVersion(), Origin: o.Origin})
	}
	slices.SortFunc(wave.Steps, func(x, y Step) int { return compareIDs(x.ID, y.ID) })
	plan := &Plan{}
	if len(wave.Steps) > 0 {
		plan.Waves = []Wave{wave}
	}
	return plan
}
