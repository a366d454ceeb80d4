package sync

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/apply/istiod"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Outcome is all that one pass did.
type Outcome = report.Outcome

// source gives commits.
type source interface {
	Resolve(ctx context.Context, remote repos.Remote, ref repos.Ref) (repos.Revision, error)
	Verify(ctx context.Context, remote repos.Remote, rev repos.Revision, mode repos.VerifyMode, by *repos.Signers) (repos.Signed, error)
	Snapshot(ctx context.Context, remote repos.Remote, rev repos.Revision) (*repos.Snapshot, error)
}

// renderer turns a folder of a commit into the objects that it stands for.
type renderer interface {
	Render(ctx context.Context, fsys fs.FS, dir string) (*render.Set, error)
}

// applier compares with the cluster, and makes the difference.
type applier interface {
	Plan(ctx context.Context, unit apply.Unit, set *render.Set, policy apply.Policy) (*apply.Plan, error)
	Run(ctx context.Context, plan *apply.Plan) (*apply.Result, error)
}

// Syncer makes passes. It is safe for concurrent use by different Moorings.
type Syncer struct {
	source   source
	renderer renderer
	cache    *render.Cache // of the renderer; nil where there is none
	checker  checker
	surveyor surveyor
	applier  applier
	reader   reader
	proxies  *istiod.Client // nil where nobody asks
	pusher   pusher
	proposer proposer
	parent   parent
	moorings lister
	owners   lister // nil where nobody is told what nobody manages
	units    units
	wishes   wishes
	beside   beside
	slots    slots
	waits    waits
}

// Once makes one pass: what does Git want, may the mesh have it, what is different, make it so. While the newest
// commit is refused at any of these, the one that was applied last is kept in force.
func (s *Syncer) Once(ctx context.Context, m *v1alpha1.Mooring) (out Outcome) {
	p := s.begin(m)
	p.slots.take()
	defer p.slots.give()
	ctx, cancel := context.WithTimeout(ctx, p.mooring.Spec.Timeout.Duration)
	defer cancel()
	defer func() { out = p.end(recover()) }()

	target, err := p.target(ctx)
	if err != nil {
		return p.keep(ctx, err)
	}
	p.wanted = target.set
	if err := p.mustWait(ctx, target); err != nil {
		return p.keep(ctx, err)
	}
	plan, err := p.plan(ctx, target)
	if err := errors.Join(err, p.claim(ctx, err)); err != nil {
		return p.keep(ctx, err)
	}
	if plan.Guard != nil {
		return p.keep(ctx, &StageError{Stage: report.StageGuard, Err: fmt.Errorf("%w: %s", apply.ErrGuarded, plan.Guard.Message)})
	}
	if err := p.mayStill(target); err != nil { // a window may have closed while the pass waited
		return p.keep(ctx, err)
	}
	return p.run(ctx, target, plan)
}

// mustWait is why a target that could be taken up is not, now.
func (p *pass) mustWait(ctx context.Context, t *target) error {
	if p.goesBack() {
		return nil
	}
	if err := p.awaits(ctx, t); err != nil {
		return err
	}
	return p.held(t)
}

// mayStill is why a target that could be taken up when the pass began may not be any more.
func (p *pass) mayStill(t *target) error {
	if p.goesBack() {
		return nil
	}
	return p.held(t)
}

// Preview is a pass that stops before anything is written: its Outcome holds the plan of the newest commit.
func (s *Syncer) Preview(ctx context.Context, m *v1alpha1.Mooring) Outcome {
	return s.preview(ctx, m, nil)
}

func (s *Syncer) preview(ctx context.Context, m *v1alpha1.Mooring, from []apply.Tool) (out Outcome) {
	p := s.begin(m)
	p.from, p.previewing = from, true
	p.slots.take()
	defer p.slots.give()
	ctx, cancel := context.WithTimeout(ctx, p.mooring.Spec.Timeout.Duration)
	defer cancel()
	defer func() { out = p.end(recover()) }()

	target, err := p.target(ctx)
	if err == nil {
		p.out.Held = errors.Join(p.heldThere, p.mustWait(ctx, target))
		_, err = p.plan(ctx, target)
	}
	p.fail(err)
	return p.out
}

