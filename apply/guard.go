package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

const waysOut = "To go on: confirm the plan, or bring the objects back in Git, or annotate the live objects that shall stay with " +
	PruneAnnotation + "=disabled."

// guard judges a plan by what it would delete. What it says is the same as long as the plan is: no times, no chance order.
func guard(p *Plan, set *render.Set, policy Policy) *Guard {
	all := p.Deletes()
	if len(all) == 0 {
		return nil
	}
	if len(set.Objects) == 0 {
		return &Guard{Reason: GuardEmpty, Message: fmt.Sprintf(
			"the path is empty in Git, and the %s would be deleted: %s. An empty path never prunes, not even when it is confirmed. "+
				"To go on: bring the objects back in Git, or delete the Mooring (deletionPolicy says what becomes of them).",
			objects(p.Live), list(all))}
	}
	var faults []string
	var reason GuardReason
	fault := func(why GuardReason, format string, args ...any) {
		if reason == "" {
			reason = why
		}
		faults = append(faults, fmt.Sprintf(format, args...))
	}
	switch {
	case policy.Confirmed && (policy.ConfirmedDeletes == 0 || len(all) <= policy.ConfirmedDeletes):
		return nil
	case policy.Confirmed:
		fault(GuardLimit, "%s would be deleted by now, and the word was for %d: %s", objects(len(all)), policy.ConfirmedDeletes, list(all))
	}
	if definitions := slices.DeleteFunc(slices.Clone(all), func(id render.ID) bool { return !isDefinition(id) }); len(definitions) > 0 {
		fault(GuardDefinition, "definitions would be deleted, and all that depends on them: %s", list(definitions))
	}
	if n := len(set.Hollow); policy.HollowFiles && n > 0 {
		fault(GuardHollow, "%s in Git without any object, as if their content was lost: %s. %s would be deleted: %s. "+
			"If the files are meant to be so, take them out of Git", files(n), strings.Join(set.Hollow[:min(n, few)], ", "), objects(len(all)), list(all))
	}
	for _, kind := range wholeKinds(p, all, policy.WholeKinds) {
		fault(GuardKind, "Git has no %s any more, and all %d of them would be deleted: %s", kind.kind, len(kind.ids), list(kind.ids))
	}
	if policy.MaxPercent > 0 && len(all)*100 > policy.MaxPercent*p.Live {
		fault(GuardLimit, "%d of %s would be deleted, which is over %d percent (spec.prune.maxPercent): %s",
			len(all), objects(p.Live), policy.MaxPercent, list(all))
	}
	if policy.MaxObjects > 0 && len(all) > policy.MaxObjects {
		fault(GuardLimit, "%s would be deleted, which is over %d (spec.prune.maxObjects): %s",
			objects(len(all)), policy.MaxObjects, list(all))
	}
	if len(faults) == 0 {
		return nil
	}
	return &Guard{Reason: reason, Message: strings.Join(faults, "; ") + ". " + waysOut}
}

// Deletes are the objects that the plan deletes, sorted.
func (p *Plan) Deletes() []render.ID {
	var all []render.ID
	for s := range p.Steps() {
		if s.Action == Delete && !s.again {
			all = append(all, s.ID)
		}
	}
	slices.SortFunc(all, compareIDs)
	return all
}

// vanished is a kind that Git has no object of any more.
type vanished struct {
	kind schema.GroupKind
	ids  []render.ID
}

// wholeKinds finds the kinds that the plan takes away as a whole, of which it deletes at least so many. The only Gateway of a mesh is retired
// like any other object; that all of several go at once is rarely what somebody meant, and often a folder that is no longer among the resources.
// Definitions have a guard of their own.
func wholeKinds(p *Plan, deleted []render.ID, atLeast int) []vanished {
	if atLeast <= 0 {
		return nil
	}
	gone := make(map[schema.GroupKind][]render.ID)
	for _, id := range deleted {
		if !isDefinition(id) {
			gone[id.GroupKind()] = append(gone[id.GroupKind()], id)
		}
	}
	for s := range p.Steps() {
		if !s.unwanted {
			delete(gone, s.ID.GroupKind())
		}
	}
	var all []vanished
	for _, kind := range slices.SortedFunc(maps.Keys(gone), func(x, y schema.GroupKind) int { return strings.Compare(x.String(), y.String()) }) {
		if len(gone[kind]) >= atLeast {
			all = append(all, vanished{kind, gone[kind]})
		}
	}
	return all
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

func files(n int) string {
	if n == 1 {
		return "1 file is"
	}
	return fmt.Sprintf("%d files are", n)
}

// few is how many of a list are named.
const few = 5

// list names the first few.
func list(ids []render.ID) string {
	var names []string
	for _, id := range ids[:min(few, len(ids))] {
		names = append(names, id.String())
	}
	if len(ids) > few {
		names = append(names, fmt.Sprintf("and %d more", len(ids)-few))
	}
	return strings.Join(names, ", ")
}
