package report

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Promotion is what a pass found out about the environment that is followed.
type Promotion struct {
	// From is the Mooring that is followed, as namespace/name.
	From string
	// Reason and Message of the condition Promoted.
	Reason, Message string
	// Candidates that are newer than what is here, newest first.
	Candidates []v1alpha1.PromotionCandidate
	// Promoted is the revision that this pass let through; zero when it let none.
	Promoted repos.Revision
	// PullRequest of the proposal; nil where there is none.
	PullRequest *v1alpha1.PullRequestStatus
	// WordUsed is true when a person's approval has done its work.
	WordUsed bool
}

func (p *Promotion) status() metav1.ConditionStatus {
	if p.Reason == v1alpha1.ReasonUpToDate {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

func promotion(known *v1alpha1.PromotionStatus, out Outcome) *v1alpha1.PromotionStatus {
	s := &v1alpha1.PromotionStatus{}
	if known != nil {
		s = known.DeepCopy()
	}
	w := out.Promotion
	s.Candidates, s.PullRequest = w.Candidates, w.PullRequest
	if rev := w.Promoted.String(); rev != "" && rev != s.Revision {
		s.Revision, s.PromotedAt = rev, new(metav1.NewTime(out.Finished.Truncate(time.Second)))
	}
	return s
}

// promotions tells when what a promotion waits for is another thing than before, and when one is done.
func promotions(before, after v1alpha1.MooringStatus, out Outcome) []Event {
	w := out.Promotion
	if w == nil {
		return nil
	}
	var events []Event
	if rev := w.Promoted.String(); rev != "" && (before.Promotion == nil || before.Promotion.Revision != rev) {
		events = append(events, Event{corev1.EventTypeNormal, v1alpha1.ConditionPromoted, "Promote", rev + " was let through"})
	}
	was, is := meta.FindStatusCondition(before.Conditions, v1alpha1.ConditionPromoted), meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionPromoted)
	if is == nil || was != nil && was.Reason == is.Reason && (was.Message == is.Message || is.Reason == v1alpha1.ReasonGateClosed) { // a number that was measured is another one each time
		return events
	}
	switch is.Reason {
	case v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingMerge:
		events = append(events, Event{corev1.EventTypeNormal, is.Reason, "Wait", is.Message})
	case v1alpha1.ReasonDiverged, v1alpha1.ReasonGateClosed, v1alpha1.ReasonDeclined, v1alpha1.ReasonPromotionFailed:
		events = append(events, Event{corev1.EventTypeWarning, is.Reason, "Refuse", is.Message})
	}
	return events
}

// pinned says what holds a revision, and how to let go of it.
func pinned(pin *v1alpha1.Pin) string {
	if pin.Reason == "" {
		return pin.Revision + " is pinned; newer commits wait for mooring unpin"
	}
	return fmt.Sprintf("%s is pinned (%s); newer commits wait for mooring unpin", pin.Revision, pin.Reason)
}
