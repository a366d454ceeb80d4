package repos_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// pushServers are servers that take pushes, over both ways.
func pushServers(t *testing.T, test func(t *testing.T, s *gitserver.Server, auth repos.Auth)) {
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		test(t, gitserver.HTTP(t, gitserver.HTTPOptions{AllowPush: true}), repos.Auth{})
	})
	t.Run("ssh", func(t *testing.T) {
		t.Parallel()
		s := gitserver.SSH(t, gitserver.SSHOptions{})
		test(t, s, sshAuth(t, s))
	})
}

// promotion is a repository with a branch that is some commits behind another.
func promotion(t *testing.T, s *gitserver.Server, name string, commits int) (repo *gitserver.TestRepo, from, to repos.Commit) {
	t.Helper()
	repo = s.Repo(t, name, map[string]string{"v": "0"})
	from = repos.Commit(repo.Resolve("main"))
	repo.SetBranch("env/prod", "main")
	for i := range commits {
		to = repos.Commit(repo.Commit(gitserver.Change{Files: map[string]string{"v": fmt.Sprint(i + 1)}}))
	}
	return repo, from, to
}

// hook installs a hook of the server's.
func hook(t *testing.T, repo *gitserver.TestRepo, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(repo.Dir, "hooks", name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// wantBranch checks where a branch is on the server; empty means that there is none. It also checks that the
// server's repository is whole.
func wantBranch(t *testing.T, repo *gitserver.TestRepo, branch string, want repos.Commit) {
	t.Helper()
	if got := repos.Commit(repo.Git("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)); got != want {
		t.Errorf("branch %s is at %q, want %q", branch, got, want)
	}
	repo.Git("fsck", "--full", "--strict")
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	pushServers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo, from, to := promotion(t, s, "shop.git", 3)
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		store, dir := open(t, repos.Options{})
		advance := func(branch string, from, to repos.Commit) {
			t.Helper()
			if err := store.Advance(t.Context(), remote, branch, from, to); err != nil {
				t.Fatalf("%v (hint: %s)", err, repos.HintOf(err))
			}
			wantBranch(t, repo, branch, to)
		}
		advance("env/prod", from, to)
		advance("env/prod", from, to) // once more, as after a crash
		advance("env/new", "", from)
		advance("env/new", "", from)
		err := store.Advance(t.Context(), remote, "env/new", "", to)
		wantKind(t, err, repos.KindMoved, "exists already", string(from), "advance "+repo.URL)
		wantBranch(t, repo, "env/new", from)
		advance("env/new", from, to)
		if left := partial(t, dir); len(left) > 0 {
			t.Errorf("the store holds %q, want nothing", left)
		}
		// Who reads sees it at once.
		if got := pull(t, store, remote, repos.Ref{Branch: "env/prod"}); read(t, got.FS(), "v") != "3" {
			t.Errorf("env/prod is at %s", got.Revision)
		}
	})
}

// What is not forward is refused before anything is sent.
func TestAdvanceRefusesWhatIsNotForward(t *testing.T) {
	t.Parallel()
	pushServers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo, old, tip := promotion(t, s, "shop.git", 3)
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		store, _ := open(t, repos.Options{})
		hook(t, repo, "pre-receive", "touch pushed\n")

		repo.SetBranch("env/prod", "main")
		err := store.Advance(t.Context(), remote, "env/prod", tip, old)
		wantKind(t, err, repos.KindDiverged, "already past", string(old), string(tip), "reverse")
		e, ok := errors.AsType[*repos.DivergedError](err)
		if want := (repos.DivergedError{Branch: "env/prod", From: tip, To: old, Relation: repos.Behind}); !ok || *e != want {
			t.Errorf("error is %+v, want %+v", e, want)
		}
		wantBranch(t, repo, "env/prod", tip)

		own := repos.Commit(repo.Commit(gitserver.Change{Branch: "env/eu", From: string(old), Files: map[string]string{"hotfix": "1"}}))
		err = store.Advance(t.Context(), remote, "env/eu", own, tip)
		wantKind(t, err, repos.KindDiverged, "would lose them", "merge")
		wantBranch(t, repo, "env/eu", own)

		unrelated := repos.Commit(repo.Commit(gitserver.Change{Branch: "other", Files: map[string]string{"x": "1"}}))
		err = store.Advance(t.Context(), remote, "env/eu", own, unrelated)
		wantKind(t, err, repos.KindDiverged, string(unrelated))

		// The branch is not where it was said to be, or not at all.
		err = store.Advance(t.Context(), remote, "env/eu", old, tip)
		wantKind(t, err, repos.KindMoved, "is at "+string(own), "no longer at "+string(old), "nothing was changed")
		err = store.Advance(t.Context(), remote, "env/prd", old, tip)
		wantKind(t, err, repos.KindRefNotFound, `branch "env/prd" does not exist`, "env/prod")
		if !errors.Is(err, repos.ErrRefNotFound) {
			t.Errorf("%v is not ErrRefNotFound", err)
		}
		// A commit that the server does not have.
		err = store.Advance(t.Context(), remote, "env/eu", own, someID)
		wantKind(t, err, repos.KindCommitNotFound, someID)

		for _, c := range []struct {
			branch   string
			from, to repos.Commit
		}{{"", old, tip}, {"refs/heads/main", old, tip}, {"a..b", old, tip}, {"main", "abc", tip}, {"main", old, "HEAD"}, {"main", old, ""}, {"main", "", ""}} {
			wantKind(t, store.Advance(t.Context(), remote, c.branch, c.from, c.to), repos.KindRef)
		}
		if len(files(t, repo.Dir, "pushed")) > 0 {
			t.Error("something was pushed")
		}
	})
}

