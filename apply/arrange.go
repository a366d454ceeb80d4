package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"

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
		if s.unwanted && isDefinition(s.ID) {
			steps[i].level = levelDefinitions
		}
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
	a.orderMoved(all)
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
			for offer := range offersOf(s.want.get()) {
				a.wanted[offer] = append(a.wanted[offer], s.ID)
			}
		}
		if !isRoute(s.ID.GroupKind()) {
			continue
		}
		a.hasRoutes = true
		written[s.ID] = own || s.Action == Delete
		if own {
			for t := range needsOf(s.want.get()) {
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
