package proof

import (
	"cmp"
	"math/bits"
	"slices"
)

// set of the writes of a stretch, as bits.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) with(other set) set {
	out := slices.Clone(s)
	for i := range other {
		out[i] |= other[i]
	}
	return out
}

// in says that other has all of s.
func (s set) in(other set) bool {
	for i := range s {
		if s[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}

func (s set) count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

func (s set) key() string {
	b := make([]byte, 0, len(s)*8)
	for _, word := range s {
		for i := range 8 {
			b = append(b, byte(word>>(8*i)))
		}
	}
	return string(b)
}

// least is the smallest state that has the write.
func (s stretch) least(i int) set {
	out := slices.Clone(s.after[i]) // order between kinds and waves is transitive, so nothing else comes along
	out.add(i)
	return out
}

// most is the largest state that lacks the write.
func (s stretch) most(i int) set {
	out := newSet(len(s.writes))
	for k := range s.writes {
		if k != i && !s.after[k].has(i) {
			out.add(k)
		}
	}
	return out
}

// whole is the state at the end.
func (s stretch) whole() set {
	out := newSet(len(s.writes))
	for i := range s.writes {
		out.add(i)
	}
	return out
}

// prefix is the state after the first n writes of an order.
func (s stretch) prefix(order []int, n int) set {
	out := newSet(len(s.writes))
	for _, i := range order[:n] {
		out.add(i)
	}
	return out
}

// take gives the writes that are in a set, or those that are not, in the order of the plan.
func (s stretch) take(in set, want bool) []Write {
	var out []Write
	for i, w := range s.writes {
		if in.has(i) == want {
			out = append(out, w.Write)
		}
	}
	return out
}

// over lays the writes of a state over the objects that a stretch begins with.
func (s stretch) over(begin objects, state set) objects {
	out := begin.copied()
	for i, w := range s.writes {
		if state.has(i) {
			out.take(w)
		}
	}
	return out
}

// sorted by kind and name, so that a proof is the same every time.
func sorted(all []write) []write {
	slices.SortFunc(all, func(a, b write) int {
		return cmp.Or(cmp.Compare(a.ID.Group, b.ID.Group), cmp.Compare(a.ID.Kind, b.ID.Kind),
			cmp.Compare(a.ID.Namespace, b.ID.Namespace), cmp.Compare(a.ID.Name, b.ID.Name))
	})
	return all
}
