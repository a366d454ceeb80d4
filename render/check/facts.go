package check

import (
	networking "istio.io/api/networking/v1alpha3"
)

// facts are what several rules ask of one world, each found out when it is first asked. Rules run one after the other.
type facts struct {
	root      *string
	workloads *map[string][]workload
	services  *map[string][]service
	byHand    *map[string][]*networking.Sidecar
	peers     *map[string][]peer
	policies  *[]authorization
}

func (v *view) known() *facts {
	if v.facts == nil {
		v.facts = &facts{}
	}
	return v.facts
}

// once finds out a fact, or remembers it.
func once[T any](fact **T, find func() T) T {
	if *fact == nil {
		found := find()
		*fact = &found
	}
	return **fact
}
