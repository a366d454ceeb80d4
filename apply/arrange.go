package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// arranger finds the order of a plan's steps from what its objects offer and need, as they live and as they are wanted.
type arranger struct {
	*planner
	// routes that live, whoever they belong to; nil when nothing in the plan takes anything away.
	routes map[render.ID]things
	// removed are the objects that deletes take away, as they live.
	removed map[render.ID]*unstructured.Unstructured
	// staying are the needs of live routes that the plan does not write: nothing that they need may go.
	staying []need
	// leaving are the needs of live routes that the plan writes or deletes.
	leaving []need
	// wanted are the offers of every object of the set.
	wanted map[thing][]render.ID
	// concerned are the hosts and gateways that some route, live or wanted, leads to.
	concerned things
	hasRoutes bool
	notes     []string
}

// need of one route.
type need struct {
	thing thing
	by    render.ID
}

// arrange gives each step its stage, its level and its gates; an object that must keep for a while what it loses gets two steps.
func (p *planner) arrange(ctx context.Context, steps []Step) ([]Step, []string, error) {
	for i, s := range steps {
		steps[i].stage = stageOf(s)
		steps[i].settle = s.ID.GroupKind() == kindSidecar && !s.unwanted
	}
	if !slices.ContainsFunc(steps, Step.writes) && !slices.ContainsFunc(steps, losesSomething) {
		return steps, nil, nil
	}
	a := &arranger{planner: p, removed: make(map[render.ID]*unstructured.Unstructured)}
	if err := a.look(ctx, steps); err != nil {
		return nil, nil, err
	}
	a.sumUp(steps)
	var all []Step
	for _, s := range steps {
		all = append(all, a.offer(s)...)
	}
	a.orderRoutes(all)
	all, err := a.orderPolicies(ctx, all)
	return all, a.notes, err
}

// isOffer is true for kinds that routes lead to or through.
func isOffer(gk schema.GroupKind) bool {
	switch gk {
	case kindService, kindServiceEntry, kindDestinationRule, kindGateway:
		return true
	default:
		return false
	}
}

// losesSomething is true for a step that takes away what a route could need.
func losesSomething(s Step) bool {
	gk := s.ID.GroupKind()
	switch {
	case s.Action == Delete:
		return isOffer(gk) || isRoute(gk)
	case s.Action == Update && s.live != nil && s.applied != nil:
		return isOffer(gk) && len(lostBy(s)) > 0
	default:
		return false
	}
}

func lostBy(s Step) things {
	offers := offersOf(s.applied)
	lost := offersOf(s.live).without(offers)
	for t := range lost {
		if t.what == anExport && offers[thing{anExport, t.of, everywhere}] {
			delete(lost, t)
		}
	}
	return lost
}

