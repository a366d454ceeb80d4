package apply

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// offer arranges a step of an object that routes lead to or through: what it loses goes when no route leads there any more.
func (a *arranger) offer(s Step) []Step {
	if s.ID.GroupKind() == kindSidecar {
		return widen(s)
	}
	if !losesSomething(s) || isRoute(s.ID.GroupKind()) {
		return []Step{s}
	}
	if s.Action == Delete {
		return []Step{a.remove(s)}
	}
	lost := lostBy(s)
	maps.DeleteFunc(lost, func(t thing, _ bool) bool { return !a.concerned[t.whole()] })
	if len(lost) == 0 {
		return []Step{s}
	}
	return a.narrow(s, lost)
}

// remove arranges a delete.
func (a *arranger) remove(s Step) Step {
	lost := offersOf(a.removed[s.ID])
	if s.ID.GroupKind() == kindService {
		lost = things{thing{aHost, fullName(s.ID.Name, s.ID.Namespace), ""}: true}
	}
	if held, by := a.held(s.ID, lost); len(held) > 0 {
		return s.skip(fmt.Sprintf("Git does not have it, but %s leads to it; it is deleted once no route does", by))
	}
	s.settle = a.hasRoutes
	s.needs = a.leavers(lost)
	return s
}

// narrow makes two steps of an update: in the first one the object has what it is to have and what it had, in the second what it had is gone. Each is left
// out when it would change nothing.
func (a *arranger) narrow(s Step, lost things) []Step {
	both, ok := keeping(s.applied, s.live, lost)
	if !ok {
		return a.standIn(s, lost)
	}
	held, by := a.held(s.ID, lost)
	first, last := s, s
	kept, _ := keeping(s.want.get(), s.live, lost)
	first.want = formed(kept)
	first.applied, first.hash = both, ""
	first.Diff = append(diffObjects(s.ID, s.live, both), s.taken...)
	first.Reason = join(s.Reason, "keeps "+nameThings(lost)+" until no route leads there")

	last.stage, last.settle, last.again = stageFinal, true, true
	last.needs = append(a.leavers(lost), s.ID)
	last.take, last.precondition, last.Reason = false, "", ""
	if len(held) > 0 {
		still, _ := keeping(s.want.get(), s.live, held)
		last.want = formed(still)
		last.applied, _ = keeping(s.applied, s.live, held)
		last.hash = ""
		last.Reason = fmt.Sprintf("keeps %s, because %s leads there", nameThings(held), by)
		first.Reason = join(s.Reason, last.Reason)
	}
	last.Diff = diffObjects(s.ID, both, last.applied)
	var steps []Step
	if len(first.Diff) > 0 || s.Reason != "" {
		steps = append(steps, first)
	}
	if len(last.Diff) > 0 {
		if len(steps) == 0 {
			last.again, last.needs = false, a.leavers(lost)
		}
		return append(steps, last)
	}
	if len(steps) == 0 {
		first.Action = Unchanged
		return []Step{first}
	}
	return steps
}

// standIn keeps what an object loses in another one, where no one object can be both: a rule that from now on speaks of another host. It is made before
// and deleted like everything that Git does not have, also when this run dies before it comes so far.
func (a *arranger) standIn(s Step, lost things) []Step {
	keep := Step{
		Action: Create, APIVersion: s.APIVersion, Origin: s.Origin, resource: s.resource, stage: s.stage, again: true,
		ID:     render.ID{Group: s.ID.Group, Kind: s.ID.Kind, Namespace: s.ID.Namespace, Name: s.ID.Name + "-until-moved"},
		Reason: "keeps " + nameThings(lost) + " of " + s.ID.Name + " until no route leads there",
	}
	if _, lives := a.live.objects[keep.ID]; lives {
		return []Step{s} // the run before came so far; its delete is planned already
	}
	form := s.want.get().DeepCopy()
	form.SetName(keep.ID.Name)
	form.SetAnnotations(nil)
	form.Object["spec"] = s.live.DeepCopy().Object["spec"]
	keep.want = formed(form)
	s.needs = append(s.needs, keep.ID)
	gone := keep
	gone.Action, gone.Reason, gone.want, gone.Origin = Delete, "no route leads there any more", nil, render.Origin{}
	gone.unwanted, gone.stage, gone.settle = true, stagePrune, true
	gone.needs = a.leavers(lost)
	if held, by := a.held(s.ID, lost); len(held) > 0 {
		gone = gone.skip(fmt.Sprintf("%s leads there; it is deleted once no route does", by))
	}
	s.level++ // the stand-in first
	return []Step{keep, s, gone}
}

// held are those of the things that a route needs which this plan does not write, and the first of these routes.
func (a *arranger) held(id render.ID, lost things) (things, render.ID) {
	held := make(things)
	var by render.ID
	for t := range lost {
		if a.offeredBeside(id, t) {
			continue
		}
		for _, n := range a.staying {
			if !n.thing.metBy(t) || n.thing.part == anyPort && a.hasPort(t.of) {
				continue
			}
			held[t] = true
			if by == (render.ID{}) || compareIDs(n.by, by) < 0 {
				by = n.by
			}
		}
	}
	return held, by
}

// offeredBeside says whether another object of the set offers the thing.
func (a *arranger) offeredBeside(id render.ID, t thing) bool {
	return slices.ContainsFunc(a.wanted[t], func(other render.ID) bool { return other != id })
}

// hasPort says whether an object of the set offers some port of a host.
func (a *arranger) hasPort(host string) bool {
	for t := range a.wanted {
		if t.what == aPort && t.of == host {
			return true
		}
	}
	return false
}

// leavers are the routes that need one of the things now, and that the plan writes.
func (a *arranger) leavers(lost things) []render.ID {
	var found []render.ID
	for _, n := range a.leaving {
		for t := range lost {
			if n.thing.metBy(t) || t.what == anExport && n.thing == t.whole() {
				found = append(found, n.by)
			}
		}
	}
	slices.SortFunc(found, compareIDs)
	return slices.Compact(found)
}

// nameThings sorted, the first few.
func nameThings(all things) string {
	const few = 3
	var names, exports []string
	for t := range all {
		if t.what == anExport {
			exports = append(exports, t.String())
		} else {
			names = append(names, t.String())
		}
	}
	if len(names) == 0 {
		names = exports
	}
	slices.Sort(names)
	if len(names) > few {
		names = append(names[:few], fmt.Sprintf("%d more", len(names)-few))
	}
	return strings.Join(names, ", ")
}

func join(reasons ...string) string {
	return strings.Join(slices.DeleteFunc(reasons, func(s string) bool { return s == "" }), "; ")
}
