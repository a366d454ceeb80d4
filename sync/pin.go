package sync

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// A person holds a Mooring at a revision with spec.pin. The agent goes back to one by itself where spec.onFailure is Rollback and the newest revision was not
// healthy in time: it notes that in the status, and as long as that revision is the newest, the one that was healthy before is what a pass works for. Both are
// taken up like any revision, checked and guarded, but not held by windows or dependencies: these are for what is new.

// pinned is the revision that a person holds; the zero revision when none is held.
func (p *pass) pinned() repos.Revision {
	if p.mooring.Spec.Pin == nil {
		return repos.Revision{}
	}
	rev, err := repos.ParseRevision(p.mooring.Spec.Pin.Revision)
	if err != nil {
		return repos.Revision{} // the API server lets no such value through
	}
	return rev
}

// backTo is the revision that this pass works for instead of the newest one, because that was taken back; the zero revision when it was not.
func (p *pass) backTo(newest repos.Revision) repos.Revision {
	rb := p.out.Rollback
	if rb == nil {
		return repos.Revision{}
	}
	to, err := repos.ParseRevision(rb.To)
	if err != nil || rb.Bad != newest.String() || !p.pinned().IsZero() || p.mooring.Spec.OnFailure != v1alpha1.OnFailureRollback {
		p.out.Rollback = nil
		return repos.Revision{}
	}
	return to
}

// asEdited is a Mooring as a person wants it at this very moment, where the next pass would take a revision back. That is done at once, so a cache may not have heard yet
// of the person who looks at the same trouble, and pins a revision, suspends the Mooring or ends spec.onFailure: it would go back all the same, and there again a moment later.
func (s *Syncer) asEdited(ctx context.Context, m *v1alpha1.Mooring) *v1alpha1.Mooring {
	u := s.units.of(m)
	rb := u.rollbackOf(m)
	if at, _ := u.inForce(m); rb == nil || rb.To == at.String() {
		return m
	}
	now := &v1alpha1.Mooring{}
	if err := s.reader.Get(ctx, client.ObjectKeyFromObject(m), now); err != nil || now.UID != m.UID || now.Generation == m.Generation {
		return m // while it cannot be read, what is known counts: trouble in the mesh waits for nobody
	}
	return now
}

// goesBack is true while this pass works for a revision that was in force before.
func (p *pass) goesBack() bool {
	return !p.pinned().IsZero() || p.out.Rollback != nil
}

// failed takes the revision in force back, where the spec asks for that and there is one that was healthy before it. That happens once: what comes back is not
// taken back in its turn.
func (p *pass) failed(t *target) {
	if p.mooring.Spec.OnFailure != v1alpha1.OnFailureRollback || p.goesBack() {
		return
	}
	for _, e := range p.mooring.Status.History {
		rev, err := repos.ParseRevision(e.Revision)
		if err != nil || rev.Commit == t.rev.Commit || e.Failed != "" || e.HealthySince == nil { // it was not well either when this one took its place
			continue
		}
		p.out.Rollback = &v1alpha1.RollbackStatus{Bad: t.rev.String(), To: e.Revision, Why: report.Unhealthy(p.out.Result)}
		return
	}
}

// because is why a run changes what is in force, in somebody's words.
func (p *pass) because(t *target) string {
	switch {
	case t.rev.Commit == p.out.Applied.Commit:
		return ""
	case p.mooring.Spec.Pin != nil:
		return p.mooring.Spec.Pin.Reason
	case p.out.Rollback != nil:
		return "not healthy: " + p.out.Rollback.Why
	case p.out.Override != "":
		return p.out.Override
	case p.approval().covers(t.rev.Commit):
		return p.approval().reason()
	}
	return ""
}

// rollbackOf is what was taken back, from memory before the status, which a cache may still hold from before the last pass.
func (u *unit) rollbackOf(m *v1alpha1.Mooring) *v1alpha1.RollbackStatus {
	if u.rollbackKnown {
		return u.rollback
	}
	return m.Status.Rollback
}

// follow notes whom the Mooring follows, so that it is woken when something happens there.
func (u *unit) follow(m *v1alpha1.Mooring) {
	if m.Spec.Promotion == nil || m.Spec.Pin != nil {
		u.follows.Store(nil)
		u.soaks = time.Time{}
		return
	}
	u.follows.Store(new(followed(m)))
}
