package sync

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// targetKey is what a render depends on: a commit's id stands for its whole content, whatever the remote.
type targetKey struct {
	commit repos.Commit
	path   string
	// modules is true where submodules are read too. They change nothing but whether the path renders.
	modules bool
}

// keyOf a commit, for a Mooring.
func keyOf(m *v1alpha1.Mooring, commit repos.Commit) targetKey {
	return targetKey{commit: commit, path: m.Spec.Path, modules: m.Spec.Source.RecurseSubmodules}
}

// target is what came of rendering a commit, and of checking it.
type target struct {
	key    targetKey
	rev    repos.Revision
	set    *render.Set
	digest string
	// author and subject of the commit; of the latter the first line counts.
	author, subject string
	// unfit is why the commit does not render; nil when it does.
	unfit error
	// verdict of the check that was made last; nil when none was.
	verdict *verdict
}

// as is the target under another name of the same commit: a ref may have been renamed.
func (t *target) as(rev repos.Revision) *target {
	same := *t
	same.rev = rev
	return &same
}

// unit is the memory of one Mooring between passes. Only one pass at a time works for a unit, so the fields need no lock.
type unit struct {
	uid types.UID
	// latest is the newest commit that was rendered, inforce the one that is applied. Often they are the same.
	latest, inforce *target
	// newest is what Git answered last, for which generation and request, and when.
	newest     repos.Revision
	newestAt   time.Time
	newestFor  int64
	newestAsk  string
	newestOf   string // the source
	answered   answered
	timing     timing
	overridden overridden
	waiting    time.Time
	trouble    trouble
	kinds      []schema.GroupKind
	kindsKnown bool
	// claims are the value of the ClaimsAnnotation, once it was read or written.
	claims      string
	claimsKnown bool
	// woken is true when the next pass is asked for because an object moved.
	woken atomic.Bool
	// keeps is true when an object is kept because another Mooring has not taken it, or has not decided.
	keeps atomic.Bool
	// awaits are the Moorings that must be ready first, and were not at the last pass.
	awaits atomic.Pointer[[]types.NamespacedName]
	// readiness is what spec.dependsOn asks of them, compiled.
	readiness readyExpressions
	// follows is the Mooring whose commits this one promotes; nil for none.
	follows atomic.Pointer[types.NamespacedName]
	// sets that the unit holds between passes.
	sets atomic.Pointer[[]*render.Set]
	// soaks is when a commit will be proven there, if nothing happens; zero for never.
	soaks         time.Time
	promotionExpr compiledExpr
	proposal      proposal
	// rollback is what was taken back, once that is known better than the status tells it.
	rollback      *v1alpha1.RollbackStatus
	rollbackKnown bool
	// unfinished is the revision whose apply was begun and broken off since inforce was applied; empty for none.
	unfinished string
	// drift that is known and not put right, and the fights that go on.
	drift  known
	fights fights
	// strays that bear on what is in force.
	strays strays
	// verdicts on signatures, as long as the keys are the same.
	verdicts verdicts
	// checks of health, compiled from the expressions that they are the key of.
	checks healthChecks
}

// note keeps what others ask of a unit between passes. Nothing of it may point into the outcome, which holds the whole plan.
func (u *unit) note(out Outcome) {
	u.keeps.Store(out.Plan != nil && out.Plan.Waits())
	u.awaits.Store(new(slices.Clone(out.Awaits)))
	var sets []*render.Set
	for _, t := range []*target{u.latest, u.inforce} {
		if t != nil {
			sets = append(sets, t.set)
		}
	}
	u.sets.Store(&sets)
}

// units of an agent.
type units struct {
	mu    sync.Mutex
	units map[types.NamespacedName]*unit
}

// of gives the memory of a Mooring; one that was deleted and made anew begins afresh.
func (us *units) of(m *v1alpha1.Mooring) *unit {
	us.mu.Lock()
	defer us.mu.Unlock()
	if us.units == nil {
		us.units = map[types.NamespacedName]*unit{}
	}
	name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
	u := us.units[name]
	if u == nil || u.uid != m.UID {
		u = &unit{uid: m.UID, unfinished: m.Status.UnfinishedRevision, drift: knownOf(m.Status), fights: fightsOf(m.Status)}
		us.units[name] = u
	}
	return u
}

