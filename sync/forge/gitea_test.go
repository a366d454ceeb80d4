package forge_test

import (
	"crypto/x509"
	"errors"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/sync/forge"
	"github.com/mooring-dev/mooring/test/gitea"
	"github.com/mooring-dev/mooring/test/gitserver"
)

const (
	head = "mooring/mesh/prod"
	base = "env/prod"
)

// world is a real Gitea with a repository, its people, and what the agent would do.
type world struct {
	t     *testing.T
	s     *gitea.Server
	alice *gitea.Account
	agent *gitea.Account
	repo  *gitea.Repository
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := gitea.Start(t)
	w := &world{t: t, s: s, alice: s.User(t, "alice"), agent: s.User(t, "agent")}
	s.Org(t, "mesh", w.alice)
	return w
}

// fresh repository whose environment's branch is one commit behind main.
func (w *world) fresh(t *testing.T, name string) *world {
	t.Helper()
	repo := w.alice.Repository(t, "mesh", name, map[string]string{"a.yaml": "a: 1\n"})
	repo.Collaborator(w.agent, sdk.AccessModeWrite)
	repo.Push("main:" + base)
	return &world{t: t, s: w.s, alice: w.alice, agent: w.agent, repo: repo}
}

// forge is what an agent that was just started has.
func (w *world) forge(token string) *forge.Forge {
	w.t.Helper()
	place, err := forge.Locate(w.repo.URL, forge.Place{Provider: forge.Gitea})
	if err != nil {
		w.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.s.CA)
	f, err := forge.New(forge.Options{Place: place, Token: token, RootCAs: roots})
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// commit makes one and moves the agent's branch there.
func (w *world) commit(file string) string {
	w.t.Helper()
	id := w.repo.Commit(gitserver.Change{Files: map[string]string{file: file + "\n"}})
	w.move(id)
	return id
}

func (w *world) move(commit string) {
	w.t.Helper()
	w.repo.Push("+" + commit + ":refs/heads/" + head)
}

func proposal(commit string) forge.Proposal {
	return forge.Proposal{Head: head, Base: base, Commit: commit, Title: "Promote " + commit[:7] + " to prod", Body: "It was in force in staging for 30m.\n"}
}

// propose with a forge that remembers nothing.
func (w *world) propose(p forge.Proposal) forge.PullRequest {
	w.t.Helper()
	pr, err := w.forge(w.agent.Limited(w.t, "write:repository")).Propose(w.t.Context(), p)
	if err != nil {
		w.t.Fatal(err)
	}
	return pr
}

func (w *world) want(got, want forge.PullRequest) {
	w.t.Helper()
	if got.URL == "" {
		w.t.Error("the pull request has no page")
	}
	got.URL = ""
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("pull request (-want +got):\n%s", diff)
	}
}

func (w *world) requests(want int) {
	w.t.Helper()
	if got := w.repo.Requests(); len(got) != want {
		w.t.Errorf("there are %d pull requests, want %d", len(got), want)
	}
}

func TestGitea(t *testing.T) {
	w := newWorld(t)
	for name, test := range map[string]func(*testing.T, *world){
		"one pull request that moves on":         moves,
		"turned down":                            declined,
		"merged":                                 merged,
		"what people wrote stays":                peopleWrite,
		"pull requests of others are not ours":   others,
		"nothing to propose, and no branch":      nothing,
		"tokens":                                 tokens,
		"a text that is long, and one that lies": longText,
	} {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

func moves(t *testing.T, w *world) {
	w = w.fresh(t, "moves")
	one := w.commit("b")
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Open, Commit: one, Opened: true})
	made := w.repo.Request(1)
	if made.Title != "Promote "+one[:7]+" to prod" || !strings.Contains(made.Body, "in force in staging") || made.Poster.UserName != "agent" {
		t.Errorf("it is %q by %s:\n%s", made.Title, made.Poster.UserName, made.Body)
	}
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Open, Commit: one})
	if again := w.repo.Request(1); !again.Updated.Equal(*made.Updated) {
		t.Errorf("nothing changed, and it was written to: %s, before %s", again.Updated, made.Updated)
	}
	two := w.commit("c")
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 1, State: forge.Open, Commit: two, Updated: true})
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 1, State: forge.Open, Commit: two})
	if got := w.repo.Request(1); got.Title != "Promote "+two[:7]+" to prod" || strings.Contains(got.Body, one) || !strings.Contains(got.Body, two) {
		t.Errorf("it is %q:\n%s", got.Title, got.Body)
	}
	w.requests(1)
}

