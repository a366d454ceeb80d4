package repos

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// Relation is how a commit lies to another one in the graph of commits.
type Relation string

// The relations of a commit to another one.
const (
	// Same is one commit.
	Same Relation = "Same"
	// Ahead is a commit that has the other one among its ancestors.
	Ahead Relation = "Ahead"
	// Behind is a commit that is an ancestor of the other one.
	Behind Relation = "Behind"
	// Diverged are two commits of which each has what the other lacks; they may have nothing in common.
	Diverged Relation = "Diverged"
)

// Relate tells how to lies to from: Ahead when to is a descendant of from. Nothing is fetched into the store for it:
// the server is asked for the commits that the one has and the other has not. A commit that no branch or tag of the
// server holds any more, as after a branch was rewritten, is an error of KindCommitNotFound that names it.
func (s *Store) Relate(ctx context.Context, r Remote, from, to Commit) (Relation, error) {
	const op = "relate"
	m, err := s.remote(r)
	for _, c := range []Commit{from, to} {
		if err == nil && !c.valid() {
			err = failf(KindRef, "ask Resolve for the commit first", "%q is not a commit id", clean(string(c)))
		}
	}
	if err != nil {
		return "", locate(op, redact(r.URL), err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	relation, err := m.relate(ctx, from, to)
	return relation, within(ctx, op, m.url, s.opts.Timeout, err)
}

// relate answers from memory or asks; callers with the same question share the answer.
func (m *remote) relate(ctx context.Context, from, to Commit) (Relation, error) {
	if from == to {
		return Same, nil
	}
	key := [2]Commit{from, to}
	if relation, ok := m.related.get(key); ok {
		return relation, nil
	}
	return m.relating.do(ctx, key, m.opts.Timeout, func(ctx context.Context, _ func()) (Relation, error) {
		relation, err := m.askRelation(ctx, from, to)
		if err == nil {
			m.related.put(key, relation)
		}
		return relation, m.explain(ctx, err)
	})
}

// askRelation asks twice at most. What the server sends first are the commits that to has and from has not. If from
// is an ancestor of to, a way leads down to it from to, and the last commit before it on that way is no ancestor of
// from: so it is among those sent, with from as its parent. All other answers follow from the same question the other
// way round, except when nothing at all was sent: then to is within from.
func (m *remote) askRelation(ctx context.Context, from, to Commit) (Relation, error) {
	up, err := m.newSince(ctx, from, to)
	switch {
	case err != nil:
		return "", err
	case up.reached:
		return Ahead, nil
	case up.empty:
		return Behind, nil
	}
	down, err := m.newSince(ctx, to, from)
	switch {
	case err != nil:
		return "", err
	case down.reached:
		return Behind, nil
	case up.unknown:
		return "", lost(to)
	case down.unknown:
		return "", lost(from)
	}
	return Diverged, nil
}

func lost(c Commit) error {
	return failf(KindCommitNotFound, "its branch was rewritten or deleted; begin with a commit that a branch has now",
		"commit %s is not in the history of any branch or tag of the server", c)
}

// span is what lies between an old commit and a young one.
type span struct {
	reached bool // the old one is an ancestor of the young one
	empty   bool // the young one is the old one's ancestor, or the same
	unknown bool // the young one was not found; it may still be an ancestor of the old one
}

// newSince looks at the commits that young has and old has not.
func (m *remote) newSince(ctx context.Context, old, young Commit) (span, error) {
	h, err := m.askHistory(ctx, old, func(adv *packp.AdvRefs) ([]plumbing.Hash, error) {
		return []plumbing.Hash{tagOf(adv, young.hash())}, nil
	})
	if err == nil {
		return span{reached: h.reaches(young.hash(), old.hash()), empty: len(h) == 0}, nil
	}
	if !errors.Is(err, errNotOurs) {
		return span{}, err
	}
	// The server hands out only what a ref points at. Then young is among what all refs have and old has not, unless it
	// is an ancestor of old.
	if h, err = m.askHistory(ctx, old, tips); err != nil {
		return span{}, err
	}
	_, known := h[young.hash()]
	return span{reached: h.reaches(young.hash(), old.hash()), unknown: !known}, nil
}

// maxTips bounds the refs that one request asks for.
const maxTips = 10_000

// tips are what branches and tags point at.
func tips(adv *packp.AdvRefs) ([]plumbing.Hash, error) {
	var all []plumbing.Hash
	for _, prefix := range []string{"refs/heads/", "refs/tags/"} {
		for name, h := range adv.References {
			if strings.HasPrefix(name, prefix) {
				all = append(all, h)
			}
		}
	}
	slices.SortFunc(all, compareHashes)
	all = slices.Compact(all)
	if len(all) > maxTips {
		return nil, failf(KindLimit, "set uploadpack.allowReachableSHA1InWant on the server",
			"the server gives no commit by its id, and has more than %d branches and tags", maxTips)
	}
	return all, nil
}

// askHistory asks for commits that the server has beyond old. Trees and files are left out where the server can do
// that; servers may know or allow some filters only.
func (m *remote) askHistory(ctx context.Context, old Commit, wants func(*packp.AdvRefs) ([]plumbing.Hash, error)) (history, error) {
	var err error
	for _, filter := range []packp.Filter{packp.FilterTreeDepth(0), packp.FilterBlobNone(), ""} {
		var h history
		h, err = m.askHistoryOnce(ctx, old, wants, filter)
		if KindOf(err) != KindProtocol || !strings.Contains(err.Error(), "filter") {
			return h, err
		}
	}
	return nil, err
}

func (m *remote) askHistoryOnce(ctx context.Context, old Commit, wants func(*packp.AdvRefs) ([]plumbing.Hash, error), filter packp.Filter) (history, error) {
	answer, err := m.ask(ctx, func(adv *packp.AdvRefs) (want, error) {
		objects, err := wants(adv)
		if err == nil && len(objects) == 0 {
			err = errNothing
		}
		return want{objects: objects, have: []plumbing.Hash{old.hash()}, filter: filter, standing: true}, err
	})
	if errors.Is(err, errNothing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer answer.close()
	h, err := readHistory(ctx, answer, m.opts.Limits)
	if err == nil {
		answer.drain()
	}
	return h, err
}

// relations remembers the last answers, which never change.
type relations struct {
	mu   sync.Mutex
	last []answered
}

type answered struct {
	key      [2]Commit
	relation Relation
}

// keepRelations is enough for some hundred environments of one repository, each with a few commits on their way.
const keepRelations = 1000

func (r *relations) get(key [2]Commit) (Relation, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.last {
		if a.key == key {
			return a.relation, true
		}
	}
	return "", false
}

func (r *relations) put(key [2]Commit, relation Relation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == keepRelations {
		r.last = slices.Delete(r.last, 0, 1)
	}
	r.last = append(r.last, answered{key, relation})
}
