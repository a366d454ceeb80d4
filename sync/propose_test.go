package sync_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/forge"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// hub is a forge as far as this package sees it; the real ones are asked in package forge and end to end.
type hub struct {
	asked     []forge.Proposal
	state     map[string]forge.State // by commit
	err       error
	lastToken string
	proxy     repos.Proxy
}

func (h *hub) propose(_ context.Context, o forge.Options, p forge.Proposal) (forge.PullRequest, error) {
	h.asked, h.lastToken, h.proxy = append(h.asked, p), o.Token, o.Proxy
	state := h.state[p.Commit[:1]]
	if state == "" {
		state = forge.Open
	}
	return forge.PullRequest{Number: 7, URL: "https://git.example.com/mesh/pulls/7", State: state, Commit: p.Commit}, h.err
}

// proposes is a chain whose prod is reached by pull requests.
func proposes(t *testing.T) (*chain, *hub) {
	t.Helper()
	c, h := pushes(t), &hub{state: map[string]forge.State{}}
	c.prod.m.Spec.Promotion.Mode = v1alpha1.PromotionPullRequest
	c.prod.m.Spec.Promotion.PullRequest = &v1alpha1.PullRequestSpec{Provider: v1alpha1.ProviderGitea, Repository: "mesh/config"}
	c.prod.propose = h.propose
	c.prod.Syncer = c.prod.restarted()
	return c, h
}

func TestPullRequestWaitsForAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		c.commit(t, "b")
		c.prodAfter(t, 9*time.Minute, "a", v1alpha1.ReasonSoaking)
		if len(h.asked) > 0 {
			t.Fatal("it was proposed before it was proven")
		}
		c.prodAfter(t, 2*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		c.wants(t, "b AwaitingMerge")
		p := h.asked[0]
		if p.Head != "mooring/mesh/prod" || p.Base != "env/prod" || p.Commit != string(rev("b").Commit) || h.lastToken != "hush" {
			t.Errorf("asked for %+v with token %q", p, h.lastToken)
		}
		for _, part := range []string{"which is proven in Mooring `mesh/staging`", "Without a break since 2000-01-01T00:00:00Z", "### What it would change", "### What the check found"} {
			if !strings.Contains(p.Body, part) {
				t.Errorf("the text lacks %q:\n%s", part, p.Body)
			}
		}
		if diff := cmp.Diff([]string{"set mooring/mesh/prod to b"}, c.prod.pushed[:1]); diff != "" {
			t.Errorf("pushes:\n%s", diff)
		}
		text, renders, before := p.Body, c.prod.renders, c.prod.m.Status
		c.prodAfter(t, 3*time.Hour, "a", v1alpha1.ReasonAwaitingMerge)
		if last := h.asked[len(h.asked)-1].Body; last != text || c.prod.renders != renders {
			t.Errorf("%d renders while it waits; the text has changed:\n%s", c.prod.renders-renders, cmp.Diff(text, last))
		}
		if diff := cmp.Diff(before, c.prod.m.Status); diff != "" {
			t.Errorf("the status has changed:\n%s", diff)
		}
		c.prod.head = prodRev("b") // a person merges it
		c.prodAfter(t, 6*time.Minute, "b", v1alpha1.ReasonUpToDate)
		if pr := c.prod.m.Status.Promotion.PullRequest; pr == nil || pr.State != "Merged" || c.prod.m.Status.History[0].By != "promotion" {
			t.Errorf("pull request %+v, by %s", pr, c.prod.m.Status.History[0].By)
		}
	})
}

// A person said no to b. c is another question.
func TestClosedPullRequestIsNotOpenedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		c.commit(t, "b")
		c.prodAfter(t, 11*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		h.state["b"] = forge.Closed
		c.prodAfter(t, 6*time.Minute, "a", v1alpha1.ReasonDeclined)
		pushed := len(c.prod.pushed)
		c.prod.Syncer = c.prod.restarted()
		c.prodAfter(t, 3*time.Hour, "a", v1alpha1.ReasonDeclined)
		if len(c.prod.pushed) != pushed {
			t.Errorf("the branch of a closed one was pushed again: %v", c.prod.pushed[pushed:])
		}
		c.commit(t, "c")
		c.prodAfter(t, 16*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		if got := h.asked[len(h.asked)-1].Commit; got != string(rev("c").Commit) {
			t.Errorf("proposed %s", got)
		}
	})
}

// Squashed, it has another id in the branch, and the forge alone knows that it is there.
func TestSquashedPullRequestIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		c.commit(t, "b")
		c.prodAfter(t, 11*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		h.state["b"], c.prod.diverged, c.prod.head = forge.Merged, true, prodRev("f")
		c.prodAfter(t, 6*time.Minute, "f", v1alpha1.ReasonUpToDate)
		c.prodAfter(t, time.Hour, "f", v1alpha1.ReasonUpToDate)
		c.wants(t, "")
	})
}

func TestForgeThatIsAwayIsToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		h.err = &forge.Error{Kind: forge.KindAuth, Op: "find pull request", Err: context.Canceled, Hint: "make a token with the right repository: read and write"}
		c.commit(t, "b")
		c.prodAfter(t, 16*time.Minute, "a", v1alpha1.ReasonPromotionFailed)
		want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
		if got := meta.FindStatusCondition(c.prod.m.Status.Conditions, v1alpha1.ConditionPromoted).Message; !strings.Contains(got, "make a token with") {
			t.Errorf("says %q", got)
		}
		h.err = nil
		c.prodAfter(t, 6*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
	})
}

// A forge that wants to be left alone is, whatever passes are made meanwhile, and each says the same of it. A new token is tried at once.
func TestForgeIsLeftAloneAsLongAsItWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		limited := func(request string) error {
			return &forge.Error{
				Kind: forge.KindRateLimit, Op: "look for the pull request", RetryAfter: 40 * time.Minute, Hint: "nothing is wrong",
				Err: errors.New("HTTP 403: API rate limit exceeded; include the request ID " + request + " and timestamp 2026-11-29 03:38:13 UTC."),
			}
		}
		h.err = limited("F7CA:1")
		c.commit(t, "b")
		c.prodAfter(t, 11*time.Minute, "a", v1alpha1.ReasonPromotionFailed)
		began, said := time.Now(), meta.FindStatusCondition(c.prod.m.Status.Conditions, v1alpha1.ConditionPromoted).Message
		if len(h.asked) != 1 || !strings.Contains(said, "it is asked again at 2000-01-01T00:5") || !strings.Contains(said, "nothing is wrong") || strings.Contains(said, "F7CA") {
			t.Fatalf("asked %d times; says %q", len(h.asked), said)
		}
		h.err = nil
		for time.Since(began) < 38*time.Minute {
			time.Sleep(time.Second) // passes for what moves in the cluster
			want(t, c.prod.pass(t), v1alpha1.ReasonApplied)
			if now := meta.FindStatusCondition(c.prod.m.Status.Conditions, v1alpha1.ConditionPromoted).Message; now != said || len(h.asked) != 1 {
				t.Fatalf("after %s: asked %d times; says %q, said %q", time.Since(began), len(h.asked), now, said)
			}
		}
		c.prodAfter(t, 10*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		if len(h.asked) < 2 {
			t.Errorf("asked %d times", len(h.asked))
		}
		h.err = limited("F7CA:2")
		c.commit(t, "c")
		c.prodAfter(t, 16*time.Minute, "a", v1alpha1.ReasonPromotionFailed)
		h.err, c.prod.secret = nil, map[string][]byte{"username": []byte("ship"), "password": []byte("another")}
		c.prodAfter(t, 6*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		if h.lastToken != "another" {
			t.Errorf("the forge was shown %q", h.lastToken)
		}
	})
}

// The API is reached as the repository is.
func TestPullRequestThroughTheProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		c.prod.secret = map[string][]byte{"token": []byte("hush"), "address": []byte("http://proxy.example.com:3128"), "username": []byte("ship"), "password": []byte("rope")}
		c.prod.m.Spec.Source.ProxySecretRef = &v1alpha1.LocalReference{Name: "proxy"}
		c.commit(t, "b")
		c.prodAfter(t, 16*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		var way http.Transport
		h.proxy.Lead(&way)
		if by, err := way.Proxy(&http.Request{}); err != nil || by == nil || by.String() != "http://ship:rope@proxy.example.com:3128" {
			t.Errorf("the proxy is %v, %v", by, err)
		}
	})
}

// A commit that this environment would refuse is proposed with that for a text.
func TestPullRequestTellsOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		c.prod.renderErr[rev("b").Commit] = &repos.Error{Kind: repos.KindContent, Err: context.Canceled}
		c.commit(t, "b")
		c.prodAfter(t, 16*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		if got := h.asked[0].Body; !strings.Contains(got, "**It would be refused here:**") {
			t.Errorf("the text is\n%s", got)
		}
	})
}

// A GitHub App has no token of its own: one is asked for each time.
func TestPullRequestByAnApp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, h := proposes(t)
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		der := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
		c.prod.secret = map[string][]byte{"githubAppID": []byte("1"), "githubAppInstallationID": []byte("2"), "githubAppPrivateKey": der}
		c.commit(t, "b")
		c.prodAfter(t, 16*time.Minute, "a", v1alpha1.ReasonAwaitingMerge)
		if h.lastToken != "of the app" {
			t.Errorf("the forge was shown %q", h.lastToken)
		}
	})
}
