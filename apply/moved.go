package apply

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// orderMoved looks after hosts that move from a ServiceEntry of one namespace to one of another, so that for a while both offer them. istiod takes for each
// proxy the one of the proxy's own namespace, or else the older, and looks for the DestinationRule beside the one that it took. So the rule
// beside the new entry must have reached the proxies before the entry is written, and the one beside the old entry goes after it.
func (a *arranger) orderMoved(steps []Step) {
	from, to := make(map[string][]render.ID), make(map[string][]render.ID)
	for _, s := range steps {
		if s.ID.GroupKind() != kindServiceEntry || !s.writes() {
			continue
		}
		if s.Action == Delete {
			note(from, offersOf(a.removed[s.ID]), s.ID)
			continue
		}
		note(to, offersOf(s.want.get()).without(offersOf(s.live)), s.ID)
		note(from, lostBy(s), s.ID)
	}
	rules := make(map[string][]render.ID) // that are written before the new entry
	for _, s := range steps {
		if s.ID.GroupKind() == kindDestinationRule && s.writes() && !s.unwanted && !s.again {
			host := hostOfRule(s.want.get())
			rules[host] = append(rules[host], s.ID)
		}
	}
	for i, s := range steps {
		for host := range to {
			if !moves(from[host], to[host]) {
				continue
			}
			switch {
			case slices.Contains(to[host], s.ID) && !s.again && len(rules[host]) > 0:
				steps[i].level, steps[i].settle = 1, a.hasRoutes
				steps[i].needs = append(steps[i].needs, rules[host]...)
			case s.Action == Delete && s.ID.GroupKind() == kindDestinationRule && hostOfRule(a.removed[s.ID]) == host:
				steps[i].level, steps[i].settle = 1, a.hasRoutes
				steps[i].needs = append(steps[i].needs, from[host]...)
			}
		}
		slices.SortFunc(steps[i].needs, compareIDs)
		steps[i].needs = slices.Compact(steps[i].needs)
	}
}

// note who offers the hosts among some things.
func note(by map[string][]render.ID, all things, id render.ID) {
	for t := range all {
		if t.what == aHost {
			by[t.of] = append(by[t.of], id)
		}
	}
}

// moves says whether a host goes from one namespace to another.
func moves(from, to []render.ID) bool {
	return slices.ContainsFunc(from, func(old render.ID) bool {
		return slices.ContainsFunc(to, func(id render.ID) bool { return id.Namespace != old.Namespace })
	})
}

func hostOfRule(u *unstructured.Unstructured) string {
	if u == nil {
		return ""
	}
	return fullName(textAt(u.Object, "spec", "host"), u.GetNamespace())
}
