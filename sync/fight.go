package sync

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// A fight is two controllers that undo each other. That is not seen from one edit: it is one when the same field was put back several times within a
// while, each time after the same manager. From then on the object is put back ever more slowly. Whatever wakes a pass in between, a watch
// that sees each edit at once included, the plan holds that object back, and corrects all others as always. A commit that changes the object does not
// wait, for it is no correction. When nobody has undone it for a while the fight is over, and the object is put back at once again.
const (
	// fightRounds corrections of a field within fightWindow are a fight.
	fightRounds = 4
	fightWindow = 10 * time.Minute
	// firstPause of a fight; it doubles with each further correction, up to longestPause.
	firstPause   = 15 * time.Second
	longestPause = 10 * time.Minute
	// calm is how long nobody must have undone a correction. It is not shorter than the window, or a fight of slow rounds would end and begin all the time.
	calm = fightWindow
)

// contested is a field and who sets it otherwise. What is removed leaves no name behind.
type contested struct {
	field, manager string
}

// rounds of one field.
type rounds struct {
	at       []time.Time // of the last corrections, no more than it takes
	count    int         // of all corrections
	since    time.Time   // of the first one
	last     time.Time   // when it was corrected, or seen undone, last
	fighting bool
}

// contest is what is known of one object.
type contest struct {
	fields map[contested]*rounds
	// pauses since a fight began, and until when the object is not put back.
	pauses int
	next   time.Time
}

// fights of a unit. The zero value has none.
type fights map[render.ID]*contest

// fightsOf a status: what an agent knew that is gone.
func fightsOf(s v1alpha1.MooringStatus) fights {
	all := fights{}
	for _, e := range s.Fights {
		id, ok := parseObject(e.Group, e.Object)
		if !ok {
			continue
		}
		c := all.at(id)
		n := max(int(e.Corrections), fightRounds)
		c.fields[contested{e.Field, e.Manager}] = &rounds{count: n, since: e.Since.Time, last: time.Now(), fighting: true}
		c.pauses = max(c.pauses, n-fightRounds+1)
		if e.Next.After(c.next) {
			c.next = e.Next.Time
		}
	}
	return all
}

func (f fights) at(id render.ID) *contest {
	c := f[id]
	if c == nil {
		c = &contest{fields: map[contested]*rounds{}}
		f[id] = c
	}
	return c
}

// held are the objects that must wait at this instant, with the reason.
func (f fights) held(now time.Time) map[render.ID]string {
	var held map[render.ID]string
	for id, c := range f {
		if !now.Before(c.next) {
			continue
		}
		if held == nil {
			held = map[render.ID]string{}
		}
		for _, one := range c.list(id) {
			held[id] = fmt.Sprintf("a fight with %s over %s: put back %d times since %s; next at %s",
				one.With(), one.What(), one.Corrections, stamp(one.Since), stamp(c.next))
			break // one is enough to say why
		}
	}
	return held
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// note what a pass found drifted: put back, or left undone. It gives the fights that began.
func (f fights) note(found []report.Drift, now time.Time) []report.Fight {
	corrected := map[render.ID]bool{}
	for _, d := range found {
		key := contested{d.Path, d.Manager}
		if d.Reason != "" {
			if c := f[d.ID]; c != nil && c.fields[key] != nil {
				c.fields[key].last = now
			}
			continue
		}
		c := f.at(d.ID)
		if c.fields[key] == nil {
			c.fields[key] = &rounds{since: now}
		}
		c.fields[key].round(now)
		corrected[d.ID] = true
	}
	var began []report.Fight
	for id := range corrected {
		c := f[id]
		before := c.list(id)
		for _, r := range c.fields {
			r.fighting = r.fighting || len(r.at) == fightRounds && now.Sub(r.at[0]) <= fightWindow
		}
		if all := c.list(id); len(all) > 0 {
			c.next = now.Add(min(firstPause<<min(c.pauses, 16), longestPause))
			c.pauses++
			began = append(began, without(c.list(id), before)...)
		}
	}
	return sorted(began)
}

// round is one more correction.
func (r *rounds) round(now time.Time) {
	r.count++
	r.last = now
	r.at = append(r.at, now)
	r.at = r.at[max(0, len(r.at)-fightRounds):]
}

// settle forgets what nobody has touched for long enough, and gives the fights that are over.
func (f fights) settle(now time.Time) []report.Fight {
	var over []report.Fight
	for id, c := range f {
		before := c.list(id)
		for key, r := range c.fields {
			if now.Sub(r.last) >= calm {
				delete(c.fields, key)
			}
		}
		still := c.list(id)
		over = append(over, without(before, still)...)
		if len(still) == 0 {
			c.next, c.pauses = time.Time{}, 0
		}
		if len(c.fields) == 0 {
			delete(f, id)
		}
	}
	return sorted(over)
}

func without(all, others []report.Fight) []report.Fight {
	return slices.DeleteFunc(all, func(one report.Fight) bool { return slices.ContainsFunc(others, one.Same) })
}

// list the fights that go on, sorted.
func (f fights) list() []report.Fight {
	var all []report.Fight
	for id, c := range f {
		all = append(all, c.list(id)...)
	}
	return sorted(all)
}

func (c *contest) list(id render.ID) []report.Fight {
	var all []report.Fight
	for key, r := range c.fields {
		if r.fighting {
			all = append(all, report.Fight{ID: id, Field: key.field, Manager: key.manager, Corrections: r.count, Since: r.since, Next: c.next})
		}
	}
	return sorted(all)
}

func sorted(all []report.Fight) []report.Fight {
	slices.SortFunc(all, func(a, b report.Fight) int {
		return cmp.Or(cmp.Compare(a.ID.String(), b.ID.String()), cmp.Compare(a.ID.Group, b.ID.Group), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Manager, b.Manager))
	})
	return all
}

// wake is when a pass is of use for the fights: an object may be put back, or one is over. Zero for never.
func (f fights) wake(now time.Time) time.Time {
	var first time.Time
	for id, c := range f {
		times := []time.Time{c.next}
		for _, one := range c.list(id) {
			times = append(times, c.fields[contested{one.Field, one.Manager}].last.Add(calm))
		}
		for _, t := range times {
			if t.After(now) && (first.IsZero() || t.Before(first)) {
				first = t
			}
		}
	}
	return first
}

// parseObject reads an object as the status names it.
func parseObject(group, object string) (render.ID, bool) {
	switch parts := strings.Split(object, "/"); len(parts) {
	case 2:
		return render.ID{Group: group, Kind: parts[0], Name: parts[1]}, true
	case 3:
		return render.ID{Group: group, Kind: parts[0], Namespace: parts[1], Name: parts[2]}, true
	}
	return render.ID{}, false
}
