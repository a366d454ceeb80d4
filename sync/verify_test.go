package sync_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/repos/signature"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Two keys of somebody.
const (
	oneKey     = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICkLCCkUsg44+Vm4RDCDcaKtvEEGXLrmKaiOUS+4L+Gr"
	anotherKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKkLCCkUsg44+Vm4RDCDcaKtvEEGXLrmKaiOUS+4L+Gr"
)

// verifying asks for signatures from now on, and unsigned are those commits that have none.
func (w *world) verifying(unsigned ...string) {
	w.m.Spec.Source.Verify = &v1alpha1.Verify{SecretRef: v1alpha1.LocalReference{Name: "git-keys"}}
	w.m.Generation++
	w.keys = map[string][]byte{"allowed_signers": []byte("jane@example.com " + oneKey)}
	w.refuse(signature.Unsigned, unsigned...)
}

func (w *world) refuse(why signature.Reason, digits ...string) {
	w.verifyErr = map[repos.Commit]error{}
	for _, digit := range digits {
		cause := &signature.Error{Reason: why, Err: errors.New("it has no signature")}
		w.verifyErr[rev(digit).Commit] = &repos.Error{Kind: repos.KindVerification, Err: cause, Hint: "sign it"}
	}
}

func TestUnverifiedCommitIsNotRendered(t *testing.T) {
	w := newWorld()
	w.takeUp(t, "a")
	w.verifying("b")
	w.takeUp(t, "a")
	w.head, w.changes = rev("b"), 1
	before := w.m.Status
	out := w.pass(t)
	want(t, out, v1alpha1.ReasonVerificationFailed)
	w.inForce(t, "a")
	if w.asked != rev("a") || w.lastPlanned() != "a" {
		t.Errorf("%s was read, %s planned for: want neither for b, and drift corrected to a", w.asked, w.lastPlanned())
	}
	message := rev("b").String() + " is not taken up: it has no signature; sign it. The keys that are trusted are those of Secret mesh/git-keys. " +
		rev("a").String() + " stays in force. It is looked at again when the keys have changed, or there is another commit or tag."
	if got := report.Message(out); got != message {
		t.Errorf("says\n%s\nwant\n%s", got, message)
	}
	var told []report.Event
	for _, e := range report.Events(before, w.m.Status, out) {
		if e.Reason == v1alpha1.ReasonVerificationFailed && e.Type == corev1.EventTypeWarning {
			told = append(told, e)
		}
	}
	if len(told) != 1 {
		t.Errorf("Events are %v", told)
	}
	stalled := false
	for _, c := range w.m.Status.Conditions {
		stalled = stalled || c.Type == v1alpha1.ConditionStalled
	}
	if !stalled {
		t.Error("it is not told that only a person can help")
	}
	w.head = rev("c")
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.inForce(t, "c")
}

// Whoever switches verification on does not lose what was in force before.
func TestWhatIsInForceIsKeptWhenVerificationBegins(t *testing.T) {
	w := newWorld()
	w.takeUp(t, "a")
	w.verifying("a")
	w.changes = 1
	runs := w.runs
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.inForce(t, "a")
	w.Syncer = w.restarted()
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.inForce(t, "a")
	if w.runs != runs+2 || w.policies[len(w.policies)-1].Prune {
		t.Errorf("%d runs, the last with %+v: want drift corrected and nothing deleted", w.runs-runs, w.policies[len(w.policies)-1])
	}
}

func TestNothingUnverifiedIsTheFirst(t *testing.T) {
	w := newWorld()
	w.verifying("a")
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	if w.renders != 0 || w.runs != 0 {
		t.Errorf("%d renders, %d runs", w.renders, w.runs)
	}
}

// Law 5: with the same keys a commit is looked at once, and each pass reads the Secret once.
func TestVerifiedOnceForEachCommitAndKeys(t *testing.T) {
	for _, signed := range []bool{true, false} {
		w := newWorld()
		w.verifying()
		if !signed {
			w.verifying("a")
		}
		for range 4 {
			w.pass(t)
		}
		if w.verifies != 1 || w.secrets != 4 {
			t.Errorf("signed %t: looked at %d times, and %d times at the keys, in four passes; want 1 and 4", signed, w.verifies, w.secrets)
		}
		w.keys = map[string][]byte{"allowed_signers": []byte("jane@example.com " + anotherKey)}
		w.pass(t)
		w.pass(t)
		if w.verifies != 2 {
			t.Errorf("signed %t: looked at %d times, with keys that changed once", signed, w.verifies)
		}
	}
}

func TestChangedKeysAreUsedByTheNextPass(t *testing.T) {
	w := newWorld()
	w.verifying("a")
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.refuse("")
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.keys["more.pub"] = []byte(anotherKey)
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.refuse(signature.Revoked, "a") // the key was taken out
	delete(w.keys, "more.pub")
	w.keys["revoked_keys"] = []byte(anotherKey)
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.inForce(t, "a")
}

// A tag may be made anew for the same commit.
func TestRefusedTagIsLookedAtAgain(t *testing.T) {
	w := newWorld()
	w.verifying("a")
	w.m.Spec.Source.Verify.Mode = v1alpha1.VerifyTag
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.refuse("")
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.pass(t)
	if w.verifies != 2 {
		t.Errorf("looked at %d times, want 2: what was accepted is not looked at again", w.verifies)
	}
}

