package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// environment of a chain.
type environment struct {
	key types.NamespacedName
	// m is nil for one that is followed and cannot be seen.
	m *v1alpha1.Mooring
	// from is the one that is followed; nil for the first.
	from *environment
}

// chain is environments in the order of promotion: each comes after the one that it follows. Where two follow one, what follows the first of them comes before the second.
type chain []*environment

// followedBy is the Mooring that another one follows.
func followedBy(m *v1alpha1.Mooring) types.NamespacedName {
	from := m.Spec.Promotion.From
	return types.NamespacedName{Namespace: cmp.Or(from.Namespace, m.Namespace), Name: from.Name}
}

// chainsOf all Moorings, those in which one of the picked is.
func chainsOf(all []v1alpha1.Mooring, picked map[types.NamespacedName]bool) []chain {
	known, followers := map[types.NamespacedName]*environment{}, map[types.NamespacedName][]*environment{}
	var order []*environment
	for i := range all {
		e := &environment{key: client.ObjectKeyFromObject(&all[i]), m: &all[i]}
		known[e.key] = e
		order = append(order, e)
	}
	for _, e := range slices.Clone(order) {
		if e.m.Spec.Promotion == nil {
			continue
		}
		key := followedBy(e.m)
		if known[key] == nil {
			known[key] = &environment{key: key}
			order = append(order, known[key])
		}
		e.from = known[key]
		followers[key] = append(followers[key], e)
	}
	var chains []chain
	seen := map[*environment]bool{}
	var walk func(c chain, e *environment) chain
	walk = func(c chain, e *environment) chain {
		if seen[e] {
			return c
		}
		seen[e] = true
		c = append(c, e)
		for _, next := range followers[e.key] {
			c = walk(c, next)
		}
		return c
	}
	start := func(e *environment) {
		if c := walk(nil, e); len(c) > 1 && slices.ContainsFunc(c, func(e *environment) bool { return picked[e.key] }) {
			chains = append(chains, c)
		}
	}
	for _, e := range order {
		if e.from == nil {
			start(e)
		}
	}
	for _, e := range order { // what is left follows itself by way of others
		start(e)
	}
	return chains
}

// commit is a row of a chain's table.
type commit struct {
	id, subject string
	// first is when it came into force anywhere, or about then.
	first time.Time
}

// commits of a chain, newest first, down to the oldest that is in force anywhere.
func (c chain) commits() []commit {
	found := map[string]*commit{}
	note := func(revision, subject string, at time.Time) {
		id := commitOf(revision)
		if id == "" {
			return
		}
		if found[id] == nil {
			found[id] = &commit{id: id}
		}
		known := found[id]
		known.subject = cmp.Or(known.subject, subject)
		if !at.IsZero() && (known.first.IsZero() || at.Before(known.first)) {
			known.first = at
		}
	}
	for _, e := range c {
		if e.m == nil {
			continue
		}
		for _, h := range e.m.Status.History {
			note(h.Revision, h.Subject, h.AppliedAt.Time)
		}
		note(e.m.Status.LastAppliedRevision, "", time.Time{})
	}
	for _, e := range c {
		if e.m == nil {
			continue
		}
		var newer time.Time
		for _, candidate := range e.candidates() { // one that no history tells of is a little older than the one above it
			at := time.Time{}
			if known := found[commitOf(candidate.Revision)]; (known == nil || known.first.IsZero()) && !newer.IsZero() {
				at = newer.Add(-1)
			}
			note(candidate.Revision, candidate.Subject, at)
			newer = found[commitOf(candidate.Revision)].first
		}
		if e.attempts() {
			note(e.m.Status.LastAttemptedRevision, "", time.Time{})
		}
	}
	all := make([]commit, 0, len(found))
	for _, known := range found {
		all = append(all, *known)
	}
	slices.SortFunc(all, func(x, y commit) int {
		switch { // what has no time was not in force anywhere yet: it is new
		case x.first.IsZero() != y.first.IsZero() && x.first.IsZero():
			return -1
		case x.first.IsZero() != y.first.IsZero():
			return 1
		}
		return cmp.Or(y.first.Compare(x.first), cmp.Compare(x.id, y.id))
	})
	return all[:c.oldestInForce(all)]
}

// oldestInForce is how many commits are shown: what is older than all that is in force is for mooring history.
func (c chain) oldestInForce(all []commit) int {
	n := 0
	for _, e := range c {
		if e.m == nil {
			continue
		}
		at := slices.IndexFunc(all, func(known commit) bool { return known.id == commitOf(e.m.Status.LastAppliedRevision) })
		if at < 0 {
			return len(all)
		}
		n = max(n, at+1)
	}
	return n
}

// attempts says whether the environment tries a commit that it does not have, and that no promotion accounts for.
func (e *environment) attempts() bool {
	s := e.m.Status
	return e.m.Spec.Promotion == nil && e.m.Spec.Pin == nil && !sameCommit(s.LastAttemptedRevision, s.LastAppliedRevision)
}

// candidates on their way. Those of a status that is older than the spec do not count.
func (e *environment) candidates() []v1alpha1.PromotionCandidate {
	if e.m == nil || e.from == nil {
		return nil
	}
	return candidatesOf(e.m)
}

// place is what became of a commit in an environment.
type place struct {
	// state is InForce, Replaced, Failed, Skipped, or the reason for which it is not there; empty where it never came to that.
	state string
	text  string
	// waitsFor in the agent's words.
	waitsFor string
	until    time.Time
}

