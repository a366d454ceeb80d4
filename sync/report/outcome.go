package report

import (
	"cmp"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/render/check/unmanaged"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Stage is a step of a pass. It decides how a failure is called and when it is tried again.
type Stage string

// The stages of a pass, in their order.
const (
	StageFetch      Stage = "fetch"
	StageVerify     Stage = "verify"
	StageRender     Stage = "render"
	StageCheck      Stage = "check"
	StageDependency Stage = "dependency"
	StagePromotion  Stage = "promotion"
	StagePlan       Stage = "plan"
	StageGuard      Stage = "guard"
	StageWindow     Stage = "window"
	StageApply      Stage = "apply"
	StageHealth     Stage = "health"
)

// Again says when a failure of the check, or of the verification, is looked at again without another commit. The other stages decide by themselves.
type Again string

// The times to look again.
const (
	// AgainNever : the commit has the fault by itself.
	AgainNever Again = ""
	// AgainAtInterval : the fault is one beside what lives in the cluster, which may change.
	AgainAtInterval Again = "interval"
	// AgainSoon : it could not be looked into, which is not the commit's fault.
	AgainSoon Again = "soon"
)

// Cause is what made a pass apply something.
type Cause string

// The causes of an apply.
const (
	CauseCommit  Cause = "commit"
	CauseSpec    Cause = "spec"
	CauseConfirm Cause = "confirm"
	CauseDrift   Cause = "drift"
	// CauseOverride : a person had it applied although a window was closed.
	CauseOverride Cause = "override"
	// CausePromotion : the environment that is followed has proven it.
	CausePromotion Cause = "promotion"
	// CauseRollback : a person pinned an earlier revision, or the agent went back to one because a newer one was not healthy.
	CauseRollback Cause = "rollback"
)

// Outcome is all that one pass did, and the only thing that reporters see.
type Outcome struct {
	// Generation of the Mooring that the pass worked for.
	Generation int64
	// Reason of the Ready condition: one of v1alpha1's closed list.
	Reason string
	// Stage that failed; empty when none did.
	Stage Stage
	// Again says when a failure of the check or of the verification is looked at again.
	Again Again
	// Err is why the newest commit is not in force; nil when it is.
	Err error
	// KeepErr is why drift could not be corrected to the applied revision while the newest one is refused.
	KeepErr error

	// Interval is how often a pass is made; zero when the pass does not say.
	Interval time.Duration
	// GitInterval is how far its questions to Git are apart: Interval, or the slots of a schedule around now; zero when the pass does not say.
	GitInterval time.Duration
	// GitAnswered is when Git told what Newest is; zero when it did not.
	GitAnswered time.Time
	// Newest is what Git has; zero when Git could not be asked.
	Newest repos.Revision
	// Applied is what is in force after the pass; zero when nothing is.
	Applied repos.Revision
	// Digest over the objects of Applied.
	Digest string
	// Author and Subject of the commit of Applied: who wrote it, and the first line of its message. Empty when they are not known.
	Author, Subject string
	// SignedBy are those whose signatures let the newest revision be taken up; empty where none was asked for.
	SignedBy string
	// Cause of what was applied.
	Cause Cause
	// Because of what, in the words of the person or the stage that caused it; often empty.
	Because string
	// Pin that holds a revision; nil when none does.
	Pin *v1alpha1.Pin
	// Rollback is the newest revision, taken back because it was not healthy; nil when it was not.
	Rollback *v1alpha1.RollbackStatus
	// Follows is true where another environment is followed, Promotion what the pass found out about it; nil when it found out nothing.
	Follows   bool
	Promotion *Promotion
	// Unfinished is the revision whose apply was begun and broken off, since Applied came into force; empty when none was.
	Unfinished string
	// WordUsed is true when the Mooring's confirmation counts no longer: what it was given for is in force, or another revision is.
	WordUsed bool
	// Override is the reason of the person who had a closed window overridden for the newest revision; empty when none was.
	Override string
	// OverrideUsed is true when that word counts no longer, whether there was a closed window or not.
	OverrideUsed bool
	// Scheduled is true where a schedule says when Git is asked, Slot up to which of its slots it was; zero when that is not known.
	Scheduled bool
	Slot      time.Time
	// Window says whether windows are open; nil where there are none.
	Window *bool
	// Held is why the plan of a preview waits for a window; nil when it does not.
	Held error
	// AdoptionUsed is true when the word by which objects are taken over from other tools counts no longer.
	AdoptionUsed bool

	// Awaits are the Moorings that must be ready first, and are not.
	Awaits []types.NamespacedName
	// Findings about the newest revision, those that block first.
	Findings []check.Finding
	// Standing is the status in which an agent before this one wrote what it found; Findings and NotChecked are empty then. nil when this one checked.
	Standing *v1alpha1.MooringStatus
	// Accepted stands for the newest revision and all that it was checked by, when it was accepted; empty when it was not.
	Accepted string
	// FailOn is the mildest level of a finding that blocks; empty means Error.
	FailOn check.Level
	// NotChecked are the questions about the newest revision that could not be answered.
	NotChecked []check.Gap
	// Unmanaged is what nobody manages and bears on the applied revision, if LookedBeside says so; else it is as it was.
	Unmanaged    []unmanaged.Finding
	LookedBeside bool
	// Plan that was run, or that a guard refused, or that a preview ends with; nil when it did not come to one.
	Plan *apply.Plan
	// Drift that the pass found, put right or not, in the order of the plan. It says nothing when nothing was run.
	Drift []Drift
	// Fights that go on; those that this pass saw begin, and those that it saw to be over.
	Fights, FightsBegun, FightsOver []Fight
	// Result of the run; nil when nothing was run.
	Result *apply.Result
	// Unasked is why istiod was not asked whether the proxies have what was written, where a pause had to do; empty when it was, or when
	// there was nothing to ask.
	Unasked string
	// Waiting since this instant for the applied objects to become healthy; zero when not.
	Waiting time.Time
	// Took is the time that each stage needed.
	Took map[Stage]time.Duration
	// Finished is when the pass was over.
	Finished time.Time
}

// GaveWay is why a run was ended while it waited at a gate: there is something newer to do. It is no failure: the next pass begins at once, and plans
// from what lives.
type GaveWay struct {
	// Newer is the revision that Git has by now; zero when it is not for a commit.
	Newer repos.Revision
	// Cause of it otherwise.
	Cause error
}

// Error says what is newer.
func (g *GaveWay) Error() string {
	if g.Cause != nil {
		return g.Cause.Error()
	}
	return g.Newer.String() + " is newer"
}

// Unwrap gives the cause.
func (g *GaveWay) Unwrap() error { return g.Cause }

// GaveWay is why the run was ended in favour of the next pass; nil when it was not.
func (o Outcome) GaveWay() *GaveWay {
	g, _ := errors.AsType[*GaveWay](errors.Join(o.Err, o.KeepErr))
	return g
}

// RolledBack is the rollback that this pass has in force; nil when there is none, or when it was only decided upon.
func (o Outcome) RolledBack() *v1alpha1.RollbackStatus {
	if o.Rollback == nil || o.Applied.String() == o.Rollback.Bad {
		return nil
	}
	return o.Rollback
}

// Ready is true when the newest commit is in force and, where that is asked for, healthy.
func (o Outcome) Ready() bool {
	return o.Err == nil && o.KeepErr == nil && o.Stage == ""
}

// blocks says whether a finding keeps the newest commit out.
func (o Outcome) blocks(f check.Finding) bool {
	return f.Blocks(cmp.Or(o.FailOn, check.Error))
}