// Whoever moves the branch between our look and our push wins.
func TestAdvanceRace(t *testing.T) {
	t.Parallel()
	pushServers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo, from, to := promotion(t, s, "shop.git", 2)
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		human := repos.Commit(repo.Commit(gitserver.Change{Branch: "human", From: string(from), Files: map[string]string{"hotfix": "1"}}))
		store, _ := open(t, repos.Options{})
		meanwhile := func(do string) {
			hook(t, repo, "pre-receive", "unset GIT_QUARANTINE_PATH\nexec git update-ref "+do+"\n")
		}
		meanwhile("refs/heads/env/prod " + string(human))
		err := store.Advance(t.Context(), remote, "env/prod", from, to)
		wantKind(t, err, repos.KindMoved, "is at "+string(human), "nothing was changed")
		wantBranch(t, repo, "env/prod", human)

		repo.SetBranch("env/prod", string(from))
		meanwhile("-d refs/heads/env/prod")
		err = store.Advance(t.Context(), remote, "env/prod", from, to)
		wantKind(t, err, repos.KindRefNotFound)
		wantBranch(t, repo, "env/prod", "")

		meanwhile("refs/heads/env/prod " + string(human))
		err = store.Advance(t.Context(), remote, "env/prod", "", to)
		wantKind(t, err, repos.KindMoved, "exists already")
		wantBranch(t, repo, "env/prod", human)

		repo.SetBranch("env/prod", string(from))
		meanwhile("refs/heads/env/prod " + string(to)) // another one of us
		if err := store.Advance(t.Context(), remote, "env/prod", from, to); err != nil {
			t.Errorf("the branch came to where it was to go: %v", err)
		}
	})
}

// A server that says no is quoted.
func TestAdvanceRefused(t *testing.T) {
	t.Parallel()
	pushServers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo, from, to := promotion(t, s, "shop.git", 1)
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		store, _ := open(t, repos.Options{})
		hook(t, repo, "pre-receive", "echo error: >&2\necho 'error: forge: protected branch,' >&2\necho 'ask @mesh-owners' >&2\nexit 1\n")
		err := store.Advance(t.Context(), remote, "env/prod", from, to)
		wantKind(t, err, repos.KindRefused, `refused to move branch "env/prod"`, "pre-receive hook declined",
			"it says: forge: protected branch, ask @mesh-owners", "let the user of this credential push")
		wantBranch(t, repo, "env/prod", from)
		hook(t, repo, "pre-receive", "echo 'User permission denied for writing.' >&2\nexit 1\n")
		err = store.Advance(t.Context(), remote, "env/prod", from, to)
		wantKind(t, err, repos.KindAuth, "no right to push", "permission denied")
		hook(t, repo, "pre-receive", "")
		hook(t, repo, "update", "exit 1\n")
		err = store.Advance(t.Context(), remote, "env/prod", from, to)
		wantKind(t, err, repos.KindRefused, "hook declined")
		hook(t, repo, "update", "")

		// A branch cannot be made where another one is a folder.
		err = store.Advance(t.Context(), remote, "env", "", to)
		wantKind(t, err, repos.KindRefused, `create branch "env"`, "env/prod")
		wantBranch(t, repo, "env/prod", from)
	})
}