// look reads what the plan has not read yet: the routes that live, and what is to be deleted.
func (a *arranger) look(ctx context.Context, steps []Step) error {
	if !slices.ContainsFunc(steps, losesSomething) {
		return a.lookAt(ctx, steps)
	}
	a.routes = make(map[render.ID]things)
	for _, gk := range []schema.GroupKind{
		kindVirtualService,
		{Group: groupGatewayAPI, Kind: "GRPCRoute"},
		{Group: groupGatewayAPI, Kind: "HTTPRoute"},
		{Group: groupGatewayAPI, Kind: "TCPRoute"},
		{Group: groupGatewayAPI, Kind: "TLSRoute"},
	} {
		found, err := a.liveOf(ctx, gk)
		if err != nil {
			return fmt.Errorf("list %s: %w", gk, err)
		}
		for _, u := range found {
			id := render.ID{Group: gk.Group, Kind: gk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
			a.routes[id] = needsOf(u)
			a.removed[id] = u
		}
	}
	return a.lookAt(ctx, steps)
}

// liveOf a kind in all namespaces; only the unit's own where it may not see more.
func (a *arranger) liveOf(ctx context.Context, gk schema.GroupKind) ([]*unstructured.Unstructured, error) {
	r, served, err := a.catalog.kind(gk)
	if err != nil || !served {
		return nil, err
	}
	n := neighbour{group: gk.Group, kind: gk.Kind}
	found, err := a.listAll(ctx, r, n, nil)
	if apierrors.IsForbidden(err) {
		n.labels = PartOfLabel + "=" + a.unit.ID
		found, err = a.listAll(ctx, r, n, nil)
	}
	if isGone(err) {
		return nil, nil // its definition went a moment ago
	}
	return found, err
}

// lookAt reads the objects that are to be deleted and whose content decides about the order.
func (a *arranger) lookAt(ctx context.Context, steps []Step) error {
	var g errgroup.Group
	g.SetLimit(a.concurrency)
	found := make([]*unstructured.Unstructured, len(steps))
	for i, s := range steps {
		gk := s.ID.GroupKind()
		if s.Action != Delete || gk == kindService || !isOffer(gk) && gk != kindAuthorization {
			continue
		}
		g.Go(func() error {
			u, err := a.get(ctx, s.resource, s.ID.Namespace, s.ID.Name)
			if err != nil && !isGone(err) {
				return fmt.Errorf("get %s: %w", s.ID, err)
			}
			found[i] = u
			return nil
		})
	}
	err := g.Wait()
	for i, u := range found {
		if u != nil {
			a.removed[steps[i].ID] = u
		}
	}
	return err
}

// sumUp who needs and who offers what.
func (a *arranger) sumUp(steps []Step) {
	a.wanted, a.concerned = make(map[thing][]render.ID), make(things)
	written := make(map[render.ID]bool)
	for _, s := range steps {
		own := !s.unwanted && s.Action != Skip
		if own {
			for offer := range offersOf(s.want) {
				a.wanted[offer] = append(a.wanted[offer], s.ID)
			}
		}
		if !isRoute(s.ID.GroupKind()) {
			continue
		}
		a.hasRoutes = true
		written[s.ID] = own || s.Action == Delete
		if own {
			for t := range needsOf(s.want) {
				a.concerned[t.whole()] = true
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(a.routes), compareIDs) {
		a.hasRoutes = true
		for t := range a.routes[id] {
			a.concerned[t.whole()] = true
			if written[id] {
				a.leaving = append(a.leaving, need{t, id})
			} else {
				a.staying = append(a.staying, need{t, id})
			}
		}
	}
}

// offer arranges a step of an object that routes lead to or through: what it loses goes when no route leads there any more.
func (a *arranger) offer(s Step) []Step {
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
	first.want, _ = keeping(s.want, s.live, lost)
	first.applied, first.hash, first.approach = both, "", true
	first.Diff = append(diffObjects(s.ID, s.live, both), s.taken...)
	first.Reason = join(s.Reason, "keeps "+nameThings(lost)+" until no route leads there")

	last.stage, last.settle, last.again = stageFinal, true, true
	last.needs = append(a.leavers(lost), s.ID)
	last.take, last.precondition, last.Reason = false, "", ""
	if len(held) > 0 {
		last.want, _ = keeping(s.want, s.live, held)
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
		first.Action, first.approach = Unchanged, false
		return []Step{first}
	}
	steps[0].approach = false
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
	keep.want = s.want.DeepCopy()
	keep.want.SetName(keep.ID.Name)
	keep.want.SetAnnotations(nil)
	keep.want.Object["spec"] = s.live.DeepCopy().Object["spec"]
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

// orderRoutes says what each route must wait for, and puts routes that hand on to or take over from each other in a row.
func (a *arranger) orderRoutes(steps []Step) {
	gains := make(map[thing][]render.ID)
	for _, s := range steps {
		if s.writes() && !s.unwanted && !s.again {
			for t := range offersOf(s.want).without(offersOf(s.live)) {
				gains[t] = append(gains[t], s.ID)
			}
		}
	}
	var edges []edge
	for i, s := range steps {
		if !isRoute(s.ID.GroupKind()) || !s.writes() {
			continue
		}
		live := s.live
		if live == nil {
			live = a.removed[s.ID]
		}
		if s.unwanted {
			for t := range needsOf(live) {
				if t.what == aDelegate {
					edges = append(edges, edge{s.ID, virtualService(t.of)})
				}
			}
			continue
		}
		fresh := needsOf(s.want).without(needsOf(live))
		steps[i].settle = len(fresh) > 0
		for offer, by := range gains {
			for t := range fresh {
				if !t.metBy(offer) {
					continue
				}
				steps[i].needs = append(steps[i].needs, by...)
				if t.what == aDelegate {
					for _, id := range by {
						edges = append(edges, edge{id, s.ID})
					}
				}
			}
		}
		for t := range offersOf(live).without(offersOf(s.want)) {
			for _, id := range gains[t] {
				edges = append(edges, edge{id, s.ID})
			}
		}
		slices.SortFunc(steps[i].needs, compareIDs)
		steps[i].needs = slices.Compact(steps[i].needs)
	}
	level, broken := levels(edges)
	for i, s := range steps {
		if s.stage == stageRoutes || s.stage == stageRetired {
			steps[i].level = level[s.ID]
		}
	}
	for _, e := range broken {
		a.notes = append(a.notes, brokenNote(e))
		// What goes first must not wait for what comes after it.
		for i, s := range steps {
			if s.ID == e.after {
				steps[i].needs = slices.DeleteFunc(s.needs, func(id render.ID) bool { return id == e.before })
			}
		}
	}
}

func virtualService(name string) render.ID {
	namespace, name, _ := strings.Cut(name, "/")
	return render.ID{Group: kindVirtualService.Group, Kind: kindVirtualService.Kind, Namespace: namespace, Name: name}
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
