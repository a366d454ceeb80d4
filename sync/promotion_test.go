package sync_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Commits are in the order of their digits here: one is Behind another when its digit is smaller.
func (w *world) Relate(_ context.Context, _ repos.Remote, from, to repos.Commit) (repos.Relation, error) {
	w.relates++
	switch {
	case w.diverged:
		return repos.Diverged, nil
	case from == to:
		return repos.Same, nil
	case from < to:
		return repos.Ahead, nil
	}
	return repos.Behind, nil
}

func (w *world) Advance(_ context.Context, _ repos.Remote, branch string, from, to repos.Commit) error {
	w.pushed = append(w.pushed, branch+" "+string((from + "none")[:max(1, 4*(1-len(from)/40))])+" to "+string(to[:1]))
	if w.pushErr != nil {
		return w.pushErr
	}
	w.head = repos.Revision{Ref: branch, Commit: to}
	return nil
}

func (w *world) Token(context.Context, repos.Remote) (string, error) { return "of the app", nil }

func (w *world) SetBranch(_ context.Context, _ repos.Remote, branch string, _, to repos.Commit) error {
	w.pushed = append(w.pushed, "set "+branch+" to "+string(to[:1]))
	return w.pushErr
}

// chain is staging, and prod that follows it: two worlds in one bubble.
type chain struct{ staging, prod *world }

func follows(t *testing.T, soak time.Duration) *chain {
	t.Helper()
	c := &chain{staging: newWorld(), prod: newWorld()}
	c.staging.m.Name, c.staging.m.UID = "staging", "2"
	c.prod.others = map[string]*v1alpha1.Mooring{"staging": c.staging.m}
	c.prod.m.Spec.Promotion = &v1alpha1.Promotion{From: v1alpha1.PromotionFrom{Name: "staging"}, Soak: metav1.Duration{Duration: soak}}
	c.prod.m.Default()
	return c
}

// commit is taken up in staging.
func (c *chain) commit(t *testing.T, digit string) {
	t.Helper()
	c.staging.head = rev(digit)
	want(t, c.staging.pass(t), v1alpha1.ReasonApplied)
}

// after some time, with the passes that are made in it, this is in force in prod, for this reason of the condition Promoted.
func (c *chain) after(t *testing.T, d time.Duration, digit, reason string) {
	t.Helper()
	c.prod.works(t, time.Now().Add(d).Format(time.RFC3339Nano))
	if digit != "" {
		c.prod.inForce(t, digit)
	} else if got := c.prod.m.Status.LastAppliedRevision; got != "" {
		t.Fatalf("%s is in force, want nothing", got)
	}
	promoted := meta.FindStatusCondition(c.prod.m.Status.Conditions, v1alpha1.ConditionPromoted)
	if promoted == nil || promoted.Reason != reason {
		t.Fatalf("at %s Promoted is %+v, want reason %s", time.Now().UTC(), promoted, reason)
	}
}

// states are the candidates of prod: the digit of each, and its state.
func (c *chain) states() string {
	var all []string
	for _, k := range c.prod.m.Status.Promotion.Candidates {
		_, id, _ := strings.Cut(k.Revision, "sha1:")
		all = append(all, id[:1]+" "+k.State)
	}
	return strings.Join(all, ", ")
}

func (c *chain) wants(t *testing.T, states string) {
	t.Helper()
	if diff := cmp.Diff(states, c.states()); diff != "" {
		t.Fatalf("candidates (-want +got):\n%s", diff)
	}
}

func sick() []apply.Health {
	return []apply.Health{{Status: status.FailedStatus, Message: "crash loop"}}
}

