package alarm

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// The limits of an Alarm.
const (
	// maxNotes that wait to be told.
	maxNotes = 200
	// burst of messages within burstTime, beyond which what comes is gathered.
	burst     = 10
	burstTime = 10 * time.Minute
)

// place of a fault.
type place struct {
	mooring types.NamespacedName
	aspect  aspect
}

// change is what is to be told of one place: a fault, or the end of one that was told.
type change struct {
	place place
	fault fault
	over  bool
	// silent closes the fault without a word.
	silent bool
	// before is the fault that was told of this place and is another one now; nil when none was.
	before *fault
	// at is when it was heard.
	at time.Time
}

// book of an Alarm: what was told and is not over, and what is to be told. It does nothing by itself and knows no receiver; it is not safe for
// concurrent use.
type book struct {
	events                   []v1alpha1.AlarmEvent
	groupWait, groupInterval time.Duration
	// all tells every end, asked for or not, keeps no pace and closes nothing without a word: an Alertmanager must know.
	all bool

	open    map[place]fault
	pending map[place]change
	notes   []note
	dropped int
	// causes that were told, and when.
	causes map[cause]time.Time
	// sent is when the last messages went out, oldest first.
	sent []time.Time
}

func newBook() *book {
	return &book{open: map[place]fault{}, pending: map[place]change{}, causes: map[cause]time.Time{}}
}

func (b *book) listens(e v1alpha1.AlarmEvent) bool { return slices.Contains(b.events, e) }

// hear what an aspect of a Mooring is like now.
func (b *book) hear(p place, l level, now time.Time) {
	told, open := b.open[p]
	waiting, waits := b.pending[p]
	switch l.state {
	case faulty:
		switch {
		case !b.listens(l.fault.event): // broken in another way: what was to be told holds no longer, and what is open has not recovered
			delete(b.pending, p)
		case open && told.same(l.fault):
			told.message = l.fault.message
			b.open[p] = told
			delete(b.pending, p)
		default:
			c := change{place: p, fault: l.fault, at: now}
			if waits && !waiting.over {
				c.at = waiting.at // or a fault that changes its words all the time would never be told
			}
			if open {
				c.before = &told
			}
			b.pending[p] = c
		}
	case fine:
		b.end(p, now, !b.listens(v1alpha1.AlarmRecovered))
	case gone:
		b.end(p, now, true)
	}
}

// end what is open at a place.
func (b *book) end(p place, now time.Time, silent bool) {
	told, open := b.open[p]
	waiting := b.pending[p]
	switch {
	case !open:
		delete(b.pending, p)
	case silent && !b.all:
		delete(b.open, p)
		delete(b.pending, p)
	case !waiting.over:
		b.pending[p] = change{place: p, fault: told, over: true, silent: silent, at: now}
	}
}

// hearNote takes a note down, unless there are too many.
func (b *book) hearNote(n note) {
	switch {
	case !b.listens(n.event):
	case len(b.notes) >= maxNotes:
		b.dropped++
	default:
		b.notes = append(b.notes, n)
	}
}

// due is when the next message is to go out; ok is false when there is nothing to tell.
func (b *book) due(now time.Time) (at time.Time, ok bool) {
	earlier := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	for _, c := range b.pending {
		t := c.at.Add(b.groupWait)
		if last, told := b.causes[c.cause()]; told && !b.all {
			t = later(t, last.Add(b.groupInterval))
		}
		earlier(t)
	}
	for _, n := range b.notes {
		earlier(n.at.Add(b.groupWait))
	}
	if ok && !b.all && len(b.sent) == burst {
		at = later(at, b.sent[0].Add(burstTime))
	}
	return later(at, now), ok
}

func (c change) cause() cause {
	if c.over {
		return c.fault.cause().over()
	}
	return c.fault.cause()
}

// batch is what goes into one message.
type batch struct {
	changes []change
	notes   []note
	// tries that failed.
	tries int
	// delivered are the addresses that have got it.
	delivered map[string]bool
}

// take everything that is to be told. It stays pending until it is told.
func (b *book) take() *batch {
	t := &batch{notes: b.notes, delivered: map[string]bool{}}
	b.notes = nil
	for _, c := range b.pending {
		t.changes = append(t.changes, c)
	}
	slices.SortFunc(t.changes, func(x, y change) int {
		return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.place.mooring.String(), y.place.mooring.String()), cmp.Compare(x.place.aspect, y.place.aspect))
	})
	return t
}

// told notes that a batch was told. What changed meanwhile has to be heard again: see places.
func (b *book) told(t *batch, now time.Time) {
	for _, c := range t.changes {
		delete(b.pending, c.place)
		if c.over {
			delete(b.open, c.place)
		} else {
			b.open[c.place] = c.fault
		}
		b.causes[c.cause()] = now
	}
	for c, at := range b.causes {
		if now.Sub(at) > b.groupInterval {
			delete(b.causes, c)
		}
	}
	if b.sent = append(b.sent, now); len(b.sent) > burst {
		b.sent = b.sent[1:]
	}
}

// places of everything that is open or to be told.
func (b *book) places() []place {
	var all []place
	for p := range b.open {
		all = append(all, p)
	}
	for p := range b.pending {
		if _, open := b.open[p]; !open {
			all = append(all, p)
		}
	}
	return all
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
