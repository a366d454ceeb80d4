package apply

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render"
)

// An object that one Mooring drops and another wants is handed over: it is never deleted and made anew, in whichever order the two are
// looked after. The one that has it offers it, the one that wants it takes it; neither acts for the other.
//
//   - The new one passes first: the object is the old one's, and the new one's plan is refused (ForeignError says who has it). Nothing flips.
//   - The old one passes: it does not want the object, and asks Unit.Moorings who does. Nobody: it is deleted at once, the ordinary case. Somebody: in place
//     of the delete it writes HandoverAnnotation with the heir's id, and keeps the object as its own until the heir has taken it. Somebody
//     whose wishes cannot be told (its path does not render at this commit, its Mooring was not looked at since the agent started): nothing
//     is written, and the object is kept.
//     What was offered stays as well, while whom it was offered to does not want it any more but has no newer commit in force: that one's last good
//     commit still has it.
//   - The new one passes again: an object that is offered to it is no longer somebody else's. One apply, bound to the resourceVersion that the plan saw,
//     changes the label, the content and who owns what, and takes the offer away, because the field manager of all Moorings is the same.
//
// What is promised: an object that some Mooring wants at the commit that the other one drops it in, or that a refused Mooring claims, keeps its UID and
// is there at every instant. It carries the label of exactly one Mooring at every instant, and that Mooring has recorded its kind: so a crash
// between any two requests leaves it tracked. An offer that is not taken, because the heir changed its mind and has that in force, was deleted, or the old one wants the object back, is
// asked about anew at each pass: it is offered to the next, deleted, or taken back, and every one of these is bound to the resourceVersion, so that it
// loses against an heir who was faster.
//
// What is not: where the two follow different repositories, nobody can know of a wish that no pass of the other has seen yet. If the old
// one drops the object before any agent has read the new one's commit, it is an ordinary delete.

// HandoverAnnotation is ours: the ApplySet id of the unit that may take the object.
const HandoverAnnotation = "mooring.dev/handed-to"

// Moorings knows the other Moorings of the cluster.
type Moorings interface {
	// Heirs says of objects that the unit does not want who does. Objects that nobody wants are not in the answer. An error means that
	// nothing is known, and then there is no plan.
	Heirs(ctx context.Context, unwanted []render.ID) (map[render.ID]Heir, error)
	// Undecided says of the Mooring with an ApplySet id, to which an object was offered and which does not want it at this commit, why that may not be its last
	// word: its newest commit is not in force, and its last good one may want the object. Unsure is empty when it has decided, or is gone.
	Undecided(ctx context.Context, id string) Heir
	// Name is "namespace/name" of the Mooring with an ApplySet id; empty where there is none.
	Name(ctx context.Context, id string) string
}

// Heir wants an object that another Mooring has.
type Heir struct {
	// ID is its ApplySet id.
	ID string
	// Name is "namespace/name" of the Mooring.
	Name string
	// Unsure says why it cannot be told whether it wants the object; empty when it does. The object is then neither offered nor deleted.
	Unsure string
}

// ForeignError refuses an object of another Mooring.
type ForeignError struct {
	// Owner is the ApplySet id in the object's label, Name its Mooring where that is known.
	Owner, Name string
}

// Error says who has it and what to do.
func (e *ForeignError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("belongs to %s, which is no Mooring that is known here; take it out there first, or here", e.Owner)
	}
	return fmt.Sprintf("belongs to Mooring %s (%s), which hands it over once Git does not have it there any more; take it out there, or here", e.Name, e.Owner)
}

// nameOf the Mooring with an ApplySet id; empty when it is not known.
func (p *planner) nameOf(ctx context.Context, id string) string {
	if name := p.name(id); name != "" || p.unit.Moorings == nil {
		return name
	}
	return p.unit.Moorings.Name(ctx, id)
}

// offered is true for an object of another unit that this one may take.
func offered(o metav1.Object, unit string) bool {
	owner := o.GetLabels()[PartOfLabel]
	return owner != "" && owner != unit && o.GetAnnotations()[HandoverAnnotation] == unit
}