func TestFollowTakesWhatIsProven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 30*time.Minute)
		want(t, c.prod.pass(t), v1alpha1.ReasonPromotionPending) // staging has nothing
		c.commit(t, "a")
		began := time.Now()
		c.after(t, 29*time.Minute, "", v1alpha1.ReasonSoaking)
		want(t, c.prod.pass(t), v1alpha1.ReasonPromotionPending) // nothing is in force yet
		c.wants(t, "a Soaking")
		c.after(t, 61*time.Second, "a", v1alpha1.ReasonUpToDate)
		entry := c.prod.m.Status.History[0]
		if got := entry.AppliedAt.Sub(began); got < 30*time.Minute || got > 30*time.Minute+2*time.Second {
			t.Errorf("it came %s after it was in force in staging, want exactly after the soak", got)
		}
		if entry.By != "promotion" || c.prod.m.Status.Promotion.Revision != rev("a").String() {
			t.Errorf("by %s, promoted %+v", entry.By, c.prod.m.Status.Promotion)
		}
		c.commit(t, "b")
		c.after(t, 20*time.Minute, "a", v1alpha1.ReasonSoaking)
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied) // what should be in force is
		c.after(t, 11*time.Minute, "b", v1alpha1.ReasonUpToDate)
		c.wants(t, "")
		if c.prod.resolves != 0 || c.prod.relates != 0 {
			t.Errorf("Git was asked %d and %d times, want never: staging's history says it all", c.prod.resolves, c.prod.relates)
		}
	})
}

func TestFollowAtRestWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, time.Minute)
		c.commit(t, "a")
		c.after(t, 2*time.Minute, "a", v1alpha1.ReasonUpToDate)
		c.prod.pass(t)
		before := c.prod.m.Status
		c.after(t, 3*time.Hour, "a", v1alpha1.ReasonUpToDate)
		if diff := cmp.Diff(before, c.prod.m.Status); diff != "" {
			t.Errorf("the status has changed:\n%s", diff)
		}
	})
}

func TestSoakBeginsAnewAfterTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 30*time.Minute)
		c.commit(t, "a")
		c.after(t, 31*time.Minute, "a", v1alpha1.ReasonUpToDate)
		c.commit(t, "b")
		c.after(t, 25*time.Minute, "a", v1alpha1.ReasonSoaking)
		c.staging.unhealthy = sick()
		c.staging.pass(t)
		c.after(t, 10*time.Minute, "a", v1alpha1.ReasonNotHealthy)
		c.staging.unhealthy = nil
		c.staging.pass(t)
		c.after(t, 29*time.Minute, "a", v1alpha1.ReasonSoaking)
		c.after(t, 2*time.Minute, "b", v1alpha1.ReasonUpToDate)
	})
}

func TestFailedCommitIsNeverPromoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 10*time.Minute)
		c.staging.m.Spec.Wait = true
		c.commit(t, "a")
		c.after(t, 11*time.Minute, "a", v1alpha1.ReasonUpToDate)
		c.staging.head, c.staging.unhealthy = rev("b"), sick()
		want(t, c.staging.pass(t), v1alpha1.ReasonProgressing)
		time.Sleep(6 * time.Minute)
		want(t, c.staging.pass(t), v1alpha1.ReasonHealthTimeout)
		c.staging.unhealthy = nil
		want(t, c.staging.pass(t), v1alpha1.ReasonApplied) // it recovers, too late
		c.after(t, 3*time.Hour, "a", v1alpha1.ReasonNothingProven)
		c.wants(t, "b Failed")
		c.commit(t, "c")
		c.after(t, 11*time.Minute, "c", v1alpha1.ReasonUpToDate)
	})
}

func TestNewerProvenCommitSkipsTheOlder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 10*time.Minute)
		c.commit(t, "a")
		c.after(t, 11*time.Minute, "a", v1alpha1.ReasonUpToDate)
		c.prod.m.Spec.Suspend = true // nobody works for prod meanwhile
		for _, digit := range []string{"b", "c", "d"} {
			c.commit(t, digit)
			time.Sleep(map[string]time.Duration{"b": 20 * time.Minute, "c": time.Minute, "d": 5 * time.Minute}[digit])
		}
		c.prod.m.Spec.Suspend = false
		c.after(t, time.Second, "b", v1alpha1.ReasonUpToDate) // proven before it was replaced
		c.prod.pass(t)
		c.wants(t, "d Soaking, c Skipped")
		c.after(t, 6*time.Minute, "d", v1alpha1.ReasonUpToDate)
		c.wants(t, "")
		if len(c.prod.m.Status.History) != 3 {
			t.Errorf("history is %v", c.prod.m.Status.History)
		}
	})
}

func TestFollowNeverGoesBackwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, time.Minute)
		c.prod.m.Spec.Promotion = nil
		c.prod.head = rev("d")
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		for _, digit := range []string{"a", "b"} {
			c.commit(t, digit)
		}
		c.prod.m.Spec.Promotion = &v1alpha1.Promotion{From: v1alpha1.PromotionFrom{Name: "staging"}, Soak: metav1.Duration{Duration: time.Minute}}
		c.after(t, time.Hour, "d", v1alpha1.ReasonUpToDate)
		c.commit(t, "f")
		c.after(t, time.Hour, "f", v1alpha1.ReasonUpToDate)
	})
}

// Somebody goes back in staging, to look at something. That is no word about production.
func TestRollbackThereIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, time.Minute)
		c.commit(t, "a")
		c.after(t, time.Hour, "a", v1alpha1.ReasonUpToDate)
		c.commit(t, "b")
		c.after(t, time.Hour, "b", v1alpha1.ReasonUpToDate)
		c.staging.m.Spec.Pin = &v1alpha1.Pin{Revision: rev("a").String(), Reason: "a look"}
		want(t, c.staging.pass(t), v1alpha1.ReasonApplied)
		c.staging.inForce(t, "a")
		c.after(t, 24*time.Hour, "b", v1alpha1.ReasonUpToDate)
	})
}

func TestApprovalIsForOneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, time.Minute)
		c.prod.m.Spec.Promotion.Approval = v1alpha1.ApprovalManual
		c.commit(t, "a")
		c.after(t, time.Hour, "", v1alpha1.ReasonAwaitingApproval)
		c.prod.annotate(v1alpha1.PromoteAnnotation, rev("a").String()+" all tests are green")
		c.after(t, time.Second, "a", v1alpha1.ReasonUpToDate)
		if got := c.prod.m.Status.History[0].Reason; got != "all tests are green" {
			t.Errorf("history's reason is %q", got)
		}
		if out := c.prod.pass(t); !out.Promotion.WordUsed {
			t.Error("the word is still there")
		}
		c.commit(t, "b")
		c.after(t, time.Hour, "a", v1alpha1.ReasonAwaitingApproval) // the word for a is none for b
		c.prod.annotate(v1alpha1.PromoteAnnotation, rev("b").String())
		c.commit(t, "c")
		c.after(t, time.Hour, "b", v1alpha1.ReasonAwaitingApproval) // b was approved, c was not
		c.prod.pass(t)
		c.wants(t, "c AwaitingApproval")
	})
}

func TestExpressionGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 0)
		c.prod.m.Spec.Promotion.ReadyExpr = `from.metadata.annotations["tested"] == from.status.lastAppliedRevision && self.metadata.name == "prod"`
		c.commit(t, "a")
		c.after(t, time.Hour, "", v1alpha1.ReasonGateClosed)
		c.staging.m.Annotations = map[string]string{"tested": rev("a").String()}
		c.after(t, 6*time.Minute, "a", v1alpha1.ReasonUpToDate)
		c.prod.m.Spec.Promotion.ReadyExpr = `from.status.`
		c.commit(t, "b")
		c.after(t, time.Hour, "a", v1alpha1.ReasonGateClosed)
		if got := meta.FindStatusCondition(c.prod.m.Status.Conditions, v1alpha1.ConditionPromoted).Message; !strings.Contains(got, "spec.promotion.readyExpr does not compile") {
			t.Errorf("message is %q", got)
		}
	})
}

// A commit that fell ill in staging while a window held it here does not come when the window opens.
func TestProofIsAskedForAnewUntilTheCommitIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 10*time.Minute)
		c.commit(t, "a")
		c.after(t, 11*time.Minute, "a", v1alpha1.ReasonUpToDate)
		c.prod.m.Spec.Windows = []v1alpha1.Window{{Kind: v1alpha1.WindowDeny, Schedule: "0 1 * * *", Duration: metav1.Duration{Duration: 12 * time.Hour}}}
		c.commit(t, "b")
		until(t, "2000-01-01T02:00:00Z")
		c.after(t, time.Hour, "a", v1alpha1.ReasonWindowClosed)
		want(t, c.prod.pass(t), v1alpha1.ReasonWindowClosed)
		c.wants(t, "b WindowClosed")
		c.staging.unhealthy = sick()
		c.staging.pass(t)
		c.after(t, 20*time.Hour, "a", v1alpha1.ReasonNotHealthy)
		c.staging.unhealthy = nil
		c.staging.pass(t)
		c.after(t, 24*time.Hour, "b", v1alpha1.ReasonUpToDate)
	})
}

