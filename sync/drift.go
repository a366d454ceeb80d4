package sync

import (
	"context"
	"time"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// driftKey is a field with its live value: as long as it is the same, it is the same drift.
type driftKey struct{ object, field, live string }

// known drift of a unit, and since when.
type known map[driftKey]time.Time

func knownOf(s v1alpha1.MooringStatus) known {
	all := known{}
	for _, e := range s.Drift {
		if e.Since != nil {
			all[driftKey{e.Object, e.Field, e.Live}] = e.Since.Time
		}
	}
	return all
}

func alarms(m *v1alpha1.Mooring) bool {
	return m.Spec.Drift != nil && m.Spec.Drift.Mode == v1alpha1.DriftAlarm
}

// driftPolicy says what is drift in a plan for t, and what is done about it.
func (p *pass) driftPolicy(ctx context.Context, t *target) apply.DriftPolicy {
	policy := apply.DriftPolicy{InForce: p.inForceSet(ctx, t), Unfinished: p.unit.unfinished != "", Alarm: alarms(p.mooring)}
	if !policy.Alarm {
		policy.Hold = p.unit.fights.held(time.Now())
	}
	return policy
}

// inForceSet is what was applied last, where it is known without work, and in any case where drift must not be touched. When it cannot be had any more (the
// history was rewritten, the path was changed) the new revision decides about every object.
func (p *pass) inForceSet(ctx context.Context, t *target) *render.Set {
	rev, digest := p.out.Applied, p.out.Digest
	if rev.IsZero() {
		return nil
	}
	if t.digest == digest {
		return t.set
	}
	good := p.unit.good(rev, digest)
	if good == nil && (p.previewing || alarms(p.mooring)) {
		good, _ = p.lastGood(ctx)
	}
	if good == nil {
		return nil
	}
	return good.set
}

// noteDrift takes what a run found and did into the outcome, and into what the unit knows.
func (p *pass) noteDrift() {
	if p.out.Result == nil {
		return
	}
	now := time.Now()
	still := known{}
	for _, step := range p.out.Result.Steps {
		if step.Drift == "" || step.Again() {
			continue
		}
		for _, d := range report.DriftOf(step, p.reasonOf(step)) {
			if d.Reason != "" {
				key := driftKey{d.ID.String(), d.Path, report.Text(d.Live)}
				since, before := p.unit.drift[key]
				if !before {
					since = now
				}
				d.Since, d.New, still[key] = since, !before, since
			}
			p.out.Drift = append(p.out.Drift, d)
		}
	}
	p.unit.drift = still
	if alarms(p.mooring) {
		p.unit.fights = fights{} // nobody fights who changes nothing
	}
	p.out.FightsBegun = p.unit.fights.note(p.out.Drift, now)
	p.out.FightsOver = p.unit.fights.settle(now)
	p.out.Fights = p.unit.fights.list()
}

// reasonOf a step that is about drift: why it was not put right; empty when it was.
func (p *pass) reasonOf(step apply.StepResult) string {
	switch {
	case !step.Held() && step.State == apply.Done:
		return ""
	case !step.Held():
		return v1alpha1.ReasonNotCorrected
	case alarms(p.mooring):
		return v1alpha1.ReasonAlarm
	}
	return v1alpha1.ReasonFight
}
