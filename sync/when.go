package sync

import (
	"fmt"
	"slices"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/schedule"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// What the calendar says about new commits, and why so:
//
//   - spec.schedule says when Git is asked. Between its slots a pass works for the commit that is known, so that drift is corrected as always. Up to which slot
//     Git was asked is in the status, one write a slot: an agent that was down asks once for all that it missed, and one that was merely started anew does not ask
//     before it is time. Git is asked at once for a first commit, after a change of spec.source, and when a person asks.
//   - spec.windows hold the taking up of a revision, like any other refusal: what was applied last is kept in force. What a new commit does not change need
//     not wait, so a commit that renders to what is in force is taken up.
//   - What was begun is finished, at a gate and by the passes after a failure, also when a window has closed meanwhile: half a commit is worse than a late
//     one. For the same reason no newer commit ends a wait at a gate while a window is closed, since it would not be taken up. A person ends it as ever. Where
//     nothing is begun any more, because Git has another commit by then, or because a crash left nobody who knows, what was applied last is put back,
//     and the commit waits.

// Timetable is what spec.schedule, spec.timeZone and spec.windows say.
type Timetable struct {
	// Slots at which Git is asked; nil is at each interval.
	Slots *schedule.Cron
	// Windows in which new revisions may be applied.
	Windows schedule.Windows
}

// TimetableOf a Mooring. An error is one of the spec, which no commit cures.
func TimetableOf(m *v1alpha1.Mooring) (Timetable, error) {
	var t Timetable
	var err error
	spec := m.Spec
	if spec.Schedule != "" {
		if t.Slots, err = schedule.Parse(string(spec.Schedule), string(spec.TimeZone)); err != nil {
			return Timetable{}, &mendable{error: fmt.Errorf("read spec.schedule: %w", err), mend: editMooring}
		}
	}
	var windows []schedule.Window
	for _, w := range spec.Windows {
		zone := w.TimeZone
		if zone == "" {
			zone = spec.TimeZone
		}
		windows = append(windows, schedule.Window{Kind: schedule.Kind(w.Kind), Schedule: string(w.Schedule), Duration: w.Duration.Duration, TimeZone: string(zone)})
	}
	if t.Windows, err = schedule.ParseWindows(windows); err != nil {
		return Timetable{}, &mendable{error: fmt.Errorf("read spec.windows%w", err), mend: editMooring}
	}
	return t, nil
}

const editMooring = "no commit mends that: edit the Mooring"

// timing is a timetable that was read, and of what.
type timing struct {
	schedule v1alpha1.CronExpression
	zone     v1alpha1.TimeZone
	windows  []v1alpha1.Window
	read     Timetable
	err      error
	// change of the windows that comes next, once it was looked for.
	change time.Time
}

// timetable of the Mooring, read once.
func (u *unit) timetable(m *v1alpha1.Mooring) (Timetable, error) {
	spec := m.Spec
	if k := u.timing; k.schedule != spec.Schedule || k.zone != spec.TimeZone || !slices.Equal(k.windows, spec.Windows) {
		u.timing = timing{schedule: spec.Schedule, zone: spec.TimeZone, windows: slices.Clone(spec.Windows)}
		u.timing.read, u.timing.err = TimetableOf(m)
	}
	return u.timing.read, u.timing.err
}

// answered is up to which slot of a schedule Git was asked.
type answered struct {
	schedule v1alpha1.CronExpression
	zone     v1alpha1.TimeZone
	slot     time.Time
}

// due says whether Git is to be asked now by a schedule, or because nobody knows what it would say.
func (u *unit) due(m *v1alpha1.Mooring, slots *schedule.Cron, now time.Time) bool {
	u.recall(m, slots, now)
	if u.newest.IsZero() || u.newestAsk != m.Annotations[v1alpha1.ReconcileAnnotation] || u.newestOf != sourceOf(m) {
		return true
	}
	return slots.Last(now).After(u.answered.slot)
}

// recall finds out up to which slot Git was asked, and what it said. A schedule that is new begins now: what would have been its slots before has nothing to make
// up for. So does one that was written while no agent was there, and then Git is asked, as for every other change in such a time.
func (u *unit) recall(m *v1alpha1.Mooring, slots *schedule.Cron, now time.Time) {
	if u.answered.schedule == m.Spec.Schedule && u.answered.zone == m.Spec.TimeZone {
		return
	}
	u.answered = answered{m.Spec.Schedule, m.Spec.TimeZone, slots.Last(now)}
	if !u.newest.IsZero() || m.Status.ObservedGeneration != m.Generation {
		return
	}
	if s := m.Status.LastScheduleTime; s != nil {
		u.answered.slot = s.Time
	}
	request := m.Annotations[v1alpha1.ReconcileAnnotation]
	rev, err := repos.ParseRevision(m.Status.LastAttemptedRevision)
	if applied, _ := u.inForce(m); err == nil && !applied.IsZero() && (request == "" || request == m.Status.LastHandledReconcileAt) {
		u.newest, u.newestAsk, u.newestOf = rev, request, sourceOf(m)
	}
}

// sourceOf is which repository and ref a Mooring follows.
func sourceOf(m *v1alpha1.Mooring) string {
	return m.Spec.Source.URL + " " + ref(m).String()
}

// asksGit says whether this pass is to ask which commit is the newest.
func (p *pass) asksGit() bool {
	slots := p.when.Slots
	switch {
	case p.previewing || p.override() != "":
		return true
	case slots == nil || p.out.Applied.IsZero(): // a first commit does not wait
		return !p.unit.fresh(p.mooring, p.woken)
	}
	return p.unit.due(p.mooring, slots, time.Now())
}

// asked notes what Git said, and which slots that is the answer to.
func (p *pass) asked(at time.Time, rev repos.Revision) {
	p.unit.asked(p.mooring, rev)
	if slots := p.when.Slots; slots != nil {
		p.unit.answered = answered{p.mooring.Spec.Schedule, p.mooring.Spec.TimeZone, slots.Last(at)}
	}
}

// held is why a target may not be taken up now: no window is open for it. It notes the word of a person that lets it through all the same.
func (p *pass) held(t *target) error {
	if p.when.Windows.None() || t.digest == p.out.Digest && !p.out.Applied.IsZero() {
		return nil
	}
	now := time.Now()
	switch begun := p.unit.overridden; {
	case p.unit.unfinished == t.rev.String(): // what was begun is finished
		if begun.revision == p.unit.unfinished {
			p.out.Override = begun.reason
		}
		return nil
	case p.when.Windows.Open(now):
		return nil
	case p.override() != "" && !p.previewing:
		p.out.Override = p.override()
		return nil
	}
	return &StageError{Stage: report.StageWindow, Err: &mendable{
		error: closed(p.when.Windows, p.when.Windows.At(now)),
		mend:  fmt.Sprintf("to apply it now: mooring sync %s -n %s --override-window REASON", p.mooring.Name, p.mooring.Namespace),
	}}
}

// closed says which window holds, and until when. It holds an instant, which stays the same while nothing changes, and no time from now.
func closed(windows schedule.Windows, state schedule.State) error {
	until := "there is no end of that in sight"
	if !state.Opens.IsZero() {
		opens := state.By
		if i := windows.Opening(state.Opens); i >= 0 {
			opens = i
		}
		until = "it is open again at " + state.Opens.In(windows.Zone(opens)).Format("2006-01-02 15:04 MST")
	}
	if state.By < 0 {
		return fmt.Errorf("spec.windows is closed: no Allow is on; %s", until)
	}
	return fmt.Errorf("spec.windows%s is on; %s", windows.Name(state.By), until)
}

// overridden is the revision that a person had applied although a window was closed, and why.
type overridden struct{ revision, reason string }

// override is the reason of a person who wants the newest commit whatever windows say; empty for none.
func (p *pass) override() string { return p.mooring.Annotations[v1alpha1.OverrideWindowAnnotation] }

// overrideUsed says whether that word has been answered: something became of the newest commit. What did not come that far is tried again.
func (p *pass) overrideUsed() bool {
	if p.override() == "" || p.previewing || p.removing || p.out.Newest.IsZero() {
		return false
	}
	switch p.out.Stage {
	case report.StageFetch, report.StagePlan:
		return false
	}
	return p.out.Again != report.AgainSoon && (p.out.GaveWay() == nil || p.out.Result != nil)
}

// wakes is when the calendar asks for a pass: at the next slot, and when windows open or close; zero for never.
func (u *unit) wakes(m *v1alpha1.Mooring, now time.Time) time.Time {
	when, err := u.timetable(m)
	if err != nil {
		return time.Time{}
	}
	var at time.Time
	if when.Slots != nil {
		at = when.Slots.Next(now)
	}
	if !when.Windows.None() {
		if !now.Before(u.timing.change) {
			u.timing.change = when.Windows.At(now).Seen
		}
		if change := u.timing.change; !change.IsZero() && (at.IsZero() || change.Before(at)) {
			at = change
		}
	}
	return at
}

// untilNewer is how long a pass that waits at a gate does not ask Git for another commit.
func (p *pass) untilNewer() time.Duration {
	if p.when.Slots == nil {
		return spread(p.mooring.Spec.Interval.Duration)
	}
	return time.Until(p.when.Slots.Next(time.Now())) + time.Millisecond
}