// What time alone may change is looked at again.
func TestKeyThatIsNotValidYetIsLookedAtAgain(t *testing.T) {
	w := newWorld()
	w.verifying()
	w.refuse(signature.NotYetValid, "a")
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.refuse("")
	want(t, w.pass(t), v1alpha1.ReasonApplied)
}

func TestKeysThatCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.takeUp(t, "a")
		w.verifying()
		w.keys = nil
		w.changes = 1
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonVerificationFailed)
		w.inForce(t, "a")
		if got := report.Message(out); !strings.Contains(got, "read Secret mesh/git-keys: it does not exist") || !strings.Contains(got, "spec.source.verify.secretRef") {
			t.Errorf("says %q", got)
		}
		if pause := w.Next(w.m, out); pause > 10*time.Second {
			t.Errorf("tried again after %s only", pause)
		}
		w.keys = map[string][]byte{"jane.pub": []byte("hunter2")}
		out = w.pass(t)
		want(t, out, v1alpha1.ReasonVerificationFailed)
		if got := report.Message(out); !strings.Contains(got, "read Secret mesh/git-keys: key jane.pub: line 1: it is no public key; give OpenPGP keys") || strings.Contains(got, "hunter2") {
			t.Errorf("says %q", got)
		}
	})
}

// The server may be away when it is asked for the commit or the tag.
func TestVerificationThatCouldNotBeMadeIsAFailureToFetch(t *testing.T) {
	w := newWorld()
	w.verifying()
	w.verifyErr[rev("a").Commit] = &repos.Error{Kind: repos.KindUnavailable, Err: errors.New("connection refused")}
	want(t, w.pass(t), v1alpha1.ReasonFetchFailed)
	w.refuse("")
	want(t, w.pass(t), v1alpha1.ReasonApplied)
}

func TestPinnedRevisionIsVerified(t *testing.T) {
	w := newWorld()
	w.takeUp(t, "a", "b")
	w.verifying("a")
	w.takeUp(t, "b")
	w.pin("a", "")
	out := w.pass(t)
	want(t, out, v1alpha1.ReasonVerificationFailed)
	w.inForce(t, "b")
	if got := report.Message(out); !strings.HasPrefix(got, rev("a").String()+" is not taken up: it has no signature") {
		t.Errorf("says %q", got)
	}
}

func TestDescendantsOnly(t *testing.T) {
	w := newWorld()
	w.takeUp(t, "b")
	w.verifying()
	w.m.Spec.Source.Verify.DescendantsOnly = true
	w.takeUp(t, "b", "c") // c is ahead
	w.head = rev("a")
	out := w.pass(t)
	want(t, out, v1alpha1.ReasonVerificationFailed)
	w.inForce(t, "c")
	message := rev("a").String() + " is not taken up: it is not a descendant of " + rev("c").String() + ", which is in force: it is an ancestor of it; find out who pushed by force. " +
		"To take it up all the same, with what it deletes: kubectl annotate mooring -n mesh prod --overwrite mooring.dev/confirm=" + rev("a").String()
	if got := report.Message(out); !strings.HasPrefix(got, message) {
		t.Errorf("says\n%s\nwant\n%s", got, message)
	}
	relates := w.relates
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	if w.relates != relates {
		t.Error("what is known was asked again")
	}
	w.m.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: rev("d").String()}
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed) // that word is for another one
	w.m.Annotations[v1alpha1.ConfirmAnnotation] = rev("a").String()
	out = w.pass(t)
	want(t, out, v1alpha1.ReasonApplied)
	w.inForce(t, "a")
	if !out.WordUsed {
		t.Error("the word counts on")
	}
	w.diverged, w.head = true, rev("e")
	want(t, w.pass(t), v1alpha1.ReasonVerificationFailed)
	w.pin("b", "")
	want(t, w.pass(t), v1alpha1.ReasonApplied) // a person goes back
	w.inForce(t, "b")
}

// A commit that this environment does not accept is not brought to its branch either.
func TestUnverifiedCommitIsNotPromoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pushes(t)
		c.prod.verifying("b")
		c.commit(t, "b")
		c.prodAfter(t, time.Hour, "a", v1alpha1.ReasonPromotionFailed)
		if len(c.prod.pushed) != 0 || c.prod.verifies != 2 {
			t.Errorf("pushes %v, %d commits were looked at: want none, and each of two once", c.prod.pushed, c.prod.verifies)
		}
		c.wants(t, "b PromotionFailed")
		c.prod.refuse("")
		c.prod.keys["more.pub"] = []byte(anotherKey)
		c.prodAfter(t, time.Hour, "b", v1alpha1.ReasonUpToDate)
	})
}

func TestUnverifiedCommitIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := follows(t, 10*time.Minute)
		c.commit(t, "a")
		c.after(t, time.Hour, "a", v1alpha1.ReasonUpToDate)
		c.prod.verifying("b")
		c.commit(t, "b")
		c.prod.works(t, time.Now().Add(time.Hour).Format(time.RFC3339Nano))
		c.prod.inForce(t, "a")
		want(t, c.prod.pass(t), v1alpha1.ReasonVerificationFailed)
	})
}
