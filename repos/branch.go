package repos

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// Advance moves a branch forward on the server, from one commit to a descendant of it. It is never forced: a commit
// that is not ahead is a DivergedError, a branch that is not at from an error of KindMoved, also when somebody moves it
// at the very same time; nothing is changed then. With an empty from the branch is made, and must not exist. A branch
// that is at to already is fine.
func (s *Store) Advance(ctx context.Context, r Remote, branch string, from, to Commit) error {
	return s.move(ctx, "advance", r, move{branch: branch, from: from, to: to, forward: true})
}

// SetBranch moves a branch that belongs to us alone from one commit to any other. It is Advance without the question
// how the two lie to each other; whoever else moved the branch meanwhile still makes it an error of KindMoved. With an
// empty to the branch is deleted.
func (s *Store) SetBranch(ctx context.Context, r Remote, branch string, from, to Commit) error {
	return s.move(ctx, "set branch", r, move{branch: branch, from: from, to: to})
}

// DivergedError says why a branch cannot move forward. It comes wrapped in an Error of KindDiverged.
type DivergedError struct {
	Branch string
	// From is where the branch is, To where it was to go.
	From, To Commit
	// Relation of To to From: Behind or Diverged.
	Relation Relation
}

// Error says what lies where.
func (e *DivergedError) Error() string {
	if e.Relation == Behind {
		return fmt.Sprintf("branch %q at %s is already past %s, which is one of its ancestors", e.Branch, e.From, e.To)
	}
	return fmt.Sprintf("branch %q at %s has commits that %s lacks, and would lose them", e.Branch, e.From, e.To)
}

func (e *DivergedError) hint() string {
	if e.Relation == Behind {
		return "there is nothing to move; to take changes back, commit their reverse to the source"
	}
	return "merge this branch into the source first, or take its own commits off it"
}

// move is one change of a branch.
type move struct {
	branch   string
	from, to Commit
	forward  bool // only to a descendant
}

// String says what is to be done: move branch "env/prod" to 4f0c….
func (v move) String() string {
	switch {
	case v.from == "":
		return fmt.Sprintf("create branch %q at %s", v.branch, v.to)
	case v.to == "":
		return fmt.Sprintf("delete branch %q", v.branch)
	}
	return fmt.Sprintf("move branch %q to %s", v.branch, v.to)
}

func (v move) validate() error {
	if err := (Ref{Branch: v.branch}).Validate(); err != nil {
		return err
	}
	for _, c := range []Commit{v.from, v.to} {
		if c != "" && !c.valid() {
			return failf(KindRef, "ask Resolve for the commit first", "%q is not a commit id", clean(string(c)))
		}
	}
	if v.to == "" && (v.forward || v.from == "") {
		return failf(KindRef, "say which commit the branch goes to", "branch %q is given no commit to go to", v.branch)
	}
	return nil
}

func (s *Store) move(ctx context.Context, op string, r Remote, v move) error {
	m, err := s.remote(r)
	if err == nil {
		err = v.validate()
	}
	if err != nil {
		return locate(op, redact(r.URL), err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	return within(ctx, op, m.url, s.opts.Timeout, m.move(ctx, v))
}

// move looks, asks whether the way is forward, and pushes.
func (m *remote) move(ctx context.Context, v move) error {
	adv, err := m.list(ctx)
	if err != nil {
		return err
	}
	if done, err := v.compare(adv); done || err != nil {
		return err
	}
	if v.forward && v.from != "" {
		relation, err := m.relate(ctx, v.from, v.to)
		if err != nil {
			return err
		}
		if relation != Ahead {
			e := &DivergedError{Branch: v.branch, From: v.from, To: v.to, Relation: relation}
			return fail(KindDiverged, e, e.hint())
		}
	}
	err = m.push(ctx, v)
	if err == nil {
		return nil
	}
	if late(ctx, err) {
		return fail(KindTimeout, fmt.Errorf("no complete answer to the push within %s: %w", m.opts.Timeout, context.DeadlineExceeded), unsureHint)
	}
	// How servers report that somebody else was quicker differs, and an answer can be lost. Where the branch is now does
	// not lie.
	adv, lookErr := m.list(ctx)
	if lookErr != nil {
		return err
	}
	done, moved := v.compare(adv)
	switch {
	case done:
		return nil
	case moved != nil:
		return moved
	}
	return err
}

// compare tells whether the branch is where it shall go, or not where it was said to be.
func (v move) compare(adv *packp.AdvRefs) (done bool, err error) {
	hash, exists := adv.References[Ref{Branch: v.branch}.full()]
	at := Commit("")
	if exists {
		at = Commit(hash.String())
	}
	switch {
	case at == v.to:
		return true, nil
	case at == v.from:
		return false, nil
	case v.from == "":
		return false, failf(KindMoved, "nothing was changed; the next pass looks again", "branch %q exists already, at %s", v.branch, at)
	case !exists:
		missing := Ref{Branch: v.branch}.missing(adv)
		return false, fail(KindRefNotFound, missing, "nothing was changed; create the branch, or correct its name")
	}
	return false, failf(KindMoved, "nothing was changed; the next pass looks again", "branch %s is at %s, no longer at %s", strconv.Quote(v.branch), at, v.from)
}
