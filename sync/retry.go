package sync

import (
	"math/rand/v2"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Pauses between passes.
const (
	// firstRetry is the pause after a first failure to fetch or apply. Then it is as long as the trouble has lasted, which about doubles it each time, up to the interval.
	firstRetry = 5 * time.Second
	// healthPoll is the pause while a pass only waits for objects to become healthy.
	healthPoll = 2 * time.Second
	// jitter is the part of a pause that is added at random, so that many units do not ask at once.
	jitter = 0.1
)

// next is the pause before the next pass of a unit. Fetching and applying may work the
// next time, so they are tried sooner than the interval says, with growing pauses; so is a check that could not be made. Rendering, findings and
// guards answer the same until another commit is there: they wait for the interval.
//
// A fight has times of its own, which are not to be missed for a long interval. So has the calendar.
func (u *unit) next(m *v1alpha1.Mooring, out Outcome) time.Duration {
	pause := u.pause(m, out)
	if at := u.fights.wake(time.Now()); !at.IsZero() {
		pause = min(pause, time.Until(at)+time.Millisecond)
	}
	if at := u.soaks; !at.IsZero() {
		pause = min(pause, max(time.Until(at), 0)+time.Millisecond)
	}
	if at := u.wakes(m, time.Now()); !at.IsZero() {
		pause = min(pause, time.Until(at)+time.Millisecond)
	}
	return pause
}

func (u *unit) pause(m *v1alpha1.Mooring, out Outcome) time.Duration {
	interval := m.Spec.Interval.Duration
	if out.GaveWay() != nil {
		return time.Millisecond // something newer waits
	}
	if out.Reason == v1alpha1.ReasonProgressing {
		u.trouble = trouble{}
		return spread(min(healthPoll, interval))
	}
	if out.Rollback != nil && out.RolledBack() == nil {
		return time.Millisecond // it is taken back at once
	}
	if !retried(out) {
		u.trouble = trouble{}
		if out.Scheduled { // it is not Git that the interval is for
			return spread(interval)
		}
		return spread(u.untilGit(interval))
	}
	pause := max(firstRetry, u.trouble.lasts(out.Newest.Commit))
	pause = max(pause, asksToWait(out.Err))
	return spread(min(pause, interval))
}

// trouble is what passes are made again for before the interval is over. Its age counts, and not how many passes were made meanwhile: some are made because objects move.
type trouble struct {
	commit repos.Commit
	since  time.Time
}

// lasts says for how long there has been trouble with a commit, or with finding one.
func (t *trouble) lasts(commit repos.Commit) time.Duration {
	if t.since.IsZero() || t.commit != commit {
		*t = trouble{commit: commit, since: time.Now()}
	}
	return time.Since(t.since)
}

// untilGit is the rest of the interval: passes in between, which correct drift, do not put off the next question to Git.
func (u *unit) untilGit(interval time.Duration) time.Duration {
	if u.newestAt.IsZero() {
		return interval
	}
	return max(interval-time.Since(u.newestAt), time.Second)
}

// retried is true for a failure that trying again may cure, and for a pass that keeps what another Mooring may take.
func retried(out Outcome) bool {
	if out.KeepErr != nil || out.Err == nil && out.Plan != nil && out.Plan.Waits() {
		return true
	}
	switch out.Stage {
	case report.StageFetch, report.StagePlan, report.StageApply, report.StageDependency:
		return true
	}
	return out.Again == report.AgainSoon
}

func spread(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*jitter*float64(d))
}
