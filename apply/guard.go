package apply

import (
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

const waysOut = "To go on: confirm the plan, or bring the objects back in Git, or annotate the live objects that shall stay with " +
	PruneAnnotation + "=disabled."

// guard judges a plan by what it would delete. What it says is the same as long as the plan is: no times, no chance order.
func guard(p *Plan, empty bool, policy Policy) *Guard {
	var all, definitions []render.ID
	for s := range p.Steps() {
		if s.Action != Delete {
			continue
		}
		all = append(all, s.ID)
		if isDefinition(s.ID) {
			definitions = append(definitions, s.ID)
		}
	}
	if len(all) == 0 {
		return nil
	}
	if empty {
		return &Guard{Reason: GuardEmpty, Message: fmt.Sprintf(
			"the path is empty in Git, and the %s would be deleted: %s. An empty path never prunes, not even when it is confirmed. "+
				"To go on: bring the objects back in Git, or delete the Mooring (deletionPolicy says what becomes of them).",
			objects(p.Live), list(all))}
	}
	if policy.Confirmed {
		return nil
	}
	var faults []string
	reason := GuardLimit
	if len(definitions) > 0 {
		reason = GuardDefinition
		faults = append(faults, "definitions would be deleted, and all that depends on them: "+list(definitions))
	}
	if policy.MaxPercent > 0 && len(all)*100 > policy.MaxPercent*p.Live {
		faults = append(faults, fmt.Sprintf("%d of %s would be deleted, which is over %d percent (spec.prune.maxPercent): %s",
			len(all), objects(p.Live), policy.MaxPercent, list(all)))
	}
	if policy.MaxObjects > 0 && len(all) > policy.MaxObjects {
		faults = append(faults, fmt.Sprintf("%s would be deleted, which is over %d (spec.prune.maxObjects): %s",
			objects(len(all)), policy.MaxObjects, list(all)))
	}
	if len(faults) == 0 {
		return nil
	}
	return &Guard{Reason: reason, Message: strings.Join(faults, "; ") + ". " + waysOut}
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// list names the first few.
func list(ids []render.ID) string {
	const few = 5
	var names []string
	for _, id := range ids[:min(few, len(ids))] {
		names = append(names, id.String())
	}
	if len(ids) > few {
		names = append(names, fmt.Sprintf("and %d more", len(ids)-few))
	}
	return strings.Join(names, ", ")
}
