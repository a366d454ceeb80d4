package check

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"istio.io/istio/pkg/log"

	"github.com/mooring-dev/mooring/render"
)

// Check looks at every object of the set and returns what is wrong, sorted by file, line and code. The error is not nil only
// when the set could not be checked; a set with faults is a success with findings.
func Check(ctx context.Context, set *render.Set) ([]Finding, error) {
	if set == nil {
		return nil, errors.New("check objects: no set given")
	}
	quietValidators()
	kinds := istioKinds()
	found := renderWarnings(set)
	for _, o := range set.Objects {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("check objects: %w", context.Cause(ctx))
		}
		for _, f := range checkObject(kinds, o) {
			f.From = o.From
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, compareFindings)
	return slices.Compact(found), nil
}

// quietValidators keeps the library from writing to standard output, where a command may be printing YAML or JSON. All
// that the scope says is in the warnings that validation returns. Setting the level is atomic.
func quietValidators() {
	if s := log.FindScope("validation"); s != nil {
		s.SetOutputLevel(log.NoneLevel)
	}
}

func checkObject(kinds kindIndex, o render.Object) (found []Finding) {
	var id render.ID
	defer func() {
		if p := recover(); p != nil {
			found = append(found, uncheckable.finding(id, o.Origin, problem{Message: fmt.Sprintf("the check panicked: %v", p)}))
		}
	}()
	id = o.ID()
	s := newSubject(kinds, o)
	for _, r := range rules() {
		found = append(found, runRule(r, s)...)
	}
	return found
}

// runRule keeps one rule's panic from hiding what the other rules found.
func runRule(r rule, s *subject) (found []Finding) {
	defer func() {
		if p := recover(); p != nil {
			found = append(found, uncheckable.finding(s.id, s.Origin, problem{
				Message: fmt.Sprintf("rule %s panicked: %v", r.Code, p),
			}))
		}
	}()
	for _, p := range r.check(s) {
		found = append(found, r.finding(s.id, s.placeOf(p), p))
	}
	return found
}
