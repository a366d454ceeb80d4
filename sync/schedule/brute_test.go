package schedule_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/sync/schedule"
)

// calendar is an expression as the brute force knows it: the numbers of each field. It shares nothing with the package.
type calendar struct {
	minutes, hours, days, months, weekdays map[int]bool
	anyDay, anyWeekday                     bool
}

func calendarOf(expression string) calendar {
	f := strings.Fields(expression)
	return calendar{
		minutes: numbers(f[0], 0, 59), hours: numbers(f[1], 0, 23), days: numbers(f[2], 1, 31), months: numbers(f[3], 1, 12), weekdays: numbers(f[4], 0, 6),
		anyDay: f[2] == "*", anyWeekday: f[4] == "*",
	}
}

func numbers(field string, low, high int) map[int]bool {
	all := map[int]bool{}
	for item := range strings.SplitSeq(field, ",") {
		span, by, _ := strings.Cut(item, "/")
		step := max(atoi(by), 1)
		from, to := low, high
		if first, last, ranged := strings.Cut(span, "-"); ranged {
			from, to = atoi(first), atoi(last)
		} else if span != "*" {
			from = atoi(span)
			if by == "" {
				to = from
			}
		}
		for n := from; n <= to; n += step {
			all[n] = true
		}
	}
	return all
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func (c calendar) has(wall time.Time) bool {
	day, weekday := c.days[wall.Day()], c.weekdays[int(wall.Weekday())]
	match := day && weekday
	if !c.anyDay && !c.anyWeekday {
		match = day || weekday
	}
	return match && c.minutes[wall.Minute()] && c.hours[wall.Hour()] && c.months[int(wall.Month())]
}

// slots finds the slots in [from, until) by looking at each minute, and at what the clock shows then.
func slots(expression string, zone *time.Location, from, until time.Time) map[int64]bool {
	c := calendarOf(expression)
	found := map[int64]bool{}
	if len(c.hours) == 24 {
		for t := from; t.Before(until); t = t.Add(time.Minute) {
			if c.has(clock(t, zone)) {
				found[t.Unix()] = true
			}
		}
		return found
	}
	// Each time of day of the calendar, once: when a clock first shows it, or something later.
	early := from.Add(-48 * time.Hour)
	shown := clock(early, zone)
	for t := early; t.Before(until); t = t.Add(time.Minute) {
		for now := clock(t, zone); !shown.After(now); shown = shown.Add(time.Minute) {
			if c.has(shown) && !t.Before(from) {
				found[t.Unix()] = true
			}
		}
	}
	return found
}

// clock is what a clock in the zone shows, written as if it were UTC.
func clock(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
}

// stretches are weeks in which clocks are changed: by an hour, by half an hour, at midnight, by a whole day, and not at all.
func stretches() []stretch {
	return []stretch{
		{"Europe/Berlin", "2026-03-27"},
		{"Europe/Berlin", "2026-10-23"},
		{"America/New_York", "2026-03-06"},
		{"America/New_York", "2026-10-30"},
		{"America/Sao_Paulo", "2018-11-02"},
		{"America/Sao_Paulo", "2018-02-16"},
		{"Australia/Lord_Howe", "2026-10-02"},
		{"Australia/Lord_Howe", "2026-04-03"},
		{"Pacific/Apia", "2011-12-28"},
		{"Africa/Casablanca", "2026-02-13"},
		{"Asia/Kathmandu", "2026-02-26"},
		{"UTC", "2026-02-26"},
	}
}

type stretch struct{ zone, from string }

func (s stretch) in(t *testing.T) (from, until time.Time, zone *time.Location) {
	t.Helper()
	zone, err := time.LoadLocation(s.zone)
	if err != nil {
		t.Fatal(err)
	}
	from, err = time.Parse(time.DateOnly, s.from)
	if err != nil {
		t.Fatal(err)
	}
	return from, from.Add(6 * 24 * time.Hour), zone
}

func expressions() []string {
	return []string{
		"30 2 * * *", "30 1 * * *", "0 0 * * *", "*/10 8-18 * * 1-5", "*/15 0-3 * * *", "*/20 */2 * * *", "*/10 * * * *", "0 * * * *", "59 23 * * *",
		"45 2 * * 0", "* 1-2 * * *", "0 17 * * 5", "15 3 29 * *", "0 4 1 * 0", "7,37 * 29,30 3,10 *", "* * * * *", "0 */3 */2 * 6", "5 0 1 11 *",
	}
}

// Next and Last are what a look at every minute finds, in weeks in which clocks are changed.
func TestSlotsAreThoseOfEveryMinute(t *testing.T) {
	for _, s := range stretches() {
		from, until, zone := s.in(t)
		for _, expression := range expressions() {
			c, err := schedule.Parse(expression, s.zone)
			if err != nil {
				t.Fatal(err)
			}
			want := slots(expression, zone, from, until)
			last, asked := time.Time{}, []time.Time{}
			for at := from; at.Before(until); at = at.Add(time.Minute) {
				if next := c.Next(at.Add(-1)); next.Equal(at) != want[at.Unix()] {
					t.Fatalf("%s in %s: Next before %s is %s; a slot there: %v", expression, s.zone, at.In(zone), next, want[at.Unix()])
				}
				if want[at.Unix()] {
					for _, before := range asked { // from however far before, it is the next one
						if next := c.Next(before); !next.Equal(at) {
							t.Fatalf("%s in %s: Next after %s is %s, want %s", expression, s.zone, before.In(zone), next, at.In(zone))
						}
					}
					last, asked = at, nil
				}
				if at.Minute()%23 != 0 {
					continue
				}
				asked = append(asked, at)
				if got := c.Last(at.Add(time.Duration(at.Minute()) * time.Second)); !last.IsZero() && !got.Equal(last) {
					t.Fatalf("%s in %s: Last at %s is %s, want %s", expression, s.zone, at.In(zone), got, last.In(zone))
				}
			}
		}
	}
}

// windowSets overlap, overlap themselves, touch and lie apart.
func windowSets(zone string) [][]schedule.Window {
	w := func(kind schedule.Kind, expression string, d time.Duration) schedule.Window {
		return schedule.Window{Kind: kind, Schedule: expression, Duration: d, TimeZone: zone}
	}
	return [][]schedule.Window{
		{w(schedule.Deny, "0 17 * * 5", 63*time.Hour)},
		{w(schedule.Allow, "0 8 * * 1-5", 10*time.Hour)},
		{w(schedule.Allow, "0 8 * * *", 4*time.Hour), w(schedule.Allow, "0 12 * * *", 2*time.Hour), w(schedule.Deny, "30 9 * * *", 30*time.Minute)},
		{w(schedule.Deny, "30 2 * * *", time.Hour), w(schedule.Deny, "15 3 * * *", 45*time.Minute), w(schedule.Deny, "0 1 * * 0", 90*time.Minute)},
		{w(schedule.Allow, "30 1 * * *", 90*time.Minute), w(schedule.Allow, "*/30 * * * 6", 45*time.Minute)},
		{w(schedule.Allow, "0 0 * * *", 30*time.Hour), w(schedule.Deny, "*/20 2-4 * * *", 5*time.Minute)},
		{w(schedule.Allow, "*/10 * * * *", 5*time.Minute), w(schedule.Deny, "0 */2 * * *", 30*time.Minute)},
		{w(schedule.Deny, "0 */2 * * *", time.Hour), w(schedule.Deny, "0 1-23/2 * * 0", time.Hour)},
	}
}

// At is what a look at every minute finds.
func TestWindowsAreThoseOfEveryMinute(t *testing.T) {
	for _, s := range stretches() {
		from, until, zone := s.in(t)
		for _, set := range windowSets(s.zone) {
			ws, err := schedule.ParseWindows(set)
			if err != nil {
				t.Fatal(err)
			}
			open := everyMinute(set, zone, from, until)
			for i := range open {
				if i%37 != 0 && (i == 0 || i+1 == len(open) || open[i-1] == open[i] && open[i] == open[i+1]) {
					continue
				}
				at := from.Add(time.Duration(i) * time.Minute)
				state := ws.At(at)
				if state.Open != open[i] || ws.Open(at) != open[i] {
					t.Fatalf("%v at %s: open %v", set, at.In(zone), state.Open)
				}
				first, second := changes(open, i)
				opens, closes := first, second
				if open[i] {
					opens, closes = second, first
				}
				for name, want := range map[string]struct {
					minute int
					got    time.Time
				}{"opens": {opens, state.Opens}, "closes": {closes, state.Closes}} {
					if want.minute > 0 && !want.got.Equal(from.Add(time.Duration(want.minute)*time.Minute)) {
						t.Fatalf("%v at %s: %s %s, want minute %d", set, at.In(zone), name, want.got, want.minute)
					}
				}
			}
		}
	}
}

// everyMinute says for each minute whether it is open.
func everyMinute(set []schedule.Window, zone *time.Location, from, until time.Time) []bool {
	minutes := int(until.Sub(from) / time.Minute)
	on := map[schedule.Kind][]bool{schedule.Allow: make([]bool, minutes), schedule.Deny: make([]bool, minutes)}
	allow := false
	for _, w := range set {
		allow = allow || w.Kind == schedule.Allow
		for start := range slots(w.Schedule, zone, from.Add(-w.Duration), until) {
			first := int((start - from.Unix()) / 60)
			for i := max(first, 0); i < min(first+int(w.Duration/time.Minute), minutes); i++ {
				on[w.Kind][i] = true
			}
		}
	}
	open := make([]bool, minutes)
	for i := range open {
		open[i] = !on[schedule.Deny][i] && (!allow || on[schedule.Allow][i])
	}
	return open
}

// changes are the next two minutes at which it is otherwise; 0 for none.
func changes(open []bool, i int) (first, second int) {
	for j := i + 1; j < len(open); j++ {
		switch {
		case first == 0 && open[j] != open[i]:
			first = j
		case first > 0 && open[j] == open[i]:
			return first, j
		}
	}
	return first, 0
}

func ExampleWindows_At() {
	freeze, _ := schedule.ParseWindows([]schedule.Window{{Kind: schedule.Deny, Schedule: "0 17 * * FRI", Duration: 63 * time.Hour, TimeZone: "Europe/Berlin"}})
	state := freeze.At(time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC))
	fmt.Println(state.Open, freeze.Name(state.By))
	fmt.Println(state.Opens.In(freeze.Zone(state.By)))
	// Output:
	// false [0] (Deny, 0 17 * * FRI, Europe/Berlin)
	// 2026-03-30 09:00:00 +0200 CEST
}