func (us *units) forget(name types.NamespacedName) {
	us.mu.Lock()
	defer us.mu.Unlock()
	delete(us.units, name)
}

// rest lets go of what no Mooring works with at this moment; see [render.Set.Rest].
func (us *units) rest(idle bool) (letGo int64) {
	us.mu.Lock()
	var sets []*render.Set
	for _, u := range us.units {
		if held := u.sets.Load(); held != nil {
			sets = append(sets, *held...)
		}
	}
	us.mu.Unlock()
	for _, s := range sets {
		letGo += s.Rest(idle)
	}
	return letGo
}

// keepers are the Moorings of this agent that keep something for another one.
func (us *units) keepers() []types.NamespacedName {
	us.mu.Lock()
	defer us.mu.Unlock()
	var names []types.NamespacedName
	for name, u := range us.units {
		if u.keeps.Load() {
			names = append(names, name)
		}
	}
	return names
}

// dependents are the Moorings of this agent that wait for another one to be ready.
func (us *units) dependents(on types.NamespacedName) []types.NamespacedName {
	us.mu.Lock()
	defer us.mu.Unlock()
	var names []types.NamespacedName
	for name, u := range us.units {
		if awaits := u.awaits.Load(); awaits != nil && slices.Contains(*awaits, on) {
			names = append(names, name)
		}
	}
	return names
}

// followers are the Moorings of this agent that promote the commits of another one.
func (us *units) followers(of types.NamespacedName) []types.NamespacedName {
	us.mu.Lock()
	defer us.mu.Unlock()
	var names []types.NamespacedName
	for name, u := range us.units {
		if follows := u.follows.Load(); follows != nil && *follows == of {
			names = append(names, name)
		}
	}
	return names
}

// wake says of a unit that is worked for that an object of it moved.
func (us *units) wake(name types.NamespacedName) {
	us.mu.Lock()
	defer us.mu.Unlock()
	if u := us.units[name]; u != nil {
		u.woken.Store(true)
	}
}

func (u *unit) known(key targetKey) *target {
	for _, t := range []*target{u.latest, u.inforce} {
		if t != nil && t.key == key {
			return t
		}
	}
	return nil
}

// good is the applied target, when it is still in memory.
func (u *unit) good(rev repos.Revision, digest string) *target {
	if t := u.inforce; t != nil && t.rev.Commit == rev.Commit && t.digest == digest {
		return t
	}
	return nil
}

// inForce is the revision that was applied last, and the digest of its objects. Memory goes before the status, which a
// cache may still hold from before the last pass.
func (u *unit) inForce(m *v1alpha1.Mooring) (repos.Revision, string) {
	if u.inforce != nil {
		return u.inforce.rev, u.inforce.digest
	}
	if len(m.Status.History) == 0 {
		return repos.Revision{}, ""
	}
	rev, err := repos.ParseRevision(m.Status.History[0].Revision)
	if err != nil {
		return repos.Revision{}, "" // not written by an agent; as good as nothing
	}
	return rev, m.Status.History[0].Digest
}

func (u *unit) asked(m *v1alpha1.Mooring, rev repos.Revision) {
	u.newest, u.newestAt = rev, time.Now()
	u.newestFor, u.newestAsk, u.newestOf = m.Generation, m.Annotations[v1alpha1.ReconcileAnnotation], sourceOf(m)
}

// fresh is true for a pass that is not made for Git's sake, while the last answer from Git is younger than the interval.
func (u *unit) fresh(m *v1alpha1.Mooring, woken bool) bool {
	return (woken || !u.waiting.IsZero()) && !u.newest.IsZero() &&
		u.newestFor == m.Generation && u.newestAsk == m.Annotations[v1alpha1.ReconcileAnnotation] &&
		time.Since(u.newestAt) < m.Spec.Interval.Duration
}

// waits says since when the unit waits for the target to become healthy: since it was applied, also after a restart.
func (u *unit) waits(m *v1alpha1.Mooring, t *target) time.Time {
	if u.waiting.IsZero() {
		u.waiting = time.Now()
		if h := m.Status.History; len(h) > 0 && h[0].Revision == t.rev.String() && h[0].Digest == t.digest {
			u.waiting = h[0].AppliedAt.Time
		}
	}
	return u.waiting
}

func (u *unit) healthy() { u.waiting = time.Time{} }