// A human's no holds for the commit, also when the agent has forgotten everything, and no longer than for the commit.
func declined(t *testing.T, w *world) {
	w = w.fresh(t, "declined")
	one := w.commit("b")
	w.propose(proposal(one))
	w.repo.Close(1)
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Closed, Commit: one})
	w.requests(1)

	two := w.commit("c")
	// What makes it hard: Gitea says now that the closed one's head is the second commit, which nobody has turned down.
	if got := w.repo.Request(1).Head.Sha; got != two {
		t.Errorf("Gitea gives %s for the head of the closed one: this test no longer shows what it should", got)
	}
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 2, State: forge.Open, Commit: two, Opened: true})
	w.repo.Close(2)
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 2, State: forge.Closed, Commit: two})

	w.move(one) // staging went back
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Closed, Commit: one})

	// A person who closed it empties its text as well. The branch is still there.
	none := ""
	if _, _, err := w.alice.Client.EditPullRequest("mesh", "declined", 2, sdk.EditPullRequestOption{Body: &none}); err != nil {
		t.Fatal(err)
	}
	w.move(two)
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 2, State: forge.Closed, Commit: two})
	w.requests(2)
	three := w.commit("three")
	w.want(w.propose(proposal(three)), forge.PullRequest{Number: 3, State: forge.Open, Commit: three, Opened: true})
	w.repo.Close(3)

	// And says yes after all.
	w.repo.Reopen(1)
	w.move(one)
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Open, Commit: one})

	// What was decided is found on the second page of the list as well.
	w.repo.Close(1)
	for _, file := range []string{"d"} {
		next := w.commit(file)
		if got := w.propose(proposal(next)); !got.Opened {
			t.Errorf("for %s: %+v", file, got)
		}
		w.repo.Close(w.repo.Requests()[0].Index)
	}
	w.move(two)
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 2, State: forge.Closed, Commit: two})
	w.requests(4)
}

func merged(t *testing.T, w *world) {
	w = w.fresh(t, "merged")
	one := w.commit("b")
	w.propose(proposal(one))
	w.repo.Merge(1, sdk.MergeStyleFastForwardOnly)
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Merged, Commit: one, MergeCommit: one})

	two := w.commit("c")
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 2, State: forge.Open, Commit: two, Opened: true})
	w.repo.Merge(2, sdk.MergeStyleSquash)
	tip := w.repo.Branch(base)
	if tip == two {
		t.Fatal("a squash made no commit of its own")
	}
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 2, State: forge.Merged, Commit: two, MergeCommit: tip})
	w.repo.Push(":" + head) // as "delete the branch after the merge" does
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 2, State: forge.Merged, Commit: two, MergeCommit: tip})
	w.requests(2)
}

func peopleWrite(t *testing.T, w *world) {
	w = w.fresh(t, "people")
	one := w.commit("b")
	w.propose(proposal(one))
	label, _, err := w.alice.Client.CreateLabel("mesh", "people", sdk.CreateLabelOption{Name: "urgent", Color: "#ff0000"})
	if err != nil {
		t.Fatal(err)
	}
	body := "Ask the shop first.\r\n\r\n" + strings.ReplaceAll(w.repo.Request(1).Body, "\n", "\r\n") + "\r\n\r\nSeen by alice.\r\n"
	if _, _, err := w.alice.Client.EditPullRequest("mesh", "people", 1, sdk.EditPullRequestOption{
		Title: "Black Friday", Body: &body, Labels: []int64{label.ID}, Assignees: []string{"alice"},
	}); err != nil {
		t.Fatal(err)
	}
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Open, Commit: one}) // and wrote nothing

	two := w.commit("c")
	w.want(w.propose(proposal(two)), forge.PullRequest{Number: 1, State: forge.Open, Commit: two, Updated: true})
	got := w.repo.Request(1)
	if got.Title != "Black Friday" || len(got.Labels) != 1 || len(got.Assignees) != 1 {
		t.Errorf("it is %q, with %d labels, %d assignees", got.Title, len(got.Labels), len(got.Assignees))
	}
	if !strings.HasPrefix(got.Body, "Ask the shop first.\n\n") || !strings.HasSuffix(got.Body, "Seen by alice.") || !strings.Contains(got.Body, two) || strings.Contains(got.Body, one) {
		t.Errorf("its body is now:\n%s", got.Body)
	}

	// A title that is ours again is kept up to date again.
	if _, _, err := w.alice.Client.EditPullRequest("mesh", "people", 1, sdk.EditPullRequestOption{Title: "Promote " + one[:7] + " to prod"}); err != nil {
		t.Fatal(err)
	}
	w.propose(proposal(two))
	if got := w.repo.Request(1).Title; got != "Promote "+two[:7]+" to prod" {
		t.Errorf("the title is %q", got)
	}
}

