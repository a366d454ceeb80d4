package sync

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/apply/istiod"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// errBlocked stands for the findings, which the outcome holds.
var errBlocked = errors.New("findings of the check block the commit")

// StageError is a failure and the stage that it happened in.
type StageError struct {
	Stage report.Stage
	// Again says when a failure of the check or the verification is looked at again; the other stages decide by themselves.
	Again report.Again
	Err   error
}

func (e *StageError) Error() string { return e.Err.Error() }

func (e *StageError) Unwrap() error { return e.Err }

// PanicError is a panic of a library below a pass. The stack is for the log, not for the status.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("internal error: %v; the agent's log has the stack", e.Value)
}

// pass is one pass in the making.
type pass struct {
	*Syncer
	mooring *v1alpha1.Mooring
	unit    *unit
	mesh    *istiod.Mesh   // nil where nobody asks
	trusted *repos.Signers // read once; nil before
	stage   report.Stage
	from    []apply.Tool // that a preview takes objects over from
	// previewing is true where somebody looks on and nothing is written.
	previewing bool
	keeping    bool // what was applied last is kept in force, because the newest commit is refused
	// wanted by the newest commit; nil as long as it is not known, or unfit.
	wanted *render.Set
	out    Outcome
	// removing is true for the pass that carries out the deletion policy: there is nothing newer than that.
	removing bool
	// woken is true for a pass that is made because an object moved.
	woken bool
	// when new commits are asked for and taken up; whenErr is why that is not known.
	when    Timetable
	whenErr error
	// way to the environment that is followed, and why what a preview shows does not come from it yet.
	way       *promoting
	heldThere error
	// askedGit is true once this pass has asked Git which commit is the newest.
	askedGit bool
	// readBeside is true once this pass has read what lives beside its objects.
	readBeside bool
}

func (s *Syncer) begin(m *v1alpha1.Mooring) *pass {
	u := s.units.of(m)
	m = m.DeepCopy()
	m.Default() // one that was read from a file has not been through the API server
	p := &pass{Syncer: s, mooring: m, unit: u, stage: report.StageFetch}
	p.out = Outcome{
		Generation: m.Generation,
		Reason:     v1alpha1.ReasonApplied,
		Interval:   m.Spec.Interval.Duration,
		Took:       map[report.Stage]time.Duration{},
	}
	p.woken = u.woken.Swap(false)
	p.out.Applied, p.out.Digest = u.inForce(m)
	p.when, p.whenErr = u.timetable(m)
	p.out.Pin, p.out.Rollback, p.out.Follows = m.Spec.Pin, u.rollbackOf(m), m.Spec.Promotion != nil
	u.follow(m)
	p.out.GitInterval = p.out.Interval
	if now := time.Now(); p.when.Slots != nil {
		p.out.GitInterval = p.when.Slots.Next(now).Sub(p.when.Slots.Last(now))
	}
	if s.proxies != nil {
		p.mesh = s.proxies.Mesh(propagation(m.Spec.Propagation))
	}
	return p
}

// end closes a pass, also one that a panic broke off.
func (p *pass) end(panicked any) Outcome {
	if panicked != nil {
		p.fail(&StageError{Stage: p.stage, Err: &PanicError{Value: panicked, Stack: debug.Stack()}})
	}
	if p.mesh != nil {
		p.out.Unasked = p.mesh.Unasked()
	}
	p.tellChosen()
	p.out.Unfinished = p.unit.unfinished
	p.unit.rollback, p.unit.rollbackKnown = p.out.Rollback, true
	p.out.OverrideUsed = p.overrideUsed()
	p.out.Scheduled, p.out.Slot = p.mooring.Spec.Schedule != "", p.unit.answered.slot
	if !p.when.Windows.None() {
		p.out.Window = new(p.when.Windows.Open(time.Now()))
	}
	p.out.Finished = time.Now()
	return p.out
}

func propagation(p v1alpha1.Propagation) istiod.Policy {
	return istiod.Policy{Ask: istiod.Ask(p.Ask), Pause: p.Pause.Duration, Timeout: p.Timeout.Duration}
}

// fail says why the newest commit is not in force.
func (p *pass) fail(err error) {
	if err == nil {
		return
	}
	p.out.Err = err
	p.out.Stage = p.stage
	var at *StageError
	if errors.As(err, &at) {
		p.out.Stage, p.out.Again = at.Stage, at.Again
	}
	p.out.Reason = reason(p.out.Stage)
}

// final is true for what came of a commit and not of the way to it: nil, or a refusal that only another commit cures.
func final(err error) bool {
	var at *StageError
	return !errors.As(err, &at) || at.Stage != report.StageFetch
}

func reason(stage report.Stage) string {
	switch stage {
	case report.StageFetch:
		return v1alpha1.ReasonFetchFailed
	case report.StageVerify:
		return v1alpha1.ReasonVerificationFailed
	case report.StageRender:
		return v1alpha1.ReasonRenderFailed
	case report.StageCheck:
		return v1alpha1.ReasonCheckFailed
	case report.StageGuard:
		return v1alpha1.ReasonPruneGuarded
	case report.StageDependency:
		return v1alpha1.ReasonDependencyNotReady
	case report.StageWindow:
		return v1alpha1.ReasonWindowClosed
	case report.StagePromotion:
		return v1alpha1.ReasonPromotionPending
	}
	return v1alpha1.ReasonApplyFailed
}

