package schedule

import (
	"time"

	"github.com/robfig/cron/v3"
)

// Cron is an expression in a time zone. Its slots are the instants at which it comes round. It does not change, and may be used by many at once.
type Cron struct {
	text string
	zone *time.Location
	// every is the distance of the slots of @every, else 0.
	every time.Duration
	// calendar is searched in times of day, written as if they were UTC.
	calendar *cron.SpecSchedule
	// hourly expressions have slots in every hour.
	hourly bool
}

// String is the expression as it was written.
func (c *Cron) String() string { return c.text }

// Zone is where its times of day are.
func (c *Cron) Zone() *time.Location { return c.zone }

// Next is the first slot after t; zero when there is none, which is so only at the end of all calendars.
func (c *Cron) Next(t time.Time) time.Time {
	if c.every > 0 {
		return c.tick(t, 1)
	}
	return c.slot(t).In(c.zone)
}

// Last is the last slot that is not after t; zero when there was none for years.
func (c *Cron) Last(t time.Time) time.Time {
	if c.every > 0 {
		return c.tick(t, 0)
	}
	// How far one must go back is found by doubling, and what lies there by halving: the calendar can be searched forwards only.
	for back := time.Minute; back <= longAgo; back *= 2 {
		if last := c.within(t.Add(-back), t); !last.IsZero() {
			return last
		}
	}
	return time.Time{}
}

// longAgo is more than the eight years from one 29th of February to another around 2100.
const longAgo = 20 * 366 * 24 * time.Hour

// within is the last slot that is after from and not after until; zero when there is none.
func (c *Cron) within(from, until time.Time) time.Time {
	last := c.Next(from)
	if last.IsZero() || last.After(until) {
		return time.Time{}
	}
	for range 3 { // as a rule there is no more than one
		next := c.Next(last)
		if next.IsZero() || next.After(until) {
			return last
		}
		last = next
	}
	from, none := last, until           // there may be slots after from, and there are none after none
	for none.Sub(from) >= time.Second { // slots are whole seconds
		middle := from.Add(none.Sub(from) / 2)
		if next := c.Next(middle); next.IsZero() || next.After(until) {
			none = middle
		} else {
			last, from = next, next
		}
	}
	return last
}

// tick is the slot of @every that is the nth after the last one that is not after t.
func (c *Cron) tick(t time.Time, n int64) time.Time {
	period := int64(c.every / time.Second)
	index := t.Unix() / period
	if t.Unix()%period < 0 {
		index--
	}
	return time.Unix((index+n)*period, 0).In(c.zone)
}

// slot is the first slot after t. A zone is a sequence of spans with one offset each, and in a span a time of day is an instant.
func (c *Cron) slot(t time.Time) time.Time {
	if c.hourly {
		return c.hourlySlot(t)
	}
	wall := c.search(c.reached(t))
	if wall.IsZero() {
		return time.Time{}
	}
	for {
		start, end, offset := c.span(t)
		at := wall.Add(-offset)
		switch {
		case !start.IsZero() && at.Before(start): // it was skipped when this span began
			return start
		case end.IsZero() || at.Before(end):
			return at
		}
		t = end
	}
}

// hourlySlot is the first instant after t whose time of day is one of the calendar's.
func (c *Cron) hourlySlot(t time.Time) time.Time {
	_, end, offset := c.span(t)
	for {
		wall := c.search(t.Add(offset))
		if wall.IsZero() {
			return time.Time{}
		}
		if at := wall.Add(-offset); end.IsZero() || at.Before(end) {
			return at
		}
		t = end.Add(-1) // the first instant of the next span may be a slot
		_, end, offset = c.span(end)
	}
}

// reached is the latest time of day that the clocks of the zone have shown up to t: later than what they show, while an hour is repeated.
func (c *Cron) reached(t time.Time) time.Time {
	start, _, offset := c.span(t)
	latest := t.Add(offset)
	// No clock was ever put back by more than a day.
	for !start.IsZero() && t.Sub(start) <= 24*time.Hour {
		_, _, before := c.span(start.Add(-1))
		if shown := start.Add(before - 1); shown.After(latest) { // the last one before the change
			latest = shown
		}
		start, _, _ = c.span(start.Add(-1))
	}
	return latest.UTC()
}

// span is the time around t in which the zone's clocks were not changed, and how far ahead of UTC they are. A zero start or end is none.
func (c *Cron) span(t time.Time) (start, end time.Time, offset time.Duration) {
	local := t.In(c.zone)
	start, end = local.ZoneBounds()
	_, seconds := local.Zone()
	return start, end, time.Duration(seconds) * time.Second
}

// search gives the first time of day after wall that the calendar has; zero when it has none. The library looks no further than five years
// ahead, and from one 29th of February to the next there can be eight.
func (c *Cron) search(wall time.Time) time.Time {
	wall = wall.UTC()
	for range 3 {
		if found := c.calendar.Next(wall); !found.IsZero() {
			return found
		}
		wall = time.Date(wall.Year()+5, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}