func others(t *testing.T, w *world) {
	w = w.fresh(t, "others")
	one := w.commit("b")
	w.repo.Push("main")
	// To another branch, from another branch, and from a fork's branch of the same name.
	w.repo.Push("main~1:refs/heads/env/staging")
	w.repo.OpenRequest(head, "env/staging", "to another branch")
	w.repo.OpenRequest("main", base, "from another branch")
	if _, _, err := w.agent.Client.CreateFork("mesh", "others", sdk.CreateForkOption{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.agent.Client.CreatePullRequest("mesh", "others", sdk.CreatePullRequestOption{Head: "agent:" + head, Base: base, Title: "from a fork"}); err != nil {
		t.Fatal(err)
	}
	got := w.propose(proposal(one))
	if !got.Opened || got.Number != 4 {
		t.Errorf("it took one of the others: %+v", got)
	}
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 4, State: forge.Open, Commit: one})
}

func nothing(t *testing.T, w *world) {
	w = w.fresh(t, "nothing")
	f := w.forge(w.agent.Token)
	one := w.repo.Resolve("main")
	w.move(one)
	p := proposal(one)
	p.Head = "mooring/absent"
	_ = wrong(t, f, p, forge.KindBranch, "HTTP 404")
	p = proposal(one)
	p.Base = "env/absent"
	_ = wrong(t, f, p, forge.KindBranch, "HTTP 404")
	w.requests(0)
	// Gitea takes one without a change, as GitLab does. GitHub does not.
	w.want(w.propose(proposal(one)), forge.PullRequest{Number: 1, State: forge.Open, Commit: one, Opened: true})
}

func tokens(t *testing.T, w *world) {
	w = w.fresh(t, "tokens")
	one := w.commit("b")
	mallory := w.s.User(t, "mallory")
	for name, test := range map[string]struct {
		token string
		kind  forge.Kind
		want  string
	}{
		"unknown":            {strings.Repeat("0", 40), forge.KindAuth, "HTTP 401"},
		"reads only":         {w.agent.Limited(t, "read:repository"), forge.KindForbidden, "HTTP 403"},
		"another scope":      {w.agent.Limited(t, "write:issue"), forge.KindForbidden, "HTTP 403"},
		"sees no such thing": {mallory.Token, forge.KindNotFound, "HTTP 404"},
	} {
		t.Run(name, func(t *testing.T) {
			e := wrong(t, w.forge(test.token), proposal(one), test.kind, test.want)
			if !strings.Contains(e.Hint, "write:repository") || !strings.Contains(e.Hint, "spec.promotion.secretRef") {
				t.Errorf("the hint is %q", e.Hint)
			}
			if strings.Contains(e.Error()+e.Hint, test.token) {
				t.Errorf("the token is in %v", e)
			}
		})
	}
	w.requests(0)
	t.Run("another authority", func(t *testing.T) {
		place, err := forge.Locate(w.repo.URL, forge.Place{Provider: forge.Gitea})
		if err != nil {
			t.Fatal(err)
		}
		f, err := forge.New(forge.Options{Place: place, Token: w.agent.Token})
		if err != nil {
			t.Fatal(err)
		}
		e := wrong(t, f, proposal(one), forge.KindTLS, "certificate")
		if !strings.Contains(e.Hint, "ca.crt") {
			t.Errorf("the hint is %q", e.Hint)
		}
	})
}

func longText(t *testing.T, w *world) {
	w = w.fresh(t, "long")
	one := w.commit("b")
	p := proposal(one)
	p.Title = strings.Repeat("ä\n", 400)
	p.Body = "<!-- mooring:end 0 -->\nMooring-Promotion: " + strings.Repeat("0", 40) + "\n```\n" + strings.Repeat("über\n", 300_000)
	w.want(w.propose(p), forge.PullRequest{Number: 1, State: forge.Open, Commit: one, Opened: true})
	w.want(w.propose(p), forge.PullRequest{Number: 1, State: forge.Open, Commit: one})
	w.repo.Close(1)
	w.want(w.propose(p), forge.PullRequest{Number: 1, State: forge.Closed, Commit: one})
}

// wrong proposes, wants an error, and gives it for a closer look.
func wrong(t *testing.T, f *forge.Forge, p forge.Proposal, kind forge.Kind, want string) *forge.Error {
	t.Helper()
	_, err := f.Propose(t.Context(), p)
	var e *forge.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an Error", err)
	}
	if e.Kind != kind || !strings.Contains(e.Error(), want) || e.Hint == "" {
		t.Errorf("got %s: %v (hint %q), want %s with %q", e.Kind, e, e.Hint, kind, want)
	}
	return e
}
