package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/sync/schedule"
)

func mustParse(t *testing.T, expression, zone string) *schedule.Cron {
	t.Helper()
	c, err := schedule.Parse(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// next gives the first slots after an instant, as the clocks of the zone show them.
func next(t *testing.T, c *schedule.Cron, after string, n int) []string {
	t.Helper()
	var all []string
	for at := instant(t, after); n > 0; n-- {
		at = c.Next(at)
		all = append(all, at.Format(time.RFC3339))
	}
	return all
}

func TestDaylightSaving(t *testing.T) {
	for _, c := range []struct{ name, expression, after, want string }{
		{
			"half past two in the night that has none comes when that hour is over, and once", "30 2 * * *", "2026-03-28T12:00:00+01:00",
			"2026-03-29T03:00:00+02:00 2026-03-30T02:30:00+02:00",
		},
		{
			"half past two in the night that has two comes the first time, and once", "30 2 * * *", "2026-10-24T12:00:00+02:00",
			"2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00",
		},
		{
			"slots that are skipped together are one", "*/20 2,3 * * *", "2026-03-29T01:00:00+01:00",
			"2026-03-29T03:00:00+02:00 2026-03-29T03:20:00+02:00 2026-03-29T03:40:00+02:00 2026-03-30T02:00:00+02:00",
		},
		{
			"what comes in every hour goes on through both of them", "30 * * * *", "2026-10-25T01:45:00+02:00",
			"2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-25T03:30:00+01:00",
		},
		{
			"and has nothing in an hour that there is not", "30 * * * *", "2026-03-29T01:00:00+01:00",
			"2026-03-29T01:30:00+01:00 2026-03-29T03:30:00+02:00",
		},
		{
			"@every does not care", "@every 6h", "2026-03-28T23:30:00+01:00",
			"2026-03-29T01:00:00+01:00 2026-03-29T08:00:00+02:00",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := strings.Fields(c.want)
			if diff := cmp.Diff(want, next(t, mustParse(t, c.expression, "Europe/Berlin"), c.after, len(want))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRareDaysAreFound(t *testing.T) {
	leap := mustParse(t, "0 0 29 2 *", "")
	if got := next(t, leap, "2096-03-01T00:00:00Z", 1)[0]; got != "2104-02-29T00:00:00Z" {
		t.Errorf("the leap day after that of 2096 is %s", got)
	}
	if got := leap.Last(instant(t, "2104-02-28T00:00:00Z")).Format(time.DateOnly); got != "2096-02-29" {
		t.Errorf("the one before 2104 is %s", got)
	}
}

func TestWrongExpressionsSayWhatIsWrong(t *testing.T) {
	for expression, want := range map[string]string{
		"":                         "it is empty",
		" ":                        "it is empty",
		"TZ=Europe/Rome":           "write it in timeZone", // cron/v3 panics for it
		"CRON_TZ=UTC 0 0 * * *":    "write it in timeZone",
		"tz=UTC 0 0 * * *":         "write it in timeZone",
		"0 0 31 2 *":               "it never comes: no month that it names has such a day (day of month 31, month 2)",
		"0 0 31 4,6,9,11 *":        "it never comes",
		"0 0 30 FEB ?":             "it never comes",
		", * * * *":                `minute ",": something is missing`, // cron/v3 takes it, and searches for years
		"*-5 * * * *":              "* is not a number from 0 to 59",   // cron/v3 takes it for *
		"*/0 * * * *":              "a step is a number from 1 to 59",
		"*/60 * * * *":             "a step is a number from 1 to 59, as in */10", // cron/v3 takes it for 0
		"60 * * * *":               "60 is not a number from 0 to 59",
		"0 24 * * *":               `hour "24"`,
		"0 0 0 * *":                `day of month "0"`,
		"0 0 * 13 *":               "or a name from JAN to DEC",
		"0 0 * * 7":                "a Sunday is 0 or SUN",
		"0 0 * * FRI-SUN":          "the range FRI-SUN runs backwards: write two with a comma between them",
		"0 0 L * *":                "L, W and # are not known",
		"+5 * * * *":               "+5 is not a number",
		"0 0 * *":                  "it has 4 fields, and needs five",
		"0 0 0 * * *":              "it has 6 fields, and needs five",
		"0 0 * *\u00a0*":           "it has 4 fields",
		"@reboot":                  "the words are @yearly",
		"@Daily":                   "the words are @yearly",
		"@every":                   `"" is no duration`,
		"@every -5m":               "@every takes whole seconds, from 1m to 8784h", // cron/v3 makes a second of it
		"@every 1ns":               "@every takes whole seconds",
		"@every 9000h":             "@every takes whole seconds",
		"@every 1.5":               `"1.5" is no duration`,
		strings.Repeat("1,", 3000): "it is longer than 256 characters",
	} {
		if _, err := schedule.Parse(expression, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", expression, err, want)
		}
	}
}

func TestZones(t *testing.T) {
	for _, zone := range []string{"Local", "Europe/Nowhere", "../../etc/passwd", "/etc/passwd", "CEST", "UTC+2", " "} {
		if _, err := schedule.Parse("0 0 * * *", zone); err == nil || !strings.Contains(err.Error(), "IANA") {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
	for _, zone := range []string{"", "UTC", "Europe/Berlin", "Etc/GMT-2", "America/Argentina/Ushuaia"} {
		if _, err := schedule.Parse("0 0 * * *", zone); err != nil {
			t.Errorf("zone %q: %v", zone, err)
		}
	}
}

func TestWindowsOverTheWeekendOfDaylightSaving(t *testing.T) {
	ws, err := schedule.ParseWindows([]schedule.Window{{Kind: schedule.Deny, Schedule: "0 17 * * FRI", Duration: 63 * time.Hour, TimeZone: "Europe/Berlin"}})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"2026-03-21T12:00:00Z": "2026-03-23T08:00:00+01:00", // as it is meant
		"2026-03-28T12:00:00Z": "2026-03-30T09:00:00+02:00", // the clock has lost an hour, the window has not
		"2026-10-24T12:00:00Z": "2026-10-26T07:00:00+01:00",
	} {
		if state := ws.At(instant(t, at)); state.Open || !state.Opens.Equal(instant(t, want)) {
			t.Errorf("at %s: %+v, want it closed until %s", at, state, want)
		}
	}
}

func TestEdgesOfWindows(t *testing.T) {
	ws, err := schedule.ParseWindows([]schedule.Window{
		{Kind: schedule.Allow, Schedule: "0 8 * * *", Duration: time.Hour},
		{Kind: schedule.Allow, Schedule: "0 9 * * *", Duration: time.Hour},
		{Kind: schedule.Deny, Schedule: "30 9 * * *", Duration: 10 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]schedule.State{
		"2026-11-28T07:59:59Z": {By: -1, Opens: instant(t, "2026-11-28T08:00:00Z"), Closes: instant(t, "2026-11-28T09:30:00Z")},
		"2026-11-28T08:00:00Z": {Open: true, By: 0, Closes: instant(t, "2026-11-28T09:30:00Z"), Opens: instant(t, "2026-11-28T09:40:00Z")},
		"2026-11-28T09:00:00Z": {Open: true, By: 1, Closes: instant(t, "2026-11-28T09:30:00Z"), Opens: instant(t, "2026-11-28T09:40:00Z")},
		"2026-11-28T09:30:00Z": {By: 2, Opens: instant(t, "2026-11-28T09:40:00Z"), Closes: instant(t, "2026-11-28T10:00:00Z")},
		"2026-11-28T10:00:00Z": {By: -1, Opens: instant(t, "2026-11-29T08:00:00Z"), Closes: instant(t, "2026-11-29T09:30:00Z")},
	} {
		got := ws.At(instant(t, at))
		if got.Open != want.Open || got.By != want.By || !got.Opens.Equal(want.Opens) || !got.Closes.Equal(want.Closes) {
			t.Errorf("at %s: %+v, want %+v", at, got, want)
		}
	}
	if i := ws.Opening(instant(t, "2026-11-29T08:00:00Z")); i != 0 {
		t.Errorf("at eight it opens by %d", i)
	}
	if i := ws.Opening(instant(t, "2026-11-28T09:40:00Z")); i != -1 {
		t.Errorf("when the Deny is over it opens by %d", i)
	}
}

// Windows that are longer than the time from one to the next have no end, and it takes no endless time to say so.
func TestWindowsThatNeverEnd(t *testing.T) {
	for _, w := range []schedule.Window{
		{Kind: schedule.Deny, Schedule: "* * * * *", Duration: time.Minute},
		{Kind: schedule.Deny, Schedule: "0 0 * * *", Duration: 36 * time.Hour},
		{Kind: schedule.Deny, Schedule: "* * * * *", Duration: schedule.MaxDuration},
		{Kind: schedule.Deny, Schedule: "@every 1m", Duration: schedule.MaxDuration},
	} {
		ws, err := schedule.ParseWindows([]schedule.Window{w})
		if err != nil {
			t.Fatal(err)
		}
		now := instant(t, "2026-11-28T12:00:30Z")
		began := time.Now()
		state := ws.At(now)
		if state.Open || state.By != 0 || !state.Opens.IsZero() || !state.Closes.IsZero() || state.Seen.Sub(now) < 24*time.Hour {
			t.Errorf("%v: %+v", w, state)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%v: it took %s to say so", w, took)
		}
	}
	always, err := schedule.ParseWindows([]schedule.Window{{Kind: schedule.Allow, Schedule: "0 0 * * *", Duration: 24 * time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	if state := always.At(instant(t, "2026-11-28T00:00:00Z")); !state.Open || !state.Closes.IsZero() {
		t.Errorf("an Allow around the clock: %+v", state)
	}
	if none := (schedule.Windows{}); !none.None() || !none.At(time.Now()).Open {
		t.Error("no windows are closed")
	}
}

func TestWrongWindowsAreNamed(t *testing.T) {
	good := schedule.Window{Kind: schedule.Deny, Schedule: "0 0 * * *", Duration: time.Hour}
	for want, change := range map[string]func(*schedule.Window){
		`[1]: kind "" is neither Allow nor Deny`:     func(w *schedule.Window) { w.Kind = "" },
		"[1]: duration is shorter than a second":     func(w *schedule.Window) { w.Duration = 0 },
		"[1]: duration is shorter than":              func(w *schedule.Window) { w.Duration = -time.Hour },
		"[1]: duration is longer than 744h":          func(w *schedule.Window) { w.Duration = schedule.MaxDuration + 1 },
		`[1]: read "0 0 31 2 *": it never comes`:     func(w *schedule.Window) { w.Schedule = "0 0 31 2 *" },
		`[1]: time zone "Mars/Olympus" is not known`: func(w *schedule.Window) { w.TimeZone = "Mars/Olympus" },
	} {
		bad := good
		change(&bad)
		if _, err := schedule.ParseWindows([]schedule.Window{good, bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzParse : no expression panics, and each that is taken has slots, which Next and Last agree upon, soon found.
func FuzzParse(f *testing.F) {
	for _, expression := range append(expressions(), "TZ=Europe/Rome", "CRON_TZ= 0 0 * * *", ", * * * *", "*-5 * * * *", "0 0 31 2 *", "0 0 29 2 *", "@every 1h30m", "@", "0 0 ? jan-MAR sun") {
		f.Add(expression, "Europe/Berlin", int64(1774746000))
	}
	f.Add("30 0 * * *", "Africa/Monrovia", int64(0))
	f.Fuzz(func(t *testing.T, expression, zone string, unix int64) {
		c, err := schedule.Parse(expression, zone)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<33), 0) // up to the year 2242
		next := c.Next(now)
		if !next.After(now) {
			t.Fatalf("%q in %q: the next slot after %s is %s", expression, zone, now, next)
		}
		if last := c.Last(next); !last.Equal(next) {
			t.Fatalf("%q in %q: the last slot at %s is %s", expression, zone, next, last)
		}
		if last := c.Last(now); !last.IsZero() && (last.After(now) || !c.Next(last).Equal(next)) {
			t.Fatalf("%q in %q: between %s and %s there is %s", expression, zone, last, next, c.Next(last))
		}
	})
}

// FuzzWindows : what At says holds just before and at the instants that it names.
func FuzzWindows(f *testing.F) {
	f.Add("0 17 * * 5", int64(63*3600), "0 8 * * *", int64(36000), "Europe/Berlin", int64(1774746000))
	f.Add("* * * * *", int64(60), "@every 90m", int64(1), "Pacific/Apia", int64(1325203200))
	f.Fuzz(func(t *testing.T, deny string, denied int64, allow string, allowed int64, zone string, unix int64) {
		ws, err := schedule.ParseWindows([]schedule.Window{
			{Kind: schedule.Deny, Schedule: deny, Duration: time.Duration(denied%(1<<22)) * time.Second, TimeZone: zone},
			{Kind: schedule.Allow, Schedule: allow, Duration: time.Duration(allowed%(1<<22)) * time.Second, TimeZone: zone},
		})
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<33), 0)
		state := ws.At(now)
		change := state.Opens
		if state.Open {
			change = state.Closes
		}
		if change.IsZero() {
			return
		}
		if !change.After(now) || !state.Seen.Equal(change) || ws.At(change).Open == state.Open || ws.At(change.Add(-1)).Open != state.Open {
			t.Fatalf("at %s: %+v; at %s: %+v; just before: %+v", now, state, change, ws.At(change), ws.At(change.Add(-1)))
		}
	})
}

func BenchmarkAt(b *testing.B) {
	ws, err := schedule.ParseWindows([]schedule.Window{
		{Kind: schedule.Deny, Schedule: "0 17 * * FRI", Duration: 63 * time.Hour, TimeZone: "Europe/Berlin"},
		{Kind: schedule.Allow, Schedule: "0 8 * * MON-FRI", Duration: 10 * time.Hour, TimeZone: "Europe/Berlin"},
	})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for b.Loop() {
		ws.At(now)
	}
}
