package apply

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/ssa"

	"github.com/mooring-dev/mooring/render"
)

// stage is where a step has its place, before the references between the objects say more.
type stage int

const (
	stageDefinitions stage = iota
	stageConfiguration
	stageControlPlane
	stageWorkloads
	stageLoosened
	stageDestinations
	stageRoutes
	stagePolicies
	stageWebhooks
	stageRetired
	stageFinal
	stagePrune
)

// levelDefinitions is the level of the deletes of CRDs and namespaces: they take all with them that is still in them, in no order.
const levelDefinitions = 2

func (s stage) wave() string {
	return [...]string{
		WaveDefinitions, WaveConfiguration, WaveControlPlane, WaveWorkloads, WaveLoosened, WaveDestinations, WaveRoutes, WavePolicies, WaveWebhooks,
		WaveRetired, WaveFinal, WavePrune,
	}[s]
}

// stageOf a step, from its kind alone.
func stageOf(s Step) stage {
	gk := s.ID.GroupKind()
	switch {
	case s.unwanted && s.Action == Delete && isRoute(gk):
		return stageRetired
	case s.unwanted:
		return stagePrune
	case isDefinition(s.ID):
		return stageDefinitions
	case isControlPlane(s.ID, s.want):
		return stageControlPlane
	case isWebhook(s.ID):
		return stageWebhooks
	case isRoute(gk):
		return stageRoutes
	case isPolicy(gk):
		return stagePolicies
	case gk == kindSidecar:
		// A sidecar knows what the routes lead to that its Sidecar lets in, whether that names it or not. So a host that it no longer names
		// stays with the proxy as long as such a route does, and would go together with it. What it names anew has a step of its own (widen).
		return stageFinal
	case isMesh(gk):
		return stageDestinations
	case rank(gk.Kind) < rank(kindService.Kind):
		return stageConfiguration
	default:
		return stageWorkloads
	}
}

// writes is true for a step that changes the cluster.
func (s Step) writes() bool {
	return s.Action != Unchanged && s.Action != Skip
}

// rank of a kind inside a wave: what others refer to comes first. The order is fluxcd/pkg/ssa's, which is that of kubectl and Helm; kinds
// that it does not name, custom resources among them, come after those it names first.
func rank(kind string) int {
	if i := slices.Index(ssa.ReconcileOrder.First, kind); i >= 0 {
		return i - len(ssa.ReconcileOrder.First)
	}
	return slices.Index(ssa.ReconcileOrder.Last, kind) + 1
}

// groups cuts a wave's steps, which are sorted, into runs of one rank. Each run is done before the next begins.
func groups(steps []Step) [][2]int {
	var cuts [][2]int
	for i := 0; i < len(steps); {
		j := i + 1
		for j < len(steps) && rank(steps[j].ID.Kind) == rank(steps[i].ID.Kind) {
			j++
		}
		cuts = append(cuts, [2]int{i, j})
		i = j
	}
	return cuts
}

// wavesOf steps, each of which has its stage and level. They are sorted where they are.
func wavesOf(steps []Step) []Wave {
	slices.SortStableFunc(steps, func(x, y Step) int {
		inside := compareSteps(x, y)
		if x.unwanted && y.unwanted {
			inside = -inside
		}
		return cmp.Or(cmp.Compare(x.stage, y.stage), cmp.Compare(x.level, y.level), inside)
	})
	var waves []Wave
	for begin, i := 0, 1; begin < len(steps); i++ {
		if first := &steps[begin]; i == len(steps) || steps[i].stage != first.stage || steps[i].level != first.level {
			waves = append(waves, Wave{Name: first.stage.wave(), Steps: steps[begin:i:i]})
			begin = i
		}
	}
	return gated(waves)
}

// gated puts a gate before every wave that must not begin before something has come to pass.
func gated(waves []Wave) []Wave {
	var all []Wave
	for _, w := range waves {
		if slices.ContainsFunc(w.Steps, func(s Step) bool { return s.settle && s.writes() }) {
			if len(all) == 0 || all[len(all)-1].Gate != "" {
				all = append(all, Wave{Name: WaveDestinations})
			}
			all[len(all)-1].Gate = GatePropagated
		}
		switch {
		case w.Name == WaveDefinitions:
			w.Gate = GateEstablished
		case w.Name == WaveControlPlane:
			w.Gate = GateReady
		}
		all = append(all, w)
	}
	return all
}

func compareSteps(x, y Step) int {
	return cmp.Or(
		cmp.Compare(rank(x.ID.Kind), rank(y.ID.Kind)),
		compareIDs(x.ID, y.ID),
	)
}

func compareIDs(x, y render.ID) int {
	return cmp.Or(
		cmp.Compare(x.Group, y.Group), cmp.Compare(x.Kind, y.Kind),
		cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name),
	)
}

// edge says that one step comes before another of the same stage.
type edge struct{ before, after render.ID }

// levels of the steps of one stage: the longest way to each along the edges. An edge that would close a circle is left out, and returned.
func levels(edges []edge) (map[render.ID]int, []edge) {
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(compareIDs(x.after, y.after), compareIDs(x.before, y.before)) })
	before := make(map[render.ID][]render.ID)
	var broken []edge
	for _, e := range slices.Compact(edges) {
		if e.before == e.after || reaches(before, e.before, e.after) {
			broken = append(broken, e)
			continue
		}
		before[e.after] = append(before[e.after], e.before)
	}
	level := make(map[render.ID]int)
	var find func(id render.ID) int
	find = func(id render.ID) int {
		if known, ok := level[id]; ok {
			return known
		}
		found := 0
		for _, earlier := range before[id] {
			found = max(found, find(earlier)+1)
		}
		level[id] = found
		return found
	}
	for id := range before {
		find(id)
	}
	return level, broken
}

// reaches says whether the way back from one step meets another.
func reaches(before map[render.ID][]render.ID, from, to render.ID) bool {
	seen := make(map[render.ID]bool)
	var walk func(id render.ID) bool
	walk = func(id render.ID) bool {
		if id == to {
			return true
		}
		if seen[id] {
			return false
		}
		seen[id] = true
		return slices.ContainsFunc(before[id], walk)
	}
	return walk(from)
}

func brokenNote(e edge) string {
	return fmt.Sprintf("%s and %s wait for each other: %s goes first, and for a moment some requests may find no route; to avoid that, change one of them in a commit of its own",
		e.before, e.after, e.after)
}
