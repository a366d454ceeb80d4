package apply

import (
	"reflect"
	"slices"

	"github.com/mooring-dev/mooring/render"
)

// A difference has one of two causes: a commit wants something else, or somebody made something else of what lives. The second is drift. The two are told
// apart by what Git wants: an object that the set in force has just so, and that lives differently, has drifted; one that the set in force has otherwise, or has
// not, is changed by the commit, which then is applied to that object whole. Without a set in force there is no drift.

// Drift says what somebody made of an object.
type Drift string

// The kinds of drift.
const (
	// DriftChanged : fields differ.
	DriftChanged Drift = "changed"
	// DriftDeleted : the object is not there.
	DriftDeleted Drift = "deleted"
	// DriftExtra : the object is there, ours by label and field manager, and neither Git nor the set in force has it.
	DriftExtra Drift = "extra"
)

// DriftPolicy says what is drift in a plan, and what is done about it.
type DriftPolicy struct {
	// InForce is the set that was applied last: the very one that is planned for when nothing changed in Git. Nil when nothing was applied yet, or when it
	// is not known; then every difference is the commit's.
	InForce *render.Set
	// Unfinished says that the apply of another set was begun since and broken off. What then differs in no name but ours is that apply's doing, and no drift.
	Unfinished bool
	// Alarm leaves drift as it is.
	Alarm bool
	// Hold are the objects whose drift is not put right by this plan, each with the reason why.
	Hold map[render.ID]string
}

// leftByAlarm is the reason of steps that Alarm holds back.
const leftByAlarm = "drift; it is left as it is, because spec.drift.mode is Alarm"

// Held is true for drift that the plan does not put right.
func (s Step) Held() bool {
	return s.Drift != "" && s.Action == Skip
}

// Drifted is true when the plan saw drift, whether it puts it right or not.
func (p *Plan) Drifted() bool {
	for s := range p.Steps() {
		if s.Drift != "" {
			return true
		}
	}
	return false
}

// drift finds the steps that are about drift, and holds back those that the policy says.
func (p *planner) drift(steps []Step, set *render.Set) []Step {
	policy := p.policy.Drift
	if policy.InForce == nil {
		return steps
	}
	kept := keptBy(policy.InForce, set)
	for i, s := range steps {
		switch {
		case s.unwanted && policy.InForce == set && !policy.Unfinished:
			steps[i].Drift = extraDrift(s)
		case !s.unwanted && s.writes() && kept(s.ID):
			steps[i].Drift = p.drifted(s, policy)
			if policy.Alarm && s.unseen() && !policy.Unfinished {
				// It was as it should be, and what would be written over cannot be seen.
				steps[i] = s.skip(s.Reason + "; it is looked at again by the next pass, because spec.drift.mode is Alarm")
			}
		}
		steps[i] = p.hold(steps[i], policy)
	}
	return steps
}

// drifted tells the drift of a wanted object that a plan would write, and that the set in force has just as it is wanted now.
func (p *planner) drifted(s Step, policy DriftPolicy) Drift {
	switch {
	case s.Action == Create && !policy.Unfinished:
		return DriftDeleted
	case s.Action == Create, len(s.From) > 0, s.live != nil && offered(s.live, p.unit.ID), len(s.Diff) == 0:
		return "" // made anew by what was broken off, taken over from somebody, not seen, or no more than a matter of owners
	case policy.Unfinished && !slices.ContainsFunc(s.Diff, func(d FieldDiff) bool { return d.Who() != "" }):
		return ""
	default:
		return DriftChanged
	}
}

// extraDrift tells the drift of an object that nobody wants. Kept or given away, it is none.
func extraDrift(s Step) Drift {
	if s.Action != Delete {
		return ""
	}
	return DriftExtra
}

// unseen is true for an update that could not be tried.
func (s Step) unseen() bool {
	return s.Action == Update && s.applied == nil && s.Drift == "" && len(s.Diff) == 0
}

// hold gives the step without its write where the policy says so.
func (p *planner) hold(s Step, policy DriftPolicy) Step {
	reason := policy.Hold[s.ID]
	if policy.Alarm {
		reason = leftByAlarm
	}
	if s.Drift == "" || reason == "" {
		return s
	}
	if s.live != nil { // and not as it would be
		s.health = p.unit.healthOf(s.live)
		p.memory.held(p.unit.ID, s.ID, s.live.GetResourceVersion())
	}
	return s.skip(reason)
}

// keptBy says of an object whether a set wants it just as another one does.
func keptBy(inForce, set *render.Set) func(render.ID) bool {
	if inForce == set {
		return func(render.ID) bool { return true }
	}
	before, now := byID(inForce), byID(set)
	return func(id render.ID) bool {
		was, is := before[id], now[id]
		return was != nil && is != nil && (was == is || reflect.DeepEqual(was.Unstructured().Object, is.Unstructured().Object))
	}
}

// byID finds the objects of a set. One that lives in no namespace is found also where Git writes one on it.
func byID(set *render.Set) map[render.ID]*render.Content {
	all := make(map[render.ID]*render.Content, len(set.Objects))
	for _, o := range set.Objects {
		id := o.ID()
		all[id] = o.Content
		if id.Namespace = ""; all[id] == nil {
			all[id] = o.Content
		}
	}
	return all
}
