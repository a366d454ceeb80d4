package proof

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// choice is which states are looked at: for each stretch a list in which a state comes after all that are part of it. The one that a stretch begins with is the
// end of the one before, and in no list.
type choice struct {
	states   [][]set
	possible float64
	all      bool
}

func choose(c *course, o Options) choice {
	out := choice{states: make([][]set, len(c.stretches)), possible: 1, all: true}
	var order []int
	for i, s := range c.stretches {
		out.possible += s.possible()
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(c.stretches[a].possible(), c.stretches[b].possible()) })
	random := rand.New(rand.NewPCG(o.Seed, 0))
	left := o.Limit
	for n, i := range order { // small ones leave more for large ones
		s := c.stretches[i]
		share := max(1, left/(len(order)-n))
		states := s.everyState(share)
		if states == nil {
			states, out.all = s.someStates(share, random), false
		}
		left -= len(states)
		slices.SortStableFunc(states, func(a, b set) int { return cmp.Compare(a.count(), b.count()) })
		out.states[i] = states
	}
	return out
}

// possible states of a stretch, without the one that it begins with. Kinds are independent; in a kind, either all of a wave is done before any of the next,
// and of the writes of one object any number.
func (s stretch) possible() float64 {
	type wave struct {
		kind schema.GroupKind
		wave int
	}
	objects := map[wave]map[render.ID]int{}
	for _, w := range s.writes {
		of := wave{w.ID.GroupKind(), w.wave}
		if objects[of] == nil {
			objects[of] = map[render.ID]int{}
		}
		objects[of][w.ID]++
	}
	kinds := map[schema.GroupKind]float64{}
	for of, all := range objects {
		n := 1.0
		for _, writes := range all {
			n *= float64(writes + 1)
		}
		kinds[of.kind] += n - 1
	}
	product := 1.0
	for _, n := range kinds {
		product *= n + 1
	}
	return min(product-1, math.MaxFloat64)
}

// everyState but the one that the stretch begins with; nil where there are more than limit.
func (s stretch) everyState(limit int) []set {
	if s.possible() > float64(limit) {
		return nil
	}
	all := []set{newSet(len(s.writes))}
	for i := range s.writes {
		for _, state := range all[:len(all):len(all)] {
			if s.after[i].in(state) {
				more := slices.Clone(state)
				more.add(i)
				all = append(all, more)
			}
		}
	}
	return all[1:]
}

// someStates of many, those first that show most.
func (s stretch) someStates(limit int, random *rand.Rand) []set {
	p := picker{seen: map[string]bool{newSet(len(s.writes)).key(): true}, limit: limit}
	p.take(s.whole())
	corners, single := s.corners(limit), s.singles()
	if 1+len(corners)+len(single) > limit {
		random.Shuffle(len(single), func(a, b int) { single[a], single[b] = single[b], single[a] })
	}
	for _, state := range slices.Concat(corners, single) {
		p.take(state)
	}
	for misses := 0; !p.full() && misses < 20*limit; {
		if !p.take(s.random(random)) {
			misses++
		}
	}
	return p.states
}

// picker collects different states up to a limit.
type picker struct {
	states []set
	seen   map[string]bool
	limit  int
}

func (p *picker) full() bool { return len(p.states) >= p.limit }

func (p *picker) take(state set) bool {
	key := state.key()
	if p.full() || p.seen[key] {
		return false
	}
	p.seen[key] = true
	p.states = append(p.states, state)
	return true
}

// corners are the states in which some kinds are complete and the others have not begun.
func (s stretch) corners(limit int) []set {
	var kinds []schema.GroupKind
	byKind := map[schema.GroupKind]set{}
	for i, w := range s.writes {
		gk := w.ID.GroupKind()
		if byKind[gk] == nil {
			byKind[gk] = newSet(len(s.writes))
			kinds = append(kinds, gk)
		}
		byKind[gk].add(i)
	}
	var all []set
	for chosen := 1; chosen < 1<<len(kinds) && len(all) < limit; chosen++ {
		state := newSet(len(s.writes))
		for k, gk := range kinds {
			if chosen&(1<<k) != 0 {
				state = state.with(byKind[gk])
			}
		}
		all = append(all, state)
	}
	return all
}

// singles are the states after each write in the order of the plan, and for each write the smallest that has it and the largest that lacks it.
func (s stretch) singles() []set {
	var all []set
	order := make([]int, len(s.writes))
	for i := range s.writes {
		order[i] = i
		all = append(all, s.prefix(order, i+1))
	}
	for i := range s.writes {
		all = append(all, s.least(i), s.most(i))
	}
	return all
}

// random is a state at random: of each kind, the writes of a random order up to a random place.
func (s stretch) random(random *rand.Rand) set {
	state := newSet(len(s.writes))
	byKind := map[schema.GroupKind][]int{}
	var kinds []schema.GroupKind
	for _, i := range random.Perm(len(s.writes)) {
		gk := s.writes[i].ID.GroupKind()
		if byKind[gk] == nil {
			kinds = append(kinds, gk)
		}
		byKind[gk] = append(byKind[gk], i)
	}
	for _, gk := range kinds {
		all := byKind[gk]
		for _, i := range all[:random.IntN(len(all)+1)] {
			state = state.with(s.least(i)) // in whatever order they come, what must be before them is
		}
	}
	return state
}
