package apply

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Result is what a Run really did, object by object; it is complete also when the run failed half-way.
type Result struct {
	// Steps in the order of the plan.
	Steps []StepResult
	// Objects that the unit has now.
	Objects int
	// Kinds that the unit has objects of now: what the parent was told.
	Kinds []schema.GroupKind
	// Health of what was applied or found, sorted by ID.
	Health []Health
}

// State is how far a step came.
type State string

// The states of a step.
const (
	Done       State = "done"
	Failed     State = "failed"
	NotReached State = "not reached"
)

// StepResult is how one step ended.
type StepResult struct {
	Step
	State State
	// Err of a failed step, or why a step was not reached.
	Err error
}

// Counts the steps that were done, by action.
func (r *Result) Counts() Counts {
	var c Counts
	for _, s := range r.Steps {
		if s.State == Done && !s.again {
			c.add(s.Action)
		}
	}
	return c
}

// Failed steps.
func (r *Result) Failed() []StepResult {
	return r.in(Failed)
}

// NotReached steps.
func (r *Result) NotReached() []StepResult {
	return r.in(NotReached)
}

// Unhealthy objects: all that are not Current.
func (r *Result) Unhealthy() []Health {
	return unhealthy(r.Health)
}

func (r *Result) in(state State) []StepResult {
	var found []StepResult
	for _, s := range r.Steps {
		if s.State == state {
			found = append(found, s)
		}
	}
	return found
}

// added is by how much a step changed the number of the unit's objects.
func (s StepResult) added() int {
	if s.State != Done {
		return 0
	}
	switch {
	case s.again:
		return 0
	case s.Action == Delete, s.release && s.counted:
		return -1
	case !s.counted && !s.release && (s.Action == Create || s.Action == Update):
		return 1
	default:
		return 0
	}
}