// What was begun is finished, also when the commit falls ill in staging meanwhile.
func TestPromotionThatWasBegunIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, time.Minute)
		c.commit(t, "a")
		c.after(t, time.Hour, "a", v1alpha1.ReasonUpToDate)
		c.commit(t, "b")
		time.Sleep(2 * time.Minute)
		c.prod.changes, c.prod.runErr = 1, errors.New("a webhook is away")
		want(t, c.prod.pass(t), v1alpha1.ReasonApplyFailed)
		c.staging.unhealthy = sick()
		c.staging.pass(t)
		c.prod.Syncer = c.prod.restarted()
		c.prod.runErr = nil
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		c.prod.inForce(t, "b")
	})
}

func TestFollowOfWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 0)
		c.commit(t, "a")
		c.after(t, time.Minute, "a", v1alpha1.ReasonUpToDate)
		c.prod.others = nil
		c.after(t, time.Hour, "a", v1alpha1.ReasonNothingProven)
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied) // what was proven stays
		c.prod.m.Spec.Promotion.From.Name = "prod"
		want(t, c.prod.pass(t), v1alpha1.ReasonPromotionPending)
		c.prod.m.Spec.Promotion.From.Name = "staging"
		c.prod.others = map[string]*v1alpha1.Mooring{"staging": c.staging.m}
		dev := newWorld().m
		dev.Name = "dev"
		c.prod.others["dev"] = dev
		for from, says := range map[[2]string]string{
			{"prod", ""}:       "spec.promotion goes round in a circle: mesh/prod → mesh/staging → mesh/prod",
			{"dev", "prod"}:    "spec.promotion goes round in a circle: mesh/prod → mesh/staging → mesh/dev → mesh/prod",
			{"dev", "staging"}: "", // a circle of others is theirs
			{"dev", ""}:        "",
			{"gone", ""}:       "",
		} {
			c.staging.m.Spec.Promotion = &v1alpha1.Promotion{From: v1alpha1.PromotionFrom{Name: from[0]}}
			dev.Spec.Promotion = nil
			if from[1] != "" {
				dev.Spec.Promotion = &v1alpha1.Promotion{From: v1alpha1.PromotionFrom{Name: from[1]}}
			}
			out := c.prod.pass(t)
			if says == "" && out.Err != nil || says != "" && (out.Err == nil || !strings.Contains(out.Err.Error(), says)) {
				t.Errorf("staging follows %s, dev %q: says %v, want %q", from[0], from[1], out.Err, says)
			}
		}
		c.staging.m.Spec.Promotion = nil
		c.staging.m.Spec.Source.Ref.Branch = "next"
		out := c.prod.pass(t)
		want(t, out, v1alpha1.ReasonPromotionPending)
		if !strings.Contains(out.Err.Error(), `follows branch "next" and this one "main"`) {
			t.Errorf("says %v", out.Err)
		}
	})
}

// Nobody looks whether what a suspended Mooring has is healthy, so that its time does not count.
func TestSuspendedEnvironmentProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 10*time.Minute)
		c.commit(t, "a")
		c.staging.m.Spec.Suspend = true
		c.after(t, time.Hour, "", v1alpha1.ReasonNotHealthy)
		c.staging.m.Spec.Suspend = false
		c.after(t, time.Hour, "a", v1alpha1.ReasonUpToDate)
	})
}

// b was healthy in staging and not here. A person went back from it, and it does not come again by itself.
func TestCommitThatFailedHereDoesNotComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, time.Minute)
		c.prod.m.Spec.Wait = true
		c.commit(t, "a")
		c.after(t, time.Hour, "a", v1alpha1.ReasonUpToDate)
		c.prod.sickAt = "b"
		c.commit(t, "b")
		c.after(t, time.Hour, "b", v1alpha1.ReasonUpToDate)
		want(t, c.prod.pass(t), v1alpha1.ReasonHealthTimeout)
		c.prod.pin("a", "b is bad")
		c.after(t, time.Hour, "a", v1alpha1.ReasonPinned)
		c.prod.m.Spec.Pin = nil
		c.after(t, time.Hour, "a", v1alpha1.ReasonNothingProven)
		c.wants(t, "b Failed")
	})
}