// Who may read and not push is told so.
func TestAdvanceWithoutTheRight(t *testing.T) {
	t.Parallel()
	const password = "s3cret-password"
	s := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, Username: "ship", Password: password})
	repo, from, to := promotion(t, s, "shop.git", 1)
	remote := repos.Remote{URL: repo.URL, Auth: auth(t, map[string]string{"ca.crt": string(s.CA()), "username": "ship", "password": password})}
	store, _ := open(t, repos.Options{})
	err := store.Advance(t.Context(), remote, "env/prod", from, to)
	wantKind(t, err, repos.KindAuth, "no right to push", "403", "write access")
	wantBranch(t, repo, "env/prod", from)

	public := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo, from, to = promotion(t, public, "shop.git", 1)
	err = store.Advance(t.Context(), repos.Remote{URL: repo.URL}, "env/prod", from, to)
	wantKind(t, err, repos.KindAuth, "no right to push", "needs a Secret")

	ssh := gitserver.SSH(t, gitserver.SSHOptions{ReadOnly: true})
	repo, from, to = promotion(t, ssh, "shop.git", 1)
	err = store.Advance(t.Context(), repos.Remote{URL: repo.URL, Auth: sshAuth(t, ssh)}, "env/prod", from, to)
	wantKind(t, err, repos.KindAuth, "no right to push", "marked as read only", "deploy key")

	// A secret goes over http no more than for reading.
	err = store.Advance(t.Context(), repos.Remote{URL: public.RepoURL("shop.git"), Auth: remote.Auth}, "env/prod", from, to)
	wantKind(t, err, repos.KindCredentials, "not sent over http")
}

// What a web server answers to a push alone is sorted and quoted as for reading, and tells no secret.
func TestAdvanceHTTPFaults(t *testing.T) {
	t.Parallel()
	const token = "s3cret-token"
	s := gitserver.HTTP(t, gitserver.HTTPOptions{AllowPush: true})
	repo, from, to := promotion(t, s, "shop.git", 1)
	var answer http.HandlerFunc
	var on string
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.Addr()})
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.Query().Get("service") == on {
			answer(w, r)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	defer front.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	remote := repos.Remote{URL: front.URL + "/shop.git", Auth: auth(t, map[string]string{"ca.crt": string(ca), "bearerToken": token})}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "no way\nwith "+token)
		}
	}
	for _, c := range []struct {
		answer http.HandlerFunc
		kind   repos.Kind
		says   string
	}{
		{status(401), repos.KindAuth, "no right to push: the server answers 401 Unauthorized: no way with ***"},
		{status(403), repos.KindAuth, "write access"},
		{status(404), repos.KindAuth, "no right to push: the server answers 404"},
		{status(429), repos.KindUnavailable, "429"},
		{status(500), repos.KindUnavailable, "500"},
		{status(200), repos.KindProtocol, ""},
		{http.RedirectHandler("https://git.example.com/shop.git/info/refs", http.StatusFound).ServeHTTP, repos.KindRedirect, "git.example.com"},
	} {
		for _, on = range []string{"GET git-receive-pack", "POST "} {
			store, _ := open(t, repos.Options{})
			answer = c.answer
			push := store.Advance
			if on == "POST " {
				push = store.SetBranch // asks for no history
			}
			err := push(t.Context(), remote, "env/prod", from, to)
			wantKind(t, err, c.kind, c.says)
			if text := err.Error() + repos.HintOf(err); strings.Contains(text, token) || strings.Contains(text, "\n") {
				t.Errorf("%q shows the token or a line end", text)
			}
		}
	}
	wantBranch(t, repo, "env/prod", from)
}

func TestSetBranch(t *testing.T) {
	t.Parallel()
	pushServers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo, old, tip := promotion(t, s, "shop.git", 2)
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		side := repos.Commit(repo.Commit(gitserver.Change{Branch: "side", From: string(old), Files: map[string]string{"x": "1"}}))
		store, _ := open(t, repos.Options{})
		const ours = "mooring/promote-prod"
		for _, c := range []struct{ from, to repos.Commit }{
			{"", tip}, {"", tip}, {tip, side}, {side, old}, {old, ""}, {old, ""}, {"", side}, {side, ""},
		} {
			if err := store.SetBranch(t.Context(), remote, ours, c.from, c.to); err != nil {
				t.Fatalf("from %q to %q: %v", c.from, c.to, err)
			}
			wantBranch(t, repo, ours, c.to)
		}
		repo.SetBranch(ours, string(side))
		for _, to := range []repos.Commit{tip, ""} {
			err := store.SetBranch(t.Context(), remote, ours, old, to)
			wantKind(t, err, repos.KindMoved, string(side), "set branch "+repo.URL)
		}
		wantBranch(t, repo, ours, side)
		repo.Config("receive.denyDeletes", "true")
		err := store.SetBranch(t.Context(), remote, ours, side, "")
		wantKind(t, err, repos.KindRefused, "delete branch", "deletion prohibited")
		wantKind(t, store.SetBranch(t.Context(), remote, ours, "", ""), repos.KindRef)
		wantBranch(t, repo, ours, side)
	})
}

