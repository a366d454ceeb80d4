package sync

import (
	"fmt"
	"slices"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// A commit is proven in an environment when it was in force there for the soak time in one stretch, all that time with nothing against it. The environment's own
// history tells: since when it has been well, when another revision began to take its place, and whether it failed. So nobody has to watch all the time, an agent
// that starts finds the same, and a commit that was proven stays so when the next one takes its place.
//
// What is put in force again by a rollback is no candidate: who goes back to last week's revision in staging does not mean production.

// candidate is a commit of the environment that is followed and that is not here yet.
type candidate struct {
	rev     repos.Revision
	subject string
	// state is empty for one that is proven, else why it is not, or not any more; in words in waits.
	state, waits string
	// until is when it will be proven, if nothing happens; zero when that is not known.
	until time.Time
}

// candidates of an environment, newest first, down to the commit that is here.
func candidates(from *v1alpha1.Mooring, here repos.Commit, soak time.Duration, now time.Time) []candidate {
	var found []candidate
	for i, e := range from.Status.History {
		rev, err := repos.ParseRevision(e.Revision)
		if err != nil || e.By == string(report.CauseRollback) {
			continue
		}
		if rev.Commit == here {
			break
		}
		if slices.ContainsFunc(found, func(c candidate) bool { return c.rev.Commit == rev.Commit }) {
			continue // its newest time counts
		}
		c := candidate{rev: rev, subject: e.Subject}
		switch {
		case e.Failed != "":
			c.state, c.waits = v1alpha1.CandidateFailed, "was not healthy in time there: "+e.Failed
		case i > 0 || e.ReplacedAt != nil:
			c.replaced(e, soak)
		default:
			c.inForce(from, e, soak, now)
		}
		found = append(found, c)
	}
	return found
}

// replaced says what became of a commit that is not in force there any more.
func (c *candidate) replaced(e v1alpha1.HistoryEntry, soak time.Duration) {
	if e.HealthySince == nil || e.ReplacedAt == nil || e.ReplacedAt.Sub(e.HealthySince.Time) < soak {
		c.state, c.waits = v1alpha1.CandidateSkipped, "was replaced there before it was proven"
	}
}

// inForce says how the commit that is in force there fares.
func (c *candidate) inForce(from *v1alpha1.Mooring, e v1alpha1.HistoryEntry, soak time.Duration, now time.Time) {
	switch {
	case from.Spec.Suspend:
		c.state, c.waits = v1alpha1.ReasonNotHealthy, "is in force there, but nobody looks after it: that Mooring is suspended"
	case e.HealthySince == nil:
		c.state, c.waits = v1alpha1.ReasonNotHealthy, "is in force there, but not healthy, or with drift or errors"
	case now.Before(e.HealthySince.Add(soak)):
		c.until = e.HealthySince.Add(soak)
		c.state, c.waits = v1alpha1.ReasonSoaking, fmt.Sprintf("soaks until %s", c.until.UTC().Format(time.RFC3339))
	}
}