// inherited is why an object that was offered is taken; empty for any other one.
func (p *planner) inherited(ctx context.Context, o metav1.Object) string {
	if !offered(o, p.unit.ID) {
		return ""
	}
	owner := o.GetLabels()[PartOfLabel]
	if name := p.nameOf(ctx, owner); name != "" {
		return "takes over from Mooring " + name
	}
	return "takes over from " + owner
}

// bequeath asks who else wants what is not wanted here, and turns deletes of such objects into offers. An object that is only kept because nobody may
// delete it (PruneAnnotation) is offered, too: a handover is no delete.
func (p *planner) bequeath(ctx context.Context, steps []Step) ([]Step, error) {
	var ids []render.ID
	for _, s := range steps {
		if mayBequeath(p.live.objects[s.ID]) {
			ids = append(ids, s.ID)
		}
	}
	if len(ids) == 0 || p.unit.Moorings == nil {
		return steps, nil
	}
	heirs, err := p.unit.Moorings.Heirs(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("plan %s: find out who else wants what is not wanted here any more: %w", p.unit.Name, err)
	}
	for i, s := range steps {
		m := p.live.objects[s.ID]
		if !mayBequeath(m) {
			continue
		}
		heir, ok := heirs[s.ID]
		if to := m.GetAnnotations()[HandoverAnnotation]; !ok && to != "" && to != p.unit.ID {
			heir = p.unit.Moorings.Undecided(ctx, to)
			ok = heir.Unsure != ""
		}
		if ok && heir.ID != p.unit.ID {
			steps[i] = offerTo(s, heir, m)
		}
	}
	return steps, nil
}

// Waits is true when the plan keeps an object because another Mooring has not taken it, or has not decided.
func (p *Plan) Waits() bool {
	for s := range p.Steps() {
		if s.inherits {
			return true
		}
	}
	return false
}

// Heirs are the Moorings, by namespace/name, that the plan offers something to.
func (p *Plan) Heirs() []string {
	var names []string
	for s := range p.Steps() {
		if s.heir.ID != "" && !slices.Contains(names, s.heir.Name) {
			names = append(names, s.heir.Name)
		}
	}
	return names
}

// mayBequeath is true for what is ours to give away.
func mayBequeath(m liveObject) bool {
	return isOurs(m) && m.GetDeletionTimestamp() == nil && m.GetAnnotations()[ReconcileAnnotation] != "disabled" &&
		metav1.GetControllerOfNoCopy(m) == nil
}

// offerTo gives the step by which an object is offered to its heir. An offer that stands needs no request.
func offerTo(s Step, heir Heir, m liveObject) Step {
	switch {
	case heir.Unsure != "":
		s.inherits = true
		return s.skip("Git does not have it here, and Mooring " + heir.Name + " may take it over: " + heir.Unsure)
	case m.GetAnnotations()[HandoverAnnotation] == heir.ID:
		s.inherits = true
		return s.skip("is offered to Mooring " + heir.Name + ", which has not taken it yet")
	}
	s.Action, s.heir, s.precondition = Update, heir, ""
	s.Reason = "is handed over to Mooring " + heir.Name
	return s
}

// offer writes the heir's id on an object that is still ours. It stays ours until the heir takes it.
func (r *runner) offer(ctx context.Context, s Step) error {
	_, err := r.patchMetadata(ctx, s, func(m *metav1.PartialObjectMetadata) ([]patch, error) {
		if m.Labels[PartOfLabel] != r.unit.ID {
			return nil, nil // somebody has it already
		}
		return annotate(m, HandoverAnnotation, s.heir.ID), nil
	})
	if isGone(err) {
		err = nil
	}
	if err == nil {
		r.memory.drop(r.unit.ID, s.ID)
	}
	return err
}

// annotate gives the patch that sets one annotation.
func annotate(m metav1.Object, name, value string) []patch {
	if len(m.GetAnnotations()) == 0 {
		return []patch{{"add", "/metadata/annotations", map[string]string{name: value}}}
	}
	return []patch{{"add", "/metadata/annotations/" + escape(name), value}}
}
