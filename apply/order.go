package apply

import (
	"slices"

	"github.com/fluxcd/pkg/ssa"
)

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