// applied says that a target is in force, and whether it is healthy where that is asked for.
func (p *pass) applied(t *target) {
	if t.rev.Commit != p.out.Applied.Commit || t.digest != p.out.Digest {
		p.unit.healthy() // what is waited for from now on was applied now
	}
	p.out.WordUsed = p.word().used(p.out.Applied, t.rev)
	p.out.AdoptionUsed = p.adoption().used(p.out.Applied, t.rev)
	p.out.Applied, p.out.Digest = t.rev, t.digest
	p.out.Author, p.out.Subject = t.author, t.subject
	p.unit.inforce, p.unit.unfinished, p.unit.overridden = t, "", overridden{}
	if p.out.Rollback != nil { // the newest one is not in force, however this one fares
		p.unit.healthy()
		p.out.Reason, p.out.Stage = v1alpha1.ReasonHealthTimeout, report.StageHealth
		return
	}
	if !p.mooring.Spec.Wait || len(p.out.Result.Unhealthy()) == 0 {
		p.unit.healthy()
		return
	}
	p.out.Waiting = p.unit.waits(p.mooring, t)
	if time.Since(p.out.Waiting) < p.mooring.Spec.Timeout.Duration {
		p.out.Reason = v1alpha1.ReasonProgressing
		return
	}
	p.out.Reason, p.out.Stage = v1alpha1.ReasonHealthTimeout, report.StageHealth
	p.failed(t)
}

// cause is why a run of this target writes anything.
func (p *pass) cause(t *target) report.Cause {
	switch {
	case t.rev.Commit != p.out.Applied.Commit && p.goesBack():
		return report.CauseRollback
	case p.out.Override != "":
		return report.CauseOverride
	case t.rev.Commit != p.out.Applied.Commit && p.confirmed(t.rev):
		return report.CauseConfirm
	case t.rev.Commit != p.out.Applied.Commit && p.way.has(t.rev.Commit):
		return report.CausePromotion
	case t.rev.Commit != p.out.Applied.Commit:
		return report.CauseCommit
	case t.digest != p.out.Digest || t.rev != p.out.Applied: // the path, or another name of the same commit
		return report.CauseSpec
	}
	return report.CauseDrift
}

// lastGood is the target that was applied last: from memory, or fetched and rendered anew. It is only good when
// it renders to the very objects that were applied; nil when nothing was applied yet.
func (p *pass) lastGood(ctx context.Context) (*target, error) {
	rev, digest := p.unit.inForce(p.mooring)
	if rev.IsZero() {
		return nil, nil
	}
	if t := p.unit.good(rev, digest); t != nil {
		return t, nil
	}
	remote, err := p.remote(ctx)
	if err != nil {
		return nil, err
	}
	t, err := p.render(ctx, remote, rev)
	if err != nil {
		return nil, fmt.Errorf("render %s again: %w", rev, err)
	}
	if t.digest != digest {
		return nil, fmt.Errorf("%s no longer renders to what was applied (has spec.path changed?); drift is not corrected before the newest commit is mended", rev)
	}
	p.unit.inforce = t
	return t, nil
}

// owner is the ApplySet of the Mooring, as of these revisions.
func (p *pass) owner(at ...repos.Revision) apply.Unit {
	u := p.parent.unit(p.mooring, p.unit)
	if p.moorings != nil {
		u.Moorings = &neighbours{pass: p, at: at}
	}
	if p.mesh != nil { // a nil pointer in an interface would be somebody to ask
		u.Mesh = p.mesh
	}
	// While the expressions do not compile, no new commit is taken up, and the last one is kept by what Mooring knows itself.
	u.Health, _ = p.healthChecks()
	u.AtGate = p.atGate
	return u
}

// policy for a plan. To keep what was applied last in force is no reason to delete: what is there beside it was made by a newer commit, whose
// apply was broken off, and the newest one may have it as well. It carries our label, and goes with the next commit that does not have it.
func (p *pass) policy(rev repos.Revision) apply.Policy {
	prune := p.mooring.Spec.Prune
	policy := apply.Policy{
		Prune:      *prune.Enabled && !p.keeping,
		MaxPercent: int(*prune.MaxPercent),
		MaxObjects: int(*prune.MaxObjects),
	}
	if policy.MaxPercent < 100 { // who allows everything to go allows a kind to go
		policy.WholeKinds, policy.HollowFiles = wholeKind, true
	}
	policy.Confirmed, policy.ConfirmedDeletes = p.word().covers(rev)
	policy.Adopt = append(p.adoption().covers(rev), p.from...)
	return policy
}

// confirmed is true when a human let plans for this very revision through.
func (p *pass) confirmed(rev repos.Revision) bool {
	confirmed, _ := p.word().covers(rev)
	return confirmed
}

func (p *pass) word() word { return word(p.mooring.Annotations[v1alpha1.ConfirmAnnotation]) }
