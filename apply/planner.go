package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// planner makes one plan.
type planner struct {
	*Applier
	unit    Unit
	policy  Policy
	live    live
	catalog *catalog
	// pending are the definitions of the set that the plan creates or changes, and as Unchanged those that the server has not taken up yet: what
	// depends on them cannot be tried before.
	pending map[render.ID]Action
	wanted  map[render.ID]bool
	sharers map[schema.GroupKind]*sharers // by the kind of the controller's object

	fightsMu   sync.Mutex
	fightsSeen map[string]string // guarded by fightsMu: what was said of a holder
}

// Plan compares the set with the unit's live objects. It writes nothing.
//
// Faults of single objects are joined *ObjectError values, all of them and not the first alone, and there is no plan. There is none
// either when a kind that the unit has or had cannot be listed.
func (a *Applier) Plan(ctx context.Context, u Unit, set *render.Set, policy Policy) (*Plan, error) {
	if set == nil {
		return nil, fmt.Errorf("plan %s: no set of wanted objects; an empty one is not the same", u.Name)
	}
	a.meetUnit(u)
	versions, kinds := wantedKinds(set)
	kinds = union(u.Kinds, kinds)
	c, err := a.lookup(ctx, versions, u.Kinds)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", u.Name, err)
	}
	found, c, err := a.list(ctx, u, kinds, c)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", u.Name, err)
	}
	all, faults := resolve(u, set, c)
	p := &planner{Applier: a, unit: u, policy: policy, live: found, catalog: c, pending: make(map[render.ID]Action), sharers: newSharers()}
	shareFields(all)
	ignoreFields(all, policy.Ignore)
	p.wanted = idsOf(all)
	for i := range all {
		all[i].hash = all[i].remembered()
	}
	if err := p.fill(ctx, all); err != nil {
		return nil, fmt.Errorf("plan %s: %w", u.Name, err)
	}
	a.keepWatching(u, kinds, c)
	steps, errs := p.examineAll(ctx, all)
	if err := errors.Join(append(faults, errs...)...); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("plan %s: %w", u.Name, context.Cause(ctx))
		}
		return nil, err
	}
	deletes, err := p.deletes(ctx, all, policy)
	if err != nil {
		return nil, err
	}
	plan, err := p.plan(ctx, kinds, p.drift(append(steps, deletes...), set))
	if err != nil {
		return nil, err
	}
	plan.Guard = guard(plan, set, policy)
	plan.Fights = p.saidFights()
	plan.Notes = append(append(plan.Notes, ignoreNotes(all, policy.Ignore)...), p.unseenNotes()...)
	return plan, nil
}

// examineAll gives a step for each wanted object: definitions first, because what depends on them cannot be tried before they
// are there.
func (p *planner) examineAll(ctx context.Context, all []wanted) ([]Step, []error) {
	definitions, others := []wanted(nil), all
	if slices.ContainsFunc(all, wanted.defines) { // mostly there are none, and a pass that finds nothing changed is made often
		others = nil
		for _, w := range all {
			if w.defines() {
				definitions = append(definitions, w)
			} else {
				others = append(others, w)
			}
		}
	}
	seen := p.examineEach(ctx, definitions)
	for _, s := range seen {
		switch {
		case s.err != nil:
			// A definition that cannot be planned is a fault already; that its objects cannot be tried is not another one.
			p.pending[s.wanted.id] = Create
		case s.step.Action == Create || s.step.Action == Update:
			p.pending[s.step.ID] = s.step.Action
		case s.step.Action == Unchanged && s.step.health != nil && !s.step.health.Current():
			// The run that wrote it was broken off before the server had taken it up, or the server never will.
			p.pending[s.step.ID] = Unchanged
		}
	}
	rest := p.examineEach(ctx, others)
	if len(seen) > 0 {
		rest = slices.Concat(seen, rest)
	}
	return verdicts(rest)
}

// examined is a wanted object with its step, or the error in place of one.
type examined struct {
	wanted wanted
	step   Step
	err    error
}

func (p *planner) examineEach(ctx context.Context, all []wanted) []examined {
	seen := make([]examined, len(all))
	var g errgroup.Group
	g.SetLimit(p.concurrency)
	for i, w := range all {
		g.Go(func() error {
			seen[i] = examined{wanted: w}
			seen[i].err = safely(func() (err error) {
				seen[i].step, err = p.examine(ctx, w)
				return err
			})
			return nil
		})
	}
	_ = g.Wait() // no goroutine returns an error
	return seen
}

// verdicts parts steps from faults.
func verdicts(seen []examined) (steps []Step, faults []error) {
	creates := make(map[render.ID]bool)
	steps = make([]Step, 0, len(seen))
	for _, s := range seen {
		if s.err == nil && s.step.Action == Create {
			creates[s.step.ID] = true
		}
	}
	for _, s := range seen {
		if s.err == nil {
			steps = append(steps, s.step)
		} else if step, ok := excuse(s.wanted, s.err, creates); ok {
			steps = append(steps, step)
		} else {
			faults = append(faults, s.wanted.fault(s.err))
		}
	}
	return steps, faults
}

// plan puts steps into waves.
func (p *planner) plan(ctx context.Context, kinds []schema.GroupKind, steps []Step) (*Plan, error) {
	steps, notes, err := p.arrange(ctx, steps)
	if err != nil {
		return nil, fmt.Errorf("plan %s: find the order: %w", p.unit.Name, err)
	}
	plan := &Plan{Unit: p.unit, Kinds: kinds, Notes: notes, Waves: wavesOf(steps)}
	for _, o := range p.live.objects {
		if isOurs(o) {
			plan.Live++
		}
	}
	for _, kind := range kinds {
		if !p.live.listed[kind] {
			plan.unlisted = append(plan.unlisted, kind)
		}
	}
	for _, s := range steps {
		if s.health != nil && !s.again {
			plan.Health = append(plan.Health, *s.health)
		}
	}
	slices.SortFunc(plan.Health, func(x, y Health) int { return compareIDs(x.ID, y.ID) })
	return plan, nil
}

func idsOf(all []wanted) map[render.ID]bool {
	return maps.Collect(func(yield func(render.ID, bool) bool) {
		for _, w := range all {
			if !yield(w.id, true) {
				return
			}
		}
	})
}
