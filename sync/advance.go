package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/forge"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// pusher knows how commits lie to each other, and moves branches.
type pusher interface {
	Relate(ctx context.Context, remote repos.Remote, from, to repos.Commit) (repos.Relation, error)
	Advance(ctx context.Context, remote repos.Remote, branch string, from, to repos.Commit) error
	SetBranch(ctx context.Context, remote repos.Remote, branch string, from, to repos.Commit) error
	// Token is what the API of the repository's forge takes, where the credentials have one.
	Token(ctx context.Context, remote repos.Remote) (string, error)
}

// notPromoting tells of a Mooring that is pinned that nothing comes, and leaves what waits as it was.
func (p *pass) notPromoting() {
	if p.mooring.Spec.Promotion == nil {
		return
	}
	r := &report.Promotion{From: followed(p.mooring).String(), Reason: v1alpha1.ReasonPinned, Message: "spec.pin holds a revision here: nothing is promoted until mooring unpin"}
	if s := p.mooring.Status.Promotion; s != nil {
		r.Candidates, r.PullRequest = s.Candidates, s.PullRequest
	}
	p.out.Promotion = r
}

// promote brings a proven commit to this environment's branch, which is at a revision, and gives the one that the branch is at then. What goes wrong with it is told in
// the condition Promoted. It is no reason not to work for what the branch has.
func (p *pass) promote(ctx context.Context, remote repos.Remote, at repos.Revision) repos.Revision {
	if p.previewing {
		return at
	}
	way, err := p.lookThere(ctx, at.Commit)
	if err == nil {
		err = p.withoutContained(ctx, remote, way, at.Commit)
	}
	if err != nil {
		p.notPromoted(v1alpha1.ReasonPromotionFailed, err)
		return at
	}
	p.choose(ctx, way)
	p.tell(way)
	if way.chosen == nil {
		p.merged(way)
		return at
	}
	c := way.chosen
	way.chosen = nil // it has still a way to go
	if err := p.verify(ctx, remote, repos.Revision{Ref: p.branch(), Commit: c.rev.Commit}); err != nil {
		c.state, c.waits = v1alpha1.ReasonPromotionFailed, "is proven there, and its signature is not accepted here"
		p.tell(way)
		p.notPromoted(c.state, err)
		return at
	}
	if p.mooring.Spec.Promotion.Mode == v1alpha1.PromotionPullRequest {
		p.propose(ctx, way, c, at)
		return at
	}
	return p.advance(ctx, way, c, at)
}

// notPromoted says what went wrong, beside what is known of the commits.
func (p *pass) notPromoted(reason string, err error) {
	r := p.out.Promotion
	if r == nil {
		r = &report.Promotion{From: followed(p.mooring).String()}
		if s := p.mooring.Status.Promotion; s != nil {
			r.Candidates, r.PullRequest = s.Candidates, s.PullRequest
		}
		p.out.Promotion = r
	}
	r.Reason, r.Message = reason, repos.Steady(report.Words(err))
}

// withoutContained takes those commits out that the branch has already, under another one. Where the other environment's history has the branch's commit, it says that by
// itself, and else Git knows: of two commits that never changes, so that it is asked once.
func (p *pass) withoutContained(ctx context.Context, remote repos.Remote, way *promoting, at repos.Commit) error {
	if at == "" || way.has(at) {
		return nil
	}
	for i, c := range way.all {
		if c.state == v1alpha1.CandidateFailed || c.state == v1alpha1.CandidateSkipped {
			continue
		}
		relation, err := p.relate(ctx, remote, at, c.rev.Commit)
		if err != nil {
			return fmt.Errorf("find out whether branch %q has %s: %w", p.branch(), c.rev, err)
		}
		if relation == repos.Behind || relation == repos.Same {
			way.all = way.all[:i]
			return nil
		}
	}
	return nil
}

// merged says of a pull request that is no longer waited for how it ended: what it proposed is in the branch. One whose commit still waits is told of as it was.
func (p *pass) merged(way *promoting) {
	s := p.mooring.Status.Promotion
	if s == nil || s.PullRequest == nil || p.mooring.Spec.Promotion.Mode != v1alpha1.PromotionPullRequest {
		return
	}
	pr := *s.PullRequest
	waits := slices.ContainsFunc(way.all, func(c candidate) bool { return c.rev.String() == pr.Revision })
	if !waits && pr.State == string(forge.Open) && way.there != nil {
		pr.State = string(forge.Merged)
	}
	p.out.Promotion.PullRequest = &pr
}

func (p *pass) branch() string { return p.mooring.Spec.Source.Ref.Branch }

// advance moves the branch forward to a commit. The agent may be killed at any instant: the next pass finds the branch where it is.
func (p *pass) advance(ctx context.Context, way *promoting, c *candidate, at repos.Revision) repos.Revision {
	remote, err := p.writable(ctx)
	if err == nil {
		err = p.push(ctx, remote, at.Commit, c.rev.Commit)
	}
	if err == nil {
		rev := repos.Revision{Ref: p.branch(), Commit: c.rev.Commit}
		p.asked(time.Now(), rev)
		way.chosen = c
		p.tell(way)
		p.out.Promotion.Promoted = c.rev
		return rev
	}
	c.state, c.waits = v1alpha1.ReasonPromotionFailed, "is proven there, and could not be pushed"
	switch repos.KindOf(err) {
	case repos.KindDiverged:
		c.state, c.waits = v1alpha1.ReasonDiverged, fmt.Sprintf("is proven there, but branch %q has commits that it does not have", p.branch())
		err = &mendable{error: fmt.Errorf("%s %s", c.rev, c.waits), mend: fmt.Sprintf(
			"nothing is ever pushed by force: merge %q into the branch that Mooring %s follows, or take the commits out of %[1]q by hand", p.branch(), way.from,
		)}
	case repos.KindMoved: // somebody pushed in this very moment: the next pass sees where it is
		p.unit.newestAt = time.Time{}
		p.unit.soaks = time.Now().Add(time.Second)
	}
	p.tell(way)
	p.notPromoted(c.state, err)
	return at
}

// push may take its time.
func (p *pass) push(ctx context.Context, remote repos.Remote, from, to repos.Commit) error {
	p.slots.give()
	defer p.slots.take()
	return p.pusher.Advance(ctx, remote, p.branch(), from, to)
}

// writable is the repository with the credential that may write.
func (p *pass) writable(ctx context.Context) (repos.Remote, error) {
	ref := p.mooring.Spec.Promotion.SecretRef
	if ref == nil {
		return repos.Remote{}, errors.New("spec.promotion.secretRef is missing")
	}
	return p.remoteWith(ctx, ref.Name, "spec.promotion.secretRef")
}

// makesBranch says whether an error of looking for the branch is no more than that nothing was promoted yet.
func (p *pass) makesBranch(err error) bool {
	promotion := p.mooring.Spec.Promotion
	return promotion != nil && promotion.Mode == v1alpha1.PromotionFastForward && errors.Is(err, repos.ErrRefNotFound) && p.here().IsZero() && !p.previewing
}
