package istiod

import (
	"time"
)

// The times of the rule. istiod waits 100 ms after the last event, and 10 s at most, before it pushes (PILOT_DEBOUNCE_AFTER and
// PILOT_DEBOUNCE_MAX).
const (
	// stillFor is how long nothing must have moved, beside the time that istiod needs to compute a push.
	stillFor = 300 * time.Millisecond
	// stillBlind is the same where there was no push to be seen that may have been for the change: none since it was read, or no metrics. Either
	// there will be none, or it was earlier, or istiod is slow.
	stillBlind = time.Second
	// stillMost bounds both.
	stillMost = 5 * time.Second
	// overtakenAfter is when a push that contains the change must have begun, however restless the mesh is.
	overtakenAfter = 11 * time.Second
)

// settling follows one istiod from the moment at which it had read what was written, until each of its proxies has acknowledged
// it. See the package comment for the rule.
type settling struct {
	since time.Time // it has read the change
	first counters
	last  sample
	print uint64    // of last
	still time.Time // nothing has moved since

	// grew is true when events came in, and before is how many pushes had been computed by then.
	grew   bool
	before float64

	cut *cut
}

// cut is the moment from which on a push that contains the change has been made for every proxy, in a mesh that is never still.
type cut struct {
	dequeued float64 // by now the queue of then is empty
	due      map[owed]string
}

// owed is an answer that a proxy owed at the cut.
type owed struct{ cluster, proxy, kind string }

// settle begins with the first sample that was taken after the change had been read.
func settle(since time.Time, s sample) *settling {
	return &settling{since: since, first: s.counters, last: s, print: fingerprint(s.proxies), still: since}
}

// take looks at another sample and says whether all is acknowledged.
func (s *settling) take(now sample) bool {
	print := fingerprint(now.proxies)
	if print != s.print || now.counters.moved(s.last.counters) {
		s.still = now.ended
	}
	if now.counters.updates != s.last.counters.updates {
		s.grew, s.before = true, s.last.counters.contexts
	}
	s.last, s.print = now, print
	return s.rests(now) || s.overtaken(now)
}

// moved is true when istiod did or learned anything that may become a push.
func (c counters) moved(before counters) bool {
	return c.updates != before.updates || c.contexts != before.contexts || c.dequeued != before.dequeued
}

// rests is the rule for a mesh that comes to rest.
func (s *settling) rests(now sample) bool {
	if len(lateOf(now.proxies)) > 0 || s.grew && now.counters.contexts <= s.before {
		return false
	}
	return now.began.Sub(s.still) >= now.counters.stillFor(s.first)
}

// stillFor is how long nothing must have moved, for one whose counters were these when it had read the change.
func (c counters) stillFor(first counters) time.Duration {
	if !c.known || !first.known || c.contexts == first.contexts {
		return min(stillBlind+2*c.computing, stillMost)
	}
	return min(stillFor+2*c.computing, stillMost)
}

// overtaken is the rule for a mesh that never rests: a push that contains the change has been made for everybody, and what
// each proxy had been sent by then it has acknowledged, or something later.
func (s *settling) overtaken(now sample) bool {
	if s.cut == nil {
		if !s.pushed(now) {
			return false
		}
		s.cut = &cut{dequeued: now.counters.dequeued + 2*float64(len(now.proxies))}
	}
	if s.cut.due == nil {
		if now.counters.known && now.counters.dequeued < s.cut.dequeued {
			return false
		}
		s.cut.due = dueIn(now.proxies)
	}
	s.cut.settle(now.proxies)
	return len(s.cut.due) == 0
}

// pushed is true when a push that was begun after the change had been read has been handed to the queue. One may have been under way at that moment, so
// it is the second.
func (s *settling) pushed(now sample) bool {
	return now.counters.known && s.first.known && now.counters.contexts >= s.first.contexts+2 || now.began.Sub(s.since) >= overtakenAfter
}

func dueIn(proxies []proxy) map[owed]string {
	due := make(map[owed]string)
	for _, p := range proxies {
		for kind, a := range p.answers {
			if a.due() {
				due[owed{p.cluster, p.id, kind}] = a.sent
			}
		}
	}
	return due
}

// settle strikes out what has been acknowledged since, and who has gone.
func (c *cut) settle(proxies []proxy) {
	open := make(map[owed]string)
	for _, p := range proxies {
		for kind, a := range p.answers {
			key := owed{p.cluster, p.id, kind}
			if sent, owes := c.due[key]; owes && a.due() && !later(a.acked, sent) {
				open[key] = sent
			}
		}
	}
	c.due = open
}

// later is true when what was acknowledged is what was sent, or of the same push or a later one.
func later(acked, sent string) bool {
	a, known := pushOf(acked)
	b, alsoKnown := pushOf(sent)
	return acked == sent || known && alsoKnown && a >= b
}

// late are those whose answer is missing still.
func (s *settling) late() []Late {
	all := lateOf(s.last.proxies)
	if s.cut == nil || s.cut.due == nil {
		return all
	}
	var open []Late
	for _, l := range all {
		for _, kind := range l.Kinds {
			if _, owes := s.cut.due[owed{l.Cluster, l.Proxy, kind}]; owes {
				open = append(open, l)
				break
			}
		}
	}
	return open
}
