package deletes_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
)

// mooring is one of the two, as package sync keeps it: with a book of kinds, and the commit that is in force. Both follow one branch of
// one repository, each a folder of it.
type mooring struct {
	place *place
	index int
	id    string

	mu      sync.Mutex
	book    []schema.GroupKind // what the parent says, which outlives an agent
	inForce int                // the commit that was applied last; -1 when there was none
	had     int                // the first commit with objects that was in force; -1 when there was none
	claims  []render.ID        // what plans were refused for since the last good one, because the other has it; it outlives an agent, too
}

// unit as of these commits.
func (m *mooring) unit(at ...int) apply.Unit {
	m.mu.Lock()
	defer m.mu.Unlock()
	return apply.Unit{
		ID: m.id, Name: m.place.ns + "/" + names[m.index], Kinds: slices.Clone(m.book),
		Record: func(_ context.Context, kinds []schema.GroupKind) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.book = slices.Clone(kinds)
			return nil
		},
		Moorings: neighbours{m, at},
	}
}

// pass is what an agent does: it makes the newest commit so. When that is refused, the one that was applied last is kept in force. The error says what
// a user would be told.
func (m *mooring) pass(ctx context.Context, a *apply.Applier) error {
	newest := len(m.place.commits) - 1
	set, refused := m.set(newest)
	if refused == nil {
		refused = m.make(ctx, a, set, m.unit(newest), apply.Policy{Prune: true})
	}
	m.claim(refused)
	if refused == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.inForce = newest
		if m.had < 0 && m.place.commits[newest].folders[m.index].good() {
			m.had = newest
		}
		return nil
	}
	var stopped *stopped
	if m.inForce < 0 || m.inForce == newest || errors.As(refused, &stopped) {
		return refused
	}
	return errors.Join(refused, m.keep(ctx, a, newest, refused))
}

// claim notes what plans were refused for, until one is good.
func (m *mooring) claim(refused error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if refused == nil {
		m.claims = nil
	}
	for _, e := range apply.ObjectErrors(refused) {
		if _, foreign := errors.AsType[*apply.ForeignError](e.Err); foreign {
			m.claims = append(m.claims, e.ID)
		}
	}
}

func (m *mooring) claimed(id render.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Contains(m.claims, id)
}

// keep what was applied last in force. Where the newest commit is refused for nothing but what the other has, what it gives away is not kept, and offered.
func (m *mooring) keep(ctx context.Context, a *apply.Applier, newest int, refused error) error {
	set, err := m.set(m.inForce)
	if err != nil {
		return err
	}
	if wanted, err := m.set(newest); err == nil && foreignAlone(refused) {
		set.Objects = slices.DeleteFunc(set.Objects, func(o render.Object) bool { return !has(wanted, o.ID()) })
	}
	return m.make(ctx, a, set, m.unit(m.inForce, newest), apply.Policy{})
}

func foreignAlone(refused error) bool {
	faults := apply.ObjectErrors(refused)
	return len(faults) > 0 && !slices.ContainsFunc(faults, func(e *apply.ObjectError) bool {
		_, foreign := errors.AsType[*apply.ForeignError](e.Err)
		return !foreign
	})
}

func has(set *render.Set, id render.ID) bool {
	return slices.ContainsFunc(set.Objects, func(o render.Object) bool { return o.ID() == id })
}

// stopped is a run that failed half-way: it is not made good by another commit.
type stopped struct{ error }

func (m *mooring) set(commit int) (*render.Set, error) {
	set, err := m.place.commits[commit].folders[m.index].set(m.place.ns)
	if err != nil {
		return nil, fmt.Errorf("commit %d of %s: %w", commit, names[m.index], err)
	}
	return set, nil
}

// make a set so.
func (m *mooring) make(ctx context.Context, a *apply.Applier, set *render.Set, u apply.Unit, policy apply.Policy) error {
	plan, err := a.Plan(ctx, u, set, policy)
	if err != nil {
		return err
	}
	if plan.Guard != nil {
		return fmt.Errorf("%w: %s", apply.ErrGuarded, plan.Guard.Message)
	}
	if _, err := a.Run(ctx, plan); err != nil {
		return &stopped{err}
	}
	return nil
}

// neighbours answer as package sync does for Moorings of one repository: the other's folder at the commit that is planned for, and at
// the newest. What a folder stands for that does not render, or that is empty and was not, nobody knows.
type neighbours struct {
	*mooring
	at []int
}

func (n neighbours) Heirs(_ context.Context, unwanted []render.ID) (map[render.ID]apply.Heir, error) {
	other := n.place.moorings[1-n.index]
	heirs := make(map[render.ID]apply.Heir)
	mine, _ := n.set(len(n.place.commits) - 1) // nil when it does not render
	unwanted = slices.DeleteFunc(slices.Clone(unwanted), func(id render.ID) bool { return mine != nil && has(mine, id) })
	for _, commit := range slices.Compact(slices.Clone(n.at)) {
		set, err := other.set(commit)
		if err == nil && len(set.Objects) == 0 && other.hadObjects() {
			err = errors.New("its folder is empty, and was not")
		}
		for _, id := range unwanted {
			heir := apply.Heir{ID: other.id, Name: n.place.ns + "/" + names[other.index]}
			switch {
			case err != nil && heirs[id].ID == "":
				heir.Unsure = err.Error()
				heirs[id] = heir
			case err == nil && has(set, id):
				heirs[id] = heir
			}
		}
	}
	for _, id := range unwanted {
		if heirs[id].ID == "" && other.claimed(id) {
			heirs[id] = apply.Heir{ID: other.id, Name: n.place.ns + "/" + names[other.index], Unsure: "it claims it"}
		}
	}
	return heirs, nil
}

// Undecided is the other as long as its newest commit is not in force.
func (n neighbours) Undecided(context.Context, string) apply.Heir {
	other := n.place.moorings[1-n.index]
	heir := apply.Heir{ID: other.id, Name: n.place.ns + "/" + names[other.index]}
	if !other.isInForce(len(n.place.commits) - 1) {
		heir.Unsure = "it was offered to it"
	}
	return heir
}

func (m *mooring) isInForce(commit int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.inForce == commit
}

// hadObjects says whether a commit with objects was ever in force.
func (m *mooring) hadObjects() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.had >= 0
}

func (n neighbours) Name(_ context.Context, id string) string {
	for _, m := range n.place.moorings {
		if m.id == id {
			return n.place.ns + "/" + names[m.index]
		}
	}
	return ""
}

// wire can be cut: from one write on no request passes, and no answer to that write comes back.
type wire struct {
	mu   sync.Mutex
	left int // writes that still pass; -1 for all
}

var errCut = errors.New("the wire is cut")

func (w *wire) config(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			through, answered := w.next(r)
			if !through {
				return nil, errCut
			}
			res, err := next.RoundTrip(r)
			if err == nil && !answered {
				_ = res.Body.Close()
				return nil, errCut
			}
			return res, err
		})
	})
	return cfg
}

func (w *wire) cut(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = n
}

func (w *wire) next(r *http.Request) (through, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	write := r.Method != http.MethodGet && !r.URL.Query().Has("dryRun")
	switch {
	case w.left < 0:
		return true, true
	case w.left == 0:
		return false, false
	case write:
		w.left--
		return true, w.left > 0
	}
	return true, true
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
