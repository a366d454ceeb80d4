package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// Run does what the plan says, wave by wave. A plan without changes may be run too: it costs nothing, and it
// tells the parent about kinds that are gone.
//
// The result is complete also when the error is not nil: what was done, what failed and why, and what was not reached. A failed object does
// not stop what does not depend on it; but nothing is deleted unless all before it went well. A gate that is not passed stops the
// run: the plan of the next pass goes on from what lives. A guarded plan is refused with ErrGuarded. When ctx ends in the middle, what is
// in flight fails and the rest is not reached.
func (a *Applier) Run(ctx context.Context, p *Plan) (*Result, error) {
	r := newRunner(a, p)
	if p.Guard != nil {
		return r.result, fmt.Errorf("run %s: %w: %s", p.Unit.Name, ErrGuarded, p.Guard.Message)
	}
	if err := r.recordBefore(ctx); err != nil {
		return r.result, err
	}
	a.memory.begin(p.Unit.ID)
	defer func() {
		if a.memory.end(p.Unit.ID) {
			a.wake(p.Unit.ID)
		}
	}()
	first := 0
	for _, wave := range p.Waves {
		steps := r.result.Steps[first : first+len(wave.Steps)]
		for _, cut := range groups(wave.Steps) {
			r.group(ctx, steps[cut[0]:cut[1]])
		}
		if err := r.pass(ctx, wave.Gate, steps); err != nil {
			r.stopped = err
			break
		}
		first += len(wave.Steps)
	}
	return r.finish(ctx)
}

// runner does one run.
type runner struct {
	*Applier
	unit     Unit
	plan     *Plan
	result   *Result
	recorded []schema.GroupKind // what the parent says at this moment

	mu      sync.Mutex
	failed  map[render.ID]bool    // guarded by mu: objects that failed or were not reached
	faults  int                   // guarded by mu
	stopped error                 // why a gate was not passed
	unready error                 // why what needs istiod must wait; written between waves alone
	stands  map[render.ID]Written // guarded by mu: the unit's objects of the mesh as they are now
	changed map[render.ID]bool    // definitions that this run changed; written between waves alone
}

func newRunner(a *Applier, p *Plan) *runner {
	r := &runner{
		Applier: a, unit: p.Unit, plan: p, recorded: p.Unit.Kinds,
		result: &Result{Kinds: p.Unit.Kinds, Objects: p.Live, Health: slices.Clone(p.Health)},
		failed: make(map[render.ID]bool), changed: make(map[render.ID]bool), stands: make(map[render.ID]Written),
	}
	steps := 0
	for _, w := range p.Waves {
		steps += len(w.Steps)
	}
	r.result.Steps = make([]StepResult, 0, steps)
	for s := range p.Steps() {
		if s.Action == Unchanged && s.uid != "" && reachesProxies(s.ID.GroupKind()) {
			r.stands[s.ID] = Written{ID: s.ID, UID: s.uid, ResourceVersion: s.version}
		}
		r.result.Steps = append(r.result.Steps, StepResult{Step: s, State: NotReached})
	}
	return r
}

// recordBefore tells the parent every kind of which there may be objects in a moment, so that a crash at any instant leaves nothing
// that no later pass would look for.
func (r *runner) recordBefore(ctx context.Context) error {
	if !r.plan.Changes() {
		return nil
	}
	if err := r.record(ctx, r.plan.Kinds); err != nil {
		return fmt.Errorf("run %s: record kinds: %w", r.unit.Name, err)
	}
	return nil
}

func (r *runner) record(ctx context.Context, kinds []schema.GroupKind) error {
	if sameKinds(kinds, r.recorded) || r.unit.Record == nil {
		return nil
	}
	if err := r.unit.Record(ctx, kinds); err != nil {
		return err
	}
	r.recorded = kinds
	r.result.Kinds = kinds
	return nil
}

// group does steps that do not depend on each other.
func (r *runner) group(ctx context.Context, steps []StepResult) {
	var todo []*StepResult
	for i := range steps {
		s := &steps[i]
		if s.Action == Unchanged || s.Action == Skip {
			s.State = Done
		} else if err := r.blocked(ctx, s.Step); err != nil {
			r.fail(s, NotReached, err)
		} else {
			todo = append(todo, s)
		}
	}
	var g errgroup.Group
	g.SetLimit(r.concurrency)
	for _, s := range todo {
		g.Go(func() error {
			if ctx.Err() != nil {
				r.fail(s, NotReached, context.Cause(ctx))
			} else if err := safely(func() error { return r.do(ctx, s) }); err != nil {
				r.fail(s, Failed, err)
			} else {
				s.State = Done
			}
			return nil
		})
	}
	_ = g.Wait() // no goroutine returns an error
}

