package forge_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/sync/forge"
)

// answers with a status, headers as name and value, and a body, to requests of a method.
func answers(method string, status int, body string, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if method != "" && r.Method != method {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		for n := 0; n < len(header); n += 2 {
			w.Header().Set(header[n], header[n+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // the client may have had enough
		return true
	}
}

// What the forges answer when they do not do it, in their words, and what somebody at three in the morning reads.
func TestRefusals(t *testing.T) {
	soon := strconv.FormatInt(time.Now().Add(10*time.Minute).Unix(), 10)
	for name, test := range map[string]struct {
		provider     forge.Provider
		answer       func(http.ResponseWriter, *http.Request) bool
		kind         forge.Kind
		says, hint   string
		after, until time.Duration // RetryAfter, from and to
	}{
		"token run out": {
			provider: forge.GitHub, answer: answers("", 401, `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest","status":"401"}`),
			kind: forge.KindAuth, says: "HTTP 401: Bad credentials", hint: "Pull requests: Read and write",
		},
		"token unknown to GitLab": {
			provider: forge.GitLab, answer: answers("", 401, `{"error":"invalid_token","error_description":"Token was revoked. You have to re-authorize from the user."}`),
			kind: forge.KindAuth, says: "Token was revoked", hint: "scope api and at least the role Developer",
		},
		"permission missing": {
			provider: forge.GitHub, answer: answers("POST", 403, `{"message":"Resource not accessible by personal access token"}`, "X-RateLimit-Remaining", "4000"),
			kind: forge.KindForbidden, says: "open a pull request on GitHub mesh/config: HTTP 403: Resource not accessible", hint: "scope repo",
		},
		"single sign-on": {
			provider: forge.GitHub, answer: answers("", 403, `{"message":"Resource protected by organization SAML enforcement."}`, "X-GitHub-SSO", "required; url=https://github.com/orgs/mesh/sso?authorization_request=SECRET"),
			kind: forge.KindForbidden, says: "SAML", hint: "single sign-on",
		},
		"scope missing on GitLab": {
			provider: forge.GitLab, answer: answers("", 403, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`),
			kind: forge.KindForbidden, says: "insufficient_scope; The request requires higher privileges", hint: "scope api",
		},
		"hourly limit of GitHub": {
			provider: forge.GitHub, answer: answers("", 403, `{"message":"Forbidden"}`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", soon), // a proxy has other words
			kind: forge.KindRateLimit, says: "HTTP 403: Forbidden", hint: "spares the limit", after: 9 * time.Minute, until: 11 * time.Minute,
		},
		"limit of GitHub for bursts": {
			provider: forge.GitHub, answer: answers("POST", 403, `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`, "X-RateLimit-Remaining", "4000", "Retry-After", "42"),
			kind: forge.KindRateLimit, says: "secondary rate limit", hint: "spares the limit", after: 42 * time.Second, until: 42 * time.Second,
		},
		"limit of GitHub that names no instant": {
			provider: forge.GitHub, answer: answers("", 429, `{"message":"You have exceeded a secondary rate limit."}`),
			kind: forge.KindRateLimit, says: "HTTP 429", hint: "spares the limit", after: time.Minute, until: time.Minute,
		},
		"limit of GitLab": {
			provider: forge.GitLab, answer: answers("", 429, `Retry later`, "RateLimit-Reset", soon),
			kind: forge.KindRateLimit, says: "HTTP 429", hint: "spares the limit", after: 9 * time.Minute, until: 11 * time.Minute,
		},
		"limit whose clock is wrong": {
			provider: forge.GitLab, answer: answers("", 429, ``, "Retry-After", "Fri, 01 Jan 2100 00:00:00 GMT"),
			kind: forge.KindRateLimit, says: "HTTP 429", hint: "spares the limit", after: time.Hour, until: time.Hour,
		},
		"repository that is hidden": {
			provider: forge.GitHub, answer: answers("", 404, `{"message":"Not Found"}`),
			kind: forge.KindNotFound, says: "look for the pull request of mooring/mesh/prod on GitHub mesh/config: HTTP 404: Not Found", hint: "whether the token's account sees it",
		},
		"archived": {
			provider: forge.GitHub, answer: answers("POST", 403, `{"message":"Repository was archived so is read-only."}`),
			kind: forge.KindForbidden, says: "archived so is read-only", hint: "token",
		},
		"renamed": {
			provider: forge.GitHub, answer: answers("", 301, `{"message":"Moved Permanently","url":"https://api.github.com/repositories/7/pulls"}`, "Location", "https://elsewhere.example.com/repositories/7/pulls?token=x"),
			kind: forge.KindMoved, says: "HTTP 301: it is at elsewhere.example.com/repositories/7/pulls now", hint: "spec.promotion.pullRequest.repository",
		},
		"what a rule of the repository forbids": {
			provider: forge.GitLab, answer: answers("POST", 400, `{"message":{"title":["does not follow the project's rules"],"base":["no merge requests on Friday"]}}`),
			kind: forge.KindRefused, says: "no merge requests on Friday", hint: "own words",
		},
		"down": {
			provider: forge.GitLab, answer: answers("", 503, `<html>We are updating</html>`, "Retry-After", "120"),
			kind: forge.KindUnavailable, says: "HTTP 503", hint: "well", after: 2 * time.Minute, until: 2 * time.Minute,
		},
		"breaks while it opens": {
			provider: forge.GitHub, answer: answers("POST", 502, ``),
			kind: forge.KindUnavailable, says: "open a pull request on GitHub mesh/config: HTTP 502", hint: "well",
		},
		"a page for people": {
			provider: forge.GitLab, answer: answers("", 200, `<html>Please sign in</html>`),
			kind: forge.KindAnswer, says: "invalid character", hint: "spec.promotion.pullRequest.url",
		},
		"an answer without an end": {
			provider: forge.GitHub, answer: answers("", 200, `[{"body":"`+strings.Repeat("x", 17<<20)+`"}]`),
			kind: forge.KindAnswer, says: "longer than 16 MiB", hint: "spec.promotion.pullRequest.url",
		},
		"the connection breaks": {
			provider: forge.GitHub, answer: func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
			kind: forge.KindUnavailable, says: "EOF", hint: "reached from the cluster",
		},
		"the token in the forge's words": {
			provider: forge.GitHub, answer: answers("", 400, `{"message":"no such token: `+token+`\u0000\n"}`),
			kind: forge.KindRefused, says: "no such token: ***", hint: "own words",
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := imitate(t, test.provider)
			i.answer = test.answer
			i.push(commitOf(1))
			e := wrong(t, i.forge(), proposal(commitOf(1)), test.kind, test.says)
			if !strings.Contains(e.Hint, test.hint) {
				t.Errorf("the hint is %q, want %q in it", e.Hint, test.hint)
			}
			if e.RetryAfter < test.after || e.RetryAfter > test.until {
				t.Errorf("to be tried again after %s, want %s to %s", e.RetryAfter, test.after, test.until)
			}
			if text := e.Error() + e.Hint; strings.Contains(text, token) || strings.Contains(text, "SECRET") || strings.ContainsAny(text, "\x00\n") {
				t.Errorf("the error holds what it must not: %q", text)
			}
			if i.asked > 2 {
				t.Errorf("it asked %d times: whoever calls tries again, later", i.asked)
			}
			if i.requests != nil {
				t.Errorf("there are pull requests: %v", i.requests)
			}
			again := test.kind == forge.KindRateLimit || test.kind == forge.KindUnavailable || test.kind == forge.KindAnswer
			if e.Retry() != again {
				t.Errorf("Retry is %t", e.Retry())
			}
		})
	}
}

// What only GitHub refuses, and GitLab's words for a branch that is not there.
func TestNothingToPropose(t *testing.T) {
	i := imitate(t, forge.GitHub)
	i.push(commitOf(0))
	_ = wrong(t, i.forge(), proposal(commitOf(0)), forge.KindNoChanges, "No commits between env/prod and mooring/mesh/prod")
	i.push(commitOf(1))
	p := proposal(commitOf(1))
	p.Base = "env/absent"
	_ = wrong(t, i.forge(), p, forge.KindBranch, "PullRequest; base; invalid")
	for _, provider := range []forge.Provider{forge.GitHub, forge.GitLab} {
		p := proposal(commitOf(1))
		p.Head = "mooring/absent"
		_ = wrong(t, imitate(t, provider).forge(), p, forge.KindBranch, "HTTP 422")
	}
}

// A proposal that cannot be one never leaves the machine.
func TestProposalsAreChecked(t *testing.T) {
	i := imitate(t, forge.GitHub)
	for name, spoil := range map[string]func(*forge.Proposal){
		"no head": func(p *forge.Proposal) { p.Head = "" }, "no base": func(p *forge.Proposal) { p.Base = "" }, "to itself": func(p *forge.Proposal) { p.Head = p.Base },
		"short id": func(p *forge.Proposal) { p.Commit = "c0de" }, "no title": func(p *forge.Proposal) { p.Title = " \n" },
	} {
		p := proposal(commitOf(1))
		spoil(&p)
		if _, err := i.forge().Propose(t.Context(), p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if i.asked != 0 {
		t.Errorf("the forge was asked %d times", i.asked)
	}
}

// A forge that accepts and says nothing holds nobody up, and one that is not there is said to be.
func TestSilence(t *testing.T) {
	release := make(chan struct{})
	silent := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)
	gone := httptest.NewTLSServer(http.NotFoundHandler())
	gone.Close()
	for _, provider := range []forge.Provider{forge.GitHub, forge.GitLab, forge.Gitea} {
		roots := x509.NewCertPool()
		roots.AddCert(silent.Certificate())
		at := func(url string) *forge.Forge {
			f, err := forge.New(forge.Options{
				Place: forge.Place{Provider: provider, URL: url, Repository: "mesh/config"}, Token: token, RootCAs: roots, Timeout: 300 * time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		begun := time.Now()
		if e := wrong(t, at(silent.URL), proposal(commitOf(1)), forge.KindTimeout, "300ms"); !e.Retry() {
			t.Errorf("%s: it is not tried again", provider)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: it took %s", provider, took)
		}
		if e := wrong(t, at(gone.URL), proposal(commitOf(1)), forge.KindUnavailable, "refused"); !e.Retry() {
			t.Errorf("%s: it is not tried again", provider)
		}
	}
}

// Nothing is sent to where a forge points: the token would go along.
func TestRedirectsAreNotFollowed(t *testing.T) {
	reached := false
	other := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached = true
		fmt.Fprint(w, "[]")
	}))
	defer other.Close()
	for _, provider := range []forge.Provider{forge.GitHub, forge.GitLab} {
		i := imitate(t, provider)
		i.push(commitOf(1))
		for _, status := range []int{301, 302, 307, 308} {
			i.answer = answers("", status, "", "Location", other.URL+"/x")
			_, err := i.forge().Propose(t.Context(), proposal(commitOf(1)))
			var e *forge.Error
			if !errors.As(err, &e) || e.Kind != forge.KindMoved {
				t.Errorf("%s, %d: %v", provider, status, err)
			}
		}
	}
	if reached {
		t.Error("the token was brought to another host")
	}
}