// target is what Git wants now: the newest commit, verified, fetched, rendered and checked.
func (p *pass) target(ctx context.Context) (*target, error) {
	remote, err := p.remote(ctx)
	if err != nil {
		return nil, &StageError{Stage: report.StageFetch, Err: err}
	}
	rev, err := p.newestFor(ctx, remote)
	if err != nil {
		return nil, err
	}
	p.out.Newest = rev
	if to := p.backTo(rev); !to.IsZero() {
		rev = to
	}
	if err := p.verify(ctx, remote, rev); err != nil {
		return nil, err
	}
	t, err := p.load(ctx, remote, rev)
	if err != nil {
		return nil, err
	}
	if err := p.judge(ctx, remote, t); err != nil {
		return nil, err
	}
	return t.as(rev), nil
}

// newestFor is the revision that the Mooring should have: the one that a person holds, the one that the environment that is followed has proven, or the newest in Git.
func (p *pass) newestFor(ctx context.Context, remote repos.Remote) (repos.Revision, error) {
	promotion := p.mooring.Spec.Promotion
	if held := p.pinned(); !held.IsZero() {
		p.out.GitAnswered = time.Now()
		p.notPromoting()
		return held, nil
	}
	if promotion != nil && promotion.Mode == v1alpha1.PromotionFollow {
		p.out.GitAnswered = time.Now()
		return p.follow(ctx, remote)
	}
	rev, err := p.newest(ctx, remote)
	if err != nil && p.makesBranch(err) {
		if rev = p.promote(ctx, remote, repos.Revision{}); !rev.IsZero() {
			return rev, nil
		}
	}
	if err != nil {
		return repos.Revision{}, &StageError{Stage: report.StageFetch, Err: err}
	}
	if promotion != nil {
		rev = p.promote(ctx, remote, rev)
	}
	p.out.GitAnswered = p.unit.newestAt
	return rev, nil
}

// newest asks Git which commit the ref is at. A pass that only looks whether the objects have become healthy, or that corrects drift, asks no
// more often than the interval says. With a schedule, none asks but at its slots.
func (p *pass) newest(ctx context.Context, remote repos.Remote) (repos.Revision, error) {
	defer p.took(report.StageFetch)()
	if !p.asksGit() {
		return p.unit.newest, nil
	}
	at := time.Now() // a slot that comes while Git is asked is not answered
	rev, err := p.resolve(ctx, remote)
	if err != nil {
		return repos.Revision{}, err
	}
	p.asked(at, rev)
	p.askedGit = true
	return rev, nil
}

// resolve asks Git, which may take its time.
func (p *pass) resolve(ctx context.Context, remote repos.Remote) (repos.Revision, error) {
	p.slots.give()
	defer p.slots.take()
	return p.source.Resolve(ctx, remote, ref(p.mooring))
}

// load renders a revision, or remembers what came of it, be it a set or a refusal.
func (p *pass) load(ctx context.Context, remote repos.Remote, rev repos.Revision) (*target, error) {
	key := keyOf(p.mooring, rev.Commit)
	if t := p.unit.known(key); t != nil {
		p.wishes.note(p.mooring, t)
		return t, t.unfit
	}
	t, err := p.render(ctx, remote, rev)
	t.unfit = err
	if err == nil || final(err) && ctx.Err() == nil { // a pass that ran out of time says nothing about the commit
		p.unit.latest = t
		p.wishes.note(p.mooring, t)
	}
	return t, err
}

