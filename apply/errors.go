package apply

import (
	"errors"
	"fmt"

	"github.com/mooring-dev/mooring/render"
)

// ErrGuarded is what Run answers for a plan that its guard refuses.
var ErrGuarded = errors.New("plan is guarded")

// ObjectError is a fault of one object. Plan and Run join them, each object its own.
type ObjectError struct {
	// Op is the verb: plan, apply, delete.
	Op string
	ID render.ID
	// Origin in Git; the zero Origin for an object that is only in the cluster.
	Origin render.Origin
	Err    error
}

// Error reads "apply VirtualService/apps/reviews (apps/reviews.yaml:3): cause".
func (e *ObjectError) Error() string {
	if e.Origin.File == "" {
		return fmt.Sprintf("%s %s: %v", e.Op, e.ID, e.Err)
	}
	return fmt.Sprintf("%s %s (%s): %v", e.Op, e.ID, e.Origin, e.Err)
}

// Unwrap gives the cause.
func (e *ObjectError) Unwrap() error {
	return e.Err
}

// ObjectErrors finds every fault of an object in an error that Plan or Run returned.
func ObjectErrors(err error) []*ObjectError {
	if err == nil {
		return nil
	}
	if e, ok := err.(*ObjectError); ok {
		return []*ObjectError{e}
	}
	var all []*ObjectError
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, ObjectErrors(inner)...)
		}
	case interface{ Unwrap() error }:
		all = ObjectErrors(e.Unwrap())
	}
	return all
}
