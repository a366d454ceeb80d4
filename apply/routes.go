package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// orderRoutes says what each route must wait for, and puts routes that hand on to or take over from each other in a row.
func (a *arranger) orderRoutes(steps []Step) {
	gains := gainsOf(steps)
	var edges []edge
	for i, s := range steps {
		switch {
		case !isRoute(s.ID.GroupKind()) || !s.writes():
		case s.unwanted:
			edges = append(edges, beforeDelegates(s, a.before(s))...)
		default:
			fresh := needsOf(s.want.get()).without(needsOf(a.before(s)))
			steps[i].settle = len(fresh) > 0
			needs, handing := gains.meeting(s.ID, fresh)
			steps[i].needs = needs
			edges = append(edges, handing...)
			for t := range offersOf(a.before(s)).without(offersOf(s.want.get())) {
				for _, id := range gains[t] {
					edges = append(edges, edge{id, s.ID})
				}
			}
		}
	}
	level, broken := levels(edges)
	for i, s := range steps {
		if s.stage == stageRoutes || s.stage == stageRetired {
			steps[i].level = level[s.ID]
		}
	}
	for _, e := range broken {
		a.notes = append(a.notes, brokenNote(e))
		forgo(steps, e)
	}
}

// before is a route as it lives; nil when it does not, or is not known.
func (a *arranger) before(s Step) *unstructured.Unstructured {
	if s.live != nil {
		return s.live
	}
	return a.removed[s.ID]
}

// gains are the objects of a plan that offer something that they did not offer before.
type gains map[thing][]render.ID

func gainsOf(steps []Step) gains {
	all := make(gains)
	for _, s := range steps {
		if s.writes() && !s.unwanted && !s.again {
			for t := range offersOf(s.want.get()).without(offersOf(s.live)) {
				all[t] = append(all[t], s.ID)
			}
		}
	}
	return all
}

// meeting gives the objects that newly offer what a route newly needs, sorted. Those that it hands on to are routes themselves, and come before it.
func (g gains) meeting(route render.ID, fresh things) (needs []render.ID, handing []edge) {
	for offer, by := range g {
		for t := range fresh {
			if !t.metBy(offer) {
				continue
			}
			needs = append(needs, by...)
			for _, id := range by {
				if t.what == aDelegate {
					handing = append(handing, edge{id, route})
				}
			}
		}
	}
	slices.SortFunc(needs, compareIDs)
	return slices.Compact(needs), handing
}

// beforeDelegates puts the delete of a route before those of the routes that it hands on to.
func beforeDelegates(s Step, live *unstructured.Unstructured) []edge {
	var edges []edge
	for t := range needsOf(live) {
		if t.what == aDelegate {
			namespace, name, _ := strings.Cut(t.of, "/")
			edges = append(edges, edge{s.ID, render.ID{
				Group: kindVirtualService.Group, Kind: kindVirtualService.Kind, Namespace: namespace, Name: name,
			}})
		}
	}
	return edges
}

// forgo lets what goes first where a circle is broken not wait for what comes after it.
func forgo(steps []Step, e edge) {
	for i, s := range steps {
		if s.ID == e.after {
			steps[i].needs = slices.DeleteFunc(s.needs, func(id render.ID) bool { return id == e.before })
		}
	}
}
