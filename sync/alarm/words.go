package alarm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// How long a message may be. Chats cut what is longer, and some refuse it.
const (
	maxTitle = 200
	maxText  = 3500
)

// Message is what a template sees.
type Message struct {
	// Alarm is namespace/name of the Alarm.
	Alarm string
	// Firing are faults, Resolved those that are over, Happened what has no end.
	Firing, Resolved, Happened []Group
	// Title and Text are the agent's own words.
	Title, Text string
}

// Group is what is the same about some Moorings.
type Group struct {
	Event   v1alpha1.AlarmEvent
	Reason  string
	Message string
	// Moorings as namespace/name, and Names, the first few of them as text.
	Moorings []string
	Names    string
	Count    int
}

// messageOf a batch.
func messageOf(alarm string, changes []change, notes []note) *Message {
	m := &Message{Alarm: alarm}
	firing, resolved, happened := groups{}, groups{}, groups{}
	for _, c := range changes {
		to := &firing
		if c.over {
			to = &resolved
		}
		to.add(c.fault.cause(), c.fault.event, c.fault.reason, c.fault.message, c.place.mooring.String())
	}
	for _, n := range notes {
		happened.add(cause(n.event)+" "+cause(n.message), n.event, "", n.message, n.mooring.String())
	}
	m.Firing, m.Resolved, m.Happened = firing.all(), resolved.all(), happened.all()
	m.Title, m.Text = m.title(), m.text()
	return m
}

// groups of what has the same cause, in the order of the first of each.
type groups struct {
	list []*Group
	at   map[cause]*Group
}

func (g *groups) add(c cause, event v1alpha1.AlarmEvent, reason, message, mooring string) {
	one := g.at[c]
	if one == nil {
		if g.at == nil {
			g.at = map[cause]*Group{}
		}
		one = &Group{Event: event, Reason: reason, Message: message}
		g.at[c] = one
		g.list = append(g.list, one)
	}
	if !slices.Contains(one.Moorings, mooring) {
		one.Moorings = append(one.Moorings, mooring)
	}
}

func (g *groups) all() []Group {
	var all []Group
	for _, one := range g.list {
		one.Count = len(one.Moorings)
		one.Names = strings.Join(one.Moorings[:min(shown, one.Count)], ", ")
		if more := one.Count - shown; more > 0 {
			one.Names += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, *one)
	}
	return all
}

// verb of an event, for a group that has it now or that had it.
func (g Group) verb(over bool) string {
	s := map[v1alpha1.AlarmEvent]string{
		v1alpha1.AlarmDrift:          "drifted",
		v1alpha1.AlarmDriftCorrected: "drifted and was put back",
		v1alpha1.AlarmFailed:         "failed",
		v1alpha1.AlarmGuarded:        "waits for a word",
		v1alpha1.AlarmFight:          "is fought over",
		v1alpha1.AlarmUnmanaged:      "has unmanaged objects beside it",
		v1alpha1.AlarmPromotion:      "has a proven commit that does not come by itself",
		v1alpha1.AlarmApplied:        "applied a commit",
	}[g.Event]
	if over {
		s = "recovered"
	}
	return s
}

// headline of a group: shop/prod failed (ApplyFailed).
func (g Group) headline(over bool) string {
	s := g.Names
	if g.Count > 1 {
		s = fmt.Sprintf("%d Moorings", g.Count)
	}
	s += ": " + g.verb(over)
	switch {
	case over:
		s += fmt.Sprintf(" (%s, %s)", g.Event, g.Reason)
	case g.Reason != "" && g.Event == v1alpha1.AlarmFailed:
		s += " (" + g.Reason + ")"
	}
	return s
}

func (m *Message) title() string {
	var parts []string
	m.each(func(g Group, over bool) { parts = append(parts, g.headline(over)) })
	title := "Mooring " + strings.Join(parts[:min(shown, len(parts))], "; ")
	if more := len(parts) - shown; more > 0 {
		title += fmt.Sprintf("; and %d more", more)
	}
	return clip(title, maxTitle)
}

func (m *Message) text() string {
	var lines []string
	m.each(func(g Group, over bool) {
		line := g.headline(over)
		if g.Count > 1 {
			line += ": " + g.Names
		}
		if text := strings.TrimSpace(g.Message); text != "" && !over {
			line += "\n" + text
		}
		lines = append(lines, line)
	})
	return clip(strings.Join(lines, "\n\n"), maxText)
}

func (m *Message) each(do func(g Group, over bool)) {
	for _, g := range m.Firing {
		do(g, false)
	}
	for _, g := range m.Resolved {
		do(g, true)
	}
	for _, g := range m.Happened {
		do(g, false)
	}
}

// status of a message in a word: firing, resolved or happened, the first that there is something of.
func (m *Message) status() string {
	switch {
	case len(m.Firing) > 0:
		return "firing"
	case len(m.Resolved) > 0:
		return "resolved"
	}
	return "happened"
}

// events of a message, sorted.
func (m *Message) events() []string {
	var all []string
	m.each(func(g Group, over bool) {
		if over {
			all = append(all, string(v1alpha1.AlarmRecovered))
		}
		all = append(all, string(g.Event))
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// moorings of a message, sorted.
func (m *Message) moorings() []string {
	var all []string
	m.each(func(g Group, _ bool) { all = append(all, g.Moorings...) })
	slices.SortFunc(all, cmp.Compare)
	return slices.Compact(all)
}