// A server that stalls is left at the deadline, wherever it stalls, and the error does not claim that nothing happened.
func TestAdvanceStalls(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"git-upload-pack", "git-receive-pack"} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			s := gitserver.HTTP(t, gitserver.HTTPOptions{AllowPush: true})
			repo, from, to := promotion(t, s, "shop.git", 1)
			remote := repos.Remote{URL: repo.URL}
			store, _ := open(t, repos.Options{Timeout: 2 * time.Second})
			if err := s.Inject(gitserver.Fault{Stall: true, StallAfter: 10, On: on}); err != nil {
				t.Fatal(err)
			}
			within(t, 20*time.Second, func() {
				err := store.Advance(t.Context(), remote, "env/prod", from, to)
				wantKind(t, err, repos.KindTimeout, "2s")
				if unsure := strings.Contains(repos.HintOf(err), "may have moved"); unsure != (on == "git-receive-pack") {
					t.Errorf("stalled on %s: hint %q", on, repos.HintOf(err))
				}
			})
			if err := s.Heal(); err != nil {
				t.Fatal(err)
			}
			store, _ = open(t, repos.Options{})
			if err := store.Advance(t.Context(), remote, "env/prod", from, to); err != nil {
				t.Error(err)
			}
			wantBranch(t, repo, "env/prod", to)
		})
	}
	for _, c := range []struct {
		name, hook string
		timeout    time.Duration
		moves      bool
	}{
		{"before the branch moves", "pre-receive", 2 * time.Second, false},
		// Once the server has said that the branch is there, what it does after that is its own affair.
		{"after the branch moved", "post-receive", 5 * time.Second, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := gitserver.SSH(t, gitserver.SSHOptions{})
			repo, from, to := promotion(t, s, "shop.git", 1)
			hook(t, repo, c.hook, "exec sleep 60\n")
			ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
			defer cancel()
			store, _ := open(t, repos.Options{})
			at := from
			within(t, 20*time.Second, func() {
				err := store.Advance(ctx, repos.Remote{URL: repo.URL, Auth: sshAuth(t, s)}, "env/prod", from, to)
				if !c.moves {
					wantKind(t, err, repos.KindTimeout)
					return
				}
				if at = to; err != nil {
					t.Error(err)
				}
			})
			wantBranch(t, repo, "env/prod", at)
		})
	}
}

// An answer that is lost on its way is not taken for a failure when the branch did move.
func TestAdvanceAnswerLost(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{AllowPush: true})
	repo, from, to := promotion(t, s, "shop.git", 1)
	store, _ := open(t, repos.Options{})
	if err := s.Inject(gitserver.Fault{Cut: true, CutAfter: 3, On: "git-receive-pack", Times: 1}); err != nil {
		t.Fatal(err)
	}
	hook(t, repo, "post-receive", "sleep 0.2; echo done >&2\n")
	if err := store.Advance(t.Context(), repos.Remote{URL: repo.URL}, "env/prod", from, to); err != nil {
		t.Errorf("%v (hint: %s)", err, repos.HintOf(err))
	}
	wantBranch(t, repo, "env/prod", to)
}

// Hooks that run after the push run to their end: forges do their own work in them.
func TestAdvanceWaitsForTheHooks(t *testing.T) {
	t.Parallel()
	pushServers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo, from, to := promotion(t, s, "shop.git", 1)
		store, _ := open(t, repos.Options{})
		hook(t, repo, "post-receive", "echo beginning >&2\nsleep 0.5\necho still here >&2\necho >finished\n")
		if err := store.Advance(t.Context(), repos.Remote{URL: repo.URL, Auth: auth}, "env/prod", from, to); err != nil {
			t.Fatal(err)
		}
		if len(files(t, repo.Dir, "finished")) != 1 {
			t.Error("the server's hook was cut off")
		}
	})
}