// States of a commit in an environment, beside those of a candidate and the reasons of conditions.
const (
	placeInForce  = "InForce"
	placeReplaced = "Replaced"
	placeMerged   = "Merged"
)

// place of a commit.
func (e *environment) place(c commit, now time.Time) place {
	if e.m == nil {
		return place{text: "?"}
	}
	s := e.m.Status
	is := func(revision string) bool { return commitOf(revision) == c.id }
	at := slices.IndexFunc(s.History, func(h v1alpha1.HistoryEntry) bool { return is(h.Revision) })
	var candidate *v1alpha1.PromotionCandidate
	if at := slices.IndexFunc(e.candidates(), func(other v1alpha1.PromotionCandidate) bool { return is(other.Revision) }); at >= 0 {
		candidate = &e.candidates()[at]
	}
	switch {
	case is(s.LastAppliedRevision):
		return e.inForce(at)
	case s.Rollback != nil && is(s.Rollback.Bad):
		return place{state: v1alpha1.CandidateFailed, text: "failed, rolled back", waitsFor: s.Rollback.Why}
	case candidate != nil:
		return e.waits(candidate, now)
	case e.from != nil && s.Promotion != nil && s.Promotion.PullRequest != nil && is(s.Promotion.PullRequest.Revision):
		return e.proposed(s.Promotion.PullRequest)
	case at >= 0 && s.History[at].Failed != "":
		return place{state: v1alpha1.CandidateFailed, text: "failed", waitsFor: s.History[at].Failed}
	case at >= 0:
		return place{state: placeReplaced, text: "replaced"}
	case e.attempts() && is(s.LastAttemptedRevision):
		ready := readyOf(e.m)
		return place{state: cmp.Or(ready.Reason, "Unknown"), text: "not applied: " + cmp.Or(ready.Reason, "nothing known"), waitsFor: ready.Message}
	}
	return place{text: "-"}
}

// inForce is the place of what an environment has.
func (e *environment) inForce(at int) place {
	p := place{state: placeInForce, text: "in force"}
	switch {
	case at >= 0 && e.m.Status.History[at].Failed != "":
		p.state, p.text, p.waitsFor = v1alpha1.CandidateFailed, "in force, failed", e.m.Status.History[at].Failed
	case at >= 0 && e.m.Status.History[at].HealthySince == nil:
		p.text += ", not healthy"
	}
	if pin := e.m.Spec.Pin; pin != nil && sameCommit(pin.Revision, e.m.Status.LastAppliedRevision) {
		p.text += ", pinned"
	}
	return p
}

// waits is the place of a commit that is on its way.
func (e *environment) waits(c *v1alpha1.PromotionCandidate, now time.Time) place {
	p := place{state: c.State, waitsFor: c.WaitsFor}
	var request *v1alpha1.PullRequestStatus
	if pr := e.m.Status.Promotion.PullRequest; pr != nil && sameCommit(pr.Revision, c.Revision) {
		request = pr
	}
	switch c.State {
	case v1alpha1.CandidateFailed:
		p.text = "failed"
	case v1alpha1.CandidateSkipped:
		p.text = "skipped"
	case v1alpha1.ReasonSoaking:
		p.text = "soaking"
		if p.until = e.soaked(c.Revision); !p.until.IsZero() {
			p.text += " until " + clock(p.until, now)
		}
	case v1alpha1.ReasonNotHealthy:
		p.text = "waits for health in " + e.from.key.Name
	case v1alpha1.ReasonAwaitingApproval:
		p.text = "waits for mooring promote"
	case v1alpha1.ReasonAwaitingWindow, v1alpha1.ReasonWindowClosed:
		p.text = "waits for a window"
	case v1alpha1.ReasonPinned:
		p.text = "waits for mooring unpin"
	case v1alpha1.ReasonGateClosed:
		p.text = "a gate is closed"
	case v1alpha1.ReasonDiverged:
		p.text = "the branch has diverged"
	case v1alpha1.ReasonPromotionFailed:
		p.text = "could not be promoted"
	case v1alpha1.ReasonAwaitingMerge, v1alpha1.ReasonDeclined:
		p.text = map[string]string{v1alpha1.ReasonAwaitingMerge: "pull request open", v1alpha1.ReasonDeclined: "pull request closed"}[c.State]
		if request != nil {
			p.text = e.proposed(request).text
		}
	default:
		p.text = "held: " + c.State
	}
	return p
}

// proposed is the place of a commit with a pull request.
func (e *environment) proposed(pr *v1alpha1.PullRequestStatus) place {
	state, word := v1alpha1.ReasonAwaitingMerge, "open"
	switch pr.State {
	case "Merged":
		state, word = placeMerged, "merged"
	case "Closed":
		state, word = v1alpha1.ReasonDeclined, "closed"
	}
	return place{state: state, text: fmt.Sprintf("pull request #%d %s", pr.Number, word), waitsFor: pr.URL}
}

// soaked is when a commit will have been in force for long enough where it comes from.
func (e *environment) soaked(revision string) time.Time {
	if e.from == nil || e.from.m == nil {
		return time.Time{}
	}
	h := entryOf(e.from.m, revision)
	if h == nil || h.HealthySince == nil {
		return time.Time{}
	}
	return h.HealthySince.Add(e.m.Spec.Promotion.Soak.Duration)
}

// clock writes an instant as short as it can be said today.
func clock(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04")
	}
	return t.Format("Mon 2006-01-02 15:04")
}
