package apply

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render"
)

// deletes gives a step for each live object that Git does not have.
func (p *planner) deletes(ctx context.Context, all []wanted, policy Policy) ([]Step, error) {
	keep := idsOf(all)
	var steps []Step
	for id, m := range p.live.objects {
		if !keep[id] {
			steps = append(steps, unwanted(id, m))
		}
	}
	steps, err := p.bequeath(ctx, steps)
	if err != nil {
		return nil, err
	}
	for i, step := range steps {
		if step.Action == Delete && !policy.Prune {
			steps[i] = step.skip("Git does not have it, and prune is off")
		}
	}
	return steps, nil
}

// unwanted decides about a live object with our label that nobody wants.
func unwanted(id render.ID, m liveObject) Step {
	step := Step{ID: id, APIVersion: m.resource.APIVersion(), resource: m.resource, unwanted: true}.over(m)
	owner := metav1.GetControllerOfNoCopy(m)
	switch {
	case !isOurs(m):
		// Somebody copied an object, label and all. The label alone never deletes.
		return step.skip("carries our label, but was never applied by us: a copy")
	case m.GetDeletionTimestamp() != nil:
		step.health = terminating(id)
		return step.skip("is being deleted already")
	case isRootCertificate(id):
		step.Action, step.release = Update, true
		step.Reason = rootCertificate + "; it stays, and is let go"
		return step
	case owner != nil:
		return step.skip("belongs to " + owner.Kind + "/" + owner.Name + ", which deletes it")
	case m.GetAnnotations()[PruneAnnotation] == "disabled":
		return step.skip(PruneAnnotation + ": disabled")
	case m.GetAnnotations()[ReconcileAnnotation] == "disabled":
		return step.skip(ReconcileAnnotation + ": disabled on the live object")
	}
	if holders := holdersOf(id, m, ""); len(holders) > 0 {
		step.held = true
		return step.skip("is managed by " + holders[0].String() + " as well, which may still need it")
	}
	step.Action, step.precondition = Delete, m.GetResourceVersion()
	return step
}

// PlanDelete plans that everything of the unit goes, as when its Mooring is deleted. Definitions (CRDs, namespaces) are
// kept, because more hangs on them than the unit knows; they are let go, so that nobody takes them for ours later. No guard holds the plan: to delete the
// Mooring was the word.
func (a *Applier) PlanDelete(ctx context.Context, u Unit) (*Plan, error) {
	p, err := a.planAll(ctx, u)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for id, m := range p.live.objects {
		steps = append(steps, unwanted(id, m))
	}
	if steps, err = p.bequeath(ctx, steps); err != nil {
		return nil, err
	}
	for i, step := range steps {
		switch {
		case step.heir.ID != "" || step.inherits:
			// Nobody would keep it for the heir: it is nobody's until that one takes it.
			steps[i] = step.letGo("is kept and let go for another Mooring: " + step.Reason)
		case step.held:
			steps[i] = step.letGo("is kept and let go: it " + step.Reason)
		case step.Action == Delete && isDefinition(step.ID):
			steps[i] = step.letGo("is kept and let go: a " + step.ID.Kind + " is never deleted with its Mooring")
		}
	}
	return p.plan(ctx, union(u.Kinds, nil), steps)
}

// letGo makes the object nobody's.
func (s Step) letGo(reason string) Step {
	s.Action, s.release, s.precondition, s.Reason, s.heir = Update, true, "", reason, Heir{}
	return s
}

// planAll looks at everything of a unit.
func (a *Applier) planAll(ctx context.Context, u Unit) (*planner, error) {
	a.meetUnit(u)
	c, err := a.lookup(ctx, nil, u.Kinds)
	if err == nil && !c.serves(u.Kinds) {
		c, err = a.lookAgain(ctx, u.Kinds)
	}
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", u.Name, err)
	}
	found, c, err := a.list(ctx, u, union(u.Kinds, nil), c)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", u.Name, err)
	}
	p := &planner{Applier: a, unit: u, live: found, catalog: c, pending: make(map[render.ID]Action)}
	if err := p.fill(ctx, nil); err != nil {
		return nil, fmt.Errorf("plan %s: %w", u.Name, err)
	}
	return p, nil
}

// Orphan makes nothing of the unit ours any more: the objects stay as they are, without our label and without our field manager.
func (a *Applier) Orphan(ctx context.Context, u Unit) (*Result, error) {
	p, err := a.planAll(ctx, u)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for id, m := range p.live.objects {
		step := Step{ID: id, APIVersion: m.resource.APIVersion(), resource: m.resource, unwanted: true}.over(m)
		if isOurs(m) {
			step.Action, step.release, step.Reason = Update, true, "is let go"
		} else {
			step = step.skip("carries our label, but was never applied by us: a copy")
		}
		steps = append(steps, step)
	}
	plan, err := p.plan(ctx, union(u.Kinds, nil), steps)
	if err != nil {
		return nil, err
	}
	return a.Run(ctx, plan)
}