func (r *runner) fail(s *StepResult, state State, err error) {
	op := "apply"
	if s.Action == Delete {
		op = "delete"
	}
	s.State = state
	s.Err = &ObjectError{Op: op, ID: s.ID, Origin: s.Origin, Err: err}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults++
	r.failed[s.ID] = true
}

// blocked says why a step must not be done.
func (r *runner) blocked(ctx context.Context, s Step) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range append([]render.ID{namespaceID(s.ID.Namespace), s.definition}, s.needs...) {
		if r.failed[id] && (id != s.ID || s.again) {
			return fmt.Errorf("waits for %s", id)
		}
	}
	switch {
	case r.unready != nil && needsIstiod(s):
		return r.unready
	case s.unwanted && s.Action == Delete && r.faults > 0 && (isDefinition(s.ID) || !r.pruning()):
		return errors.New("nothing is deleted until all else is done")
	case isWebhook(s.ID) && r.servesNobody(s):
		return errors.New("waits for what failed in the namespace of its service: a webhook that nobody serves refuses everything")
	}
	return nil
}

// pruning is true when every fault so far is one of a delete: these do not stop each other.
func (r *runner) pruning() bool {
	return !slices.ContainsFunc(r.result.Steps, func(s StepResult) bool { return s.Err != nil && !s.unwanted })
}

// servesNobody is true when something failed in a namespace that the webhook's calls go to.
func (r *runner) servesNobody(s Step) bool {
	if s.want == nil {
		return false
	}
	hooks, _, _ := unstructured.NestedSlice(s.want.get().Object, "webhooks")
	for _, h := range hooks {
		hook, _ := h.(map[string]any)
		namespace, found, _ := unstructured.NestedString(hook, "clientConfig", "service", "namespace")
		if found && slices.ContainsFunc(r.result.Steps, func(o StepResult) bool {
			return o.Err != nil && (o.ID.Namespace == namespace || o.ID == namespaceID(namespace))
		}) {
			return true
		}
	}
	return false
}

// finish sums up.
func (r *runner) finish(ctx context.Context) (*Result, error) {
	var faults []error
	for _, s := range r.result.Steps {
		if s.State == Failed {
			faults = append(faults, s.Err)
		}
		r.result.Objects += s.added()
	}
	r.result.Health = r.health()
	switch {
	case ctx.Err() != nil:
		faults = append(faults, fmt.Errorf("run %s: %w", r.unit.Name, context.Cause(ctx)))
	case r.stopped != nil:
		faults = append(faults, fmt.Errorf("run %s: %w", r.unit.Name, r.stopped))
	}
	if len(faults) > 0 {
		return r.result, errors.Join(faults...)
	}
	r.memory.keep(r.unit.ID, r.kept())
	left, err := r.left(ctx)
	if err == nil {
		err = r.record(ctx, left)
	}
	if err != nil {
		return r.result, fmt.Errorf("run %s: record kinds: %w", r.unit.Name, err)
	}
	return r.result, nil
}

// kept are the objects that Git wants. What the unit remembers of others is of no use any more. That is decided here and not in Plan: a plan
// that is only looked at, or that a guard refuses at every pass, must not cost the memory of what is in force.
func (r *runner) kept() map[render.ID]bool {
	kept := make(map[render.ID]bool)
	for s := range r.plan.Steps() {
		if !s.unwanted {
			kept[s.ID] = true
		}
	}
	return kept
}

// health is what the plan saw, and what came after it.
func (r *runner) health() []Health {
	latest := make(map[render.ID]Health)
	for _, h := range r.plan.Health {
		latest[h.ID] = h
	}
	for _, s := range r.result.Steps {
		switch {
		case s.health != nil:
			latest[s.ID] = *s.health
		case s.State == Done && (s.Action == Delete || s.release):
			delete(latest, s.ID)
		}
	}
	return slices.SortedFunc(maps.Values(latest), func(x, y Health) int { return compareIDs(x.ID, y.ID) })
}

// left are the kinds that the unit still has objects of after a complete run.
func (r *runner) left(ctx context.Context) ([]schema.GroupKind, error) {
	left := slices.Clone(r.plan.unlisted)
	gone := make(map[schema.GroupKind]resource)
	for _, s := range r.result.Steps {
		gk := s.ID.GroupKind()
		switch {
		case !s.unwanted || s.counted && (s.Action == Skip || s.heir.ID != ""):
			left = append(left, gk)
		case s.Action == Delete:
			gone[gk] = s.resource
		}
	}
	left = union(left, nil)
	for gk, where := range gone {
		if slices.Contains(left, gk) {
			continue
		}
		// A finalizer may hold back what was deleted. It is ours until it is gone.
		still, err := r.listKind(ctx, r.unit, where)
		if err != nil && !isGone(err) {
			return nil, err
		}
		if len(still) > 0 {
			left = union(left, []schema.GroupKind{gk})
		}
	}
	return left, nil
}
