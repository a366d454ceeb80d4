package schedule

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what a window does.
type Kind string

// The kinds of windows.
const (
	Allow Kind = "Allow"
	Deny  Kind = "Deny"
)

// MaxDuration of a window: the longest month. What is to be held for longer is not held by the calendar but by a person, and has an end that nobody knows.
const MaxDuration = 31 * 24 * time.Hour

// Window as a person writes it.
type Window struct {
	Kind Kind
	// Schedule is the expression by which it begins.
	Schedule string
	Duration time.Duration
	// TimeZone of the expression; empty is UTC.
	TimeZone string
}

// Windows that count together. The zero value is none, which is always open. They do not change, and may be used by many at once.
type Windows struct {
	all   []window
	allow bool // there is an Allow
}

type window struct {
	Window
	starts *Cron
}

// ParseWindows reads windows. An error names the first one that is wrong by its index, as [2].
func ParseWindows(written []Window) (Windows, error) {
	var ws Windows
	for i, w := range written {
		read, err := w.parse()
		if err != nil {
			return Windows{}, fmt.Errorf("[%d]: %w", i, err)
		}
		ws.all = append(ws.all, read)
		ws.allow = ws.allow || w.Kind == Allow
	}
	return ws, nil
}

func (w Window) parse() (window, error) {
	switch {
	case w.Kind != Allow && w.Kind != Deny:
		return window{}, fmt.Errorf("kind %q is neither Allow nor Deny", w.Kind)
	case w.Duration < time.Second:
		return window{}, errors.New("duration is shorter than a second")
	case w.Duration > MaxDuration:
		return window{}, errors.New("duration is longer than 744h, which are 31 days: suspend instead, until somebody resumes")
	}
	starts, err := Parse(w.Schedule, w.TimeZone)
	return window{w, starts}, err
}

// State of windows at an instant.
type State struct {
	// Open is true when new revisions may be applied.
	Open bool
	// By is the index of the window that makes it so: the Allow that is on, or the Deny that is, the one that is on longest. Negative when no window is
	// on: then it is open because no Deny is, or closed because no Allow is.
	By int
	// Opens and Closes are the next time that it becomes so: when it is open, it closes first. Zero means that this is not in sight.
	Opens, Closes time.Time
	// Seen is up to when was looked for the first of them. It is the first of them where that is in sight.
	Seen time.Time
}

// sight bounds how many starts and ends of windows are looked at for one answer: windows that begin every minute are
// looked through for some days ahead, those of a person for many years.
const sight = 2000

// None is true when there are no windows.
func (ws Windows) None() bool { return len(ws.all) == 0 }

// Open is true when new revisions may be applied at t. It is told in microseconds, where At may have to look far ahead.
func (ws Windows) Open(t time.Time) bool {
	_, open := ws.on(t)
	return open
}

// At says how the windows are at t, and when that changes.
func (ws Windows) At(t time.Time) State {
	by, open := ws.on(t)
	s := State{Open: open, By: by}
	if open {
		if s.Closes, s.Seen = ws.closes(t); !s.Closes.IsZero() {
			s.Opens, _ = ws.opens(s.Closes)
		}
		return s
	}
	if s.Opens, s.Seen = ws.opens(t); !s.Opens.IsZero() {
		s.Closes, _ = ws.closes(s.Opens)
	}
	return s
}

// Name of a window, as [0] (Deny, 0 17 * * FRI, Europe/Berlin).
func (ws Windows) Name(i int) string {
	w := ws.all[i]
	return fmt.Sprintf("[%d] (%s, %s, %s)", i, w.Kind, w.starts, w.starts.Zone())
}

// Zone that a window's times of day are in; that of the first one for a negative index.
func (ws Windows) Zone(i int) *time.Location {
	if len(ws.all) == 0 {
		return time.UTC
	}
	return ws.all[max(i, 0)].starts.Zone()
}

// Opening is the window that opens the whole at an instant that At gave as Opens: an Allow that begins then; negative where it is a Deny that ends.
func (ws Windows) Opening(at time.Time) int {
	for i, w := range ws.all {
		if w.Kind == Allow && !w.starts.within(at.Add(-1), at).IsZero() {
			return i
		}
	}
	return -1
}

// on says which window decides at t.
func (ws Windows) on(t time.Time) (by int, open bool) {
	deny, allow := ws.longest(Deny, t), ws.longest(Allow, t)
	switch {
	case deny >= 0:
		return deny, false
	case allow >= 0:
		return allow, true
	}
	return -1, !ws.allow
}

// longest is the window of a kind that is on at t and ends last; negative when none is.
func (ws Windows) longest(kind Kind, t time.Time) int {
	found, end := -1, time.Time{}
	for i, w := range ws.all {
		if w.Kind != kind {
			continue
		}
		if e := w.end(t); !e.IsZero() && e.After(end) {
			found, end = i, e
		}
	}
	return found
}

// end of the last slot that the window is on by at t; zero when it is not on.
func (w window) end(t time.Time) time.Time {
	start := w.starts.within(t.Add(-w.Duration), t)
	if start.IsZero() {
		return time.Time{}
	}
	return start.Add(w.Duration)
}

// opens is the first instant from t on that is open; zero when there is none up to seen.
func (ws Windows) opens(t time.Time) (at, seen time.Time) {
	for range sight {
		if i := ws.longest(Deny, t); i >= 0 {
			t = ws.all[i].end(t)
			continue
		}
		if !ws.allow || ws.longest(Allow, t) >= 0 {
			return t, t
		}
		next := ws.next(Allow, t)
		if next.IsZero() {
			break
		}
		t = next
	}
	return time.Time{}, t
}

// closes is the first instant from t on that is closed, where t is open; zero when there is none up to seen.
func (ws Windows) closes(t time.Time) (at, seen time.Time) {
	deny := ws.next(Deny, t)
	if !ws.allow {
		return deny, deny
	}
	for range sight {
		i := ws.longest(Allow, t)
		if i < 0 {
			return t, t
		}
		if t = ws.all[i].end(t); !deny.IsZero() && !t.Before(deny) {
			return deny, deny
		}
	}
	return time.Time{}, t
}

// next start of a window of a kind after t; zero when there is none.
func (ws Windows) next(kind Kind, t time.Time) time.Time {
	var first time.Time
	for _, w := range ws.all {
		if w.Kind != kind {
			continue
		}
		if at := w.starts.Next(t); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}