// render turns a revision into the objects that the path stands for.
func (p *pass) render(ctx context.Context, remote repos.Remote, rev repos.Revision) (*target, error) {
	t := &target{key: keyOf(p.mooring, rev.Commit), rev: rev}
	snapshot, err := p.snapshot(ctx, remote, rev, p.mooring.Spec.Path)
	if err != nil {
		return t, err
	}
	defer p.took(report.StageRender)()
	err = p.read(ctx, report.StageRender, snapshot, func(files fs.FS) (err error) {
		t.set, err = p.renderer.Render(ctx, files, p.mooring.Spec.Path)
		return err
	})
	if err != nil {
		return t, err
	}
	t.digest, t.author, t.subject = t.set.Digest(), snapshot.Author, snapshot.Message
	return t, nil
}

// plan compares a target with the cluster.
func (p *pass) plan(ctx context.Context, t *target) (*apply.Plan, error) {
	drift := p.driftPolicy(ctx, t)
	defer p.took(report.StagePlan)()
	policy := p.policy(t.rev)
	policy.Drift = drift
	var err error
	if policy.Ignore, err = ignoreRules(p.mooring); err != nil {
		return nil, &StageError{Stage: report.StagePlan, Err: err}
	}
	plan, err := p.applier.Plan(ctx, p.owner(t.rev, p.out.Newest), t.set, policy)
	if err != nil {
		return nil, &StageError{Stage: report.StagePlan, Err: err}
	}
	p.out.Plan = plan
	return plan, nil
}

// run makes the difference. What was done is in the outcome also when it failed half-way: the next pass goes on from
// what lives in the cluster.
func (p *pass) run(ctx context.Context, t *target, plan *apply.Plan) Outcome {
	defer p.took(report.StageApply)()
	p.out.Cause, p.out.Because = p.cause(t), p.because(t)
	p.unit.overridden = overridden{t.rev.String(), p.out.Override} // for the pass that finishes it, should this one not
	before := p.unit.unfinished
	if plan.Changes() && t.digest != p.out.Digest {
		p.unit.unfinished = t.rev.String()
	}
	result, err := p.write(ctx, plan)
	if result == nil { // it was not begun
		p.unit.unfinished = before
	}
	p.out.Result = result
	p.noteDrift()
	if p.gaveWay(err) {
		return p.out
	}
	if err != nil {
		p.fail(&StageError{Stage: report.StageApply, Err: err})
		return p.out
	}
	p.applied(t)
	p.lookBeside(ctx, t)
	return p.out
}

// write runs a plan, unless somebody has suspended, deleted or changed the Mooring since the pass began: it may have waited long for its turn or for Git.
func (p *pass) write(ctx context.Context, plan *apply.Plan) (*apply.Result, error) {
	if plan.Changes() && p.overtaken(ctx) {
		return nil, &report.GaveWay{Cause: errChanged}
	}
	return p.applier.Run(ctx, plan)
}

// keep corrects drift to the revision that was applied last, since the newest one is refused for the given reason.
// It does nothing when nothing was applied yet, when what was applied can no longer be had exactly as it was, or
// when the newest revision is the applied one. It deletes nothing (policy says why).
func (p *pass) keep(ctx context.Context, refused error) Outcome {
	p.fail(refused)
	p.keeping = true
	t, err := p.lastGood(ctx)
	if err != nil {
		p.out.KeepErr = err
		return p.out
	}
	if t == nil || (p.out.Stage == report.StagePlan && p.out.Newest.Commit == t.rev.Commit) {
		return p.out
	}
	guarded := p.out.Plan // the plan that a guard refused is the one to report
	plan, err := p.plan(ctx, p.kept(t))
	if err == nil && plan.Guard != nil {
		err = fmt.Errorf("%w: %s", apply.ErrGuarded, plan.Guard.Message)
	}
	if err == nil {
		defer p.took(report.StageApply)()
		p.out.Cause = report.CauseDrift
		p.out.Result, err = p.write(ctx, plan)
		p.noteDrift()
	}
	if guarded != nil {
		p.out.Plan = guarded
	}
	p.lookBeside(ctx, t)
	p.out.KeepErr = err
	return p.out
}

// took measures a stage until the returned function is called.
func (p *pass) took(stage report.Stage) func() {
	p.stage = stage
	began := time.Now()
	return func() { p.out.Took[stage] += time.Since(began) }
}
