package forge_test

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mooring-dev/mooring/sync/forge"
)

const token = "tok3n-of-the-agent"

// imitation of GitHub's or GitLab's API over HTTP, as far as pull requests go: it remembers what it was told, answers as their documentation says, and refuses what
// they refuse. Their official clients speak to it.
type imitation struct {
	t        *testing.T
	provider forge.Provider
	server   *httptest.Server

	mu       sync.Mutex
	requests []*pull
	branches map[string]string
	// inBase are the commits that the base branch has.
	inBase map[string]bool
	writes int
	asked  int
	// hidden says that the list does not show what was opened a moment ago.
	hidden int
	// answer, when it is there, is asked first, and answers when it says so.
	answer func(http.ResponseWriter, *http.Request) bool
}

// pull is a pull request.
type pull struct {
	number                  int
	title, body, head, base string
	sha, state, merge       string
	fork                    bool
}

func imitate(t *testing.T, provider forge.Provider) *imitation {
	t.Helper()
	i := &imitation{t: t, provider: provider, branches: map[string]string{base: commitOf(0)}, inBase: map[string]bool{commitOf(0): true}}
	i.server = httptest.NewTLSServer(i)
	t.Cleanup(i.server.Close)
	return i
}

// commitOf numbers commits.
func commitOf(n int) string { return fmt.Sprintf("%07x%033x", 0xc0de000+n, n) }

// repository is what the Git URL leads to; the API has the slashes of GitLab's escaped.
func (i *imitation) repository() string {
	if i.provider == forge.GitLab {
		return "mesh/shop/config"
	}
	return "mesh/config"
}

func (i *imitation) api() string {
	if i.provider == forge.GitLab {
		return "/api/v4/projects/mesh%2Fshop%2Fconfig/merge_requests"
	}
	return "/api/v3/repos/mesh/config/pulls"
}

// forge is what an agent that was just started has.
func (i *imitation) forge() *forge.Forge {
	i.t.Helper()
	return i.forgeWith(forge.Options{})
}

// forgeWith is forge with more options.
func (i *imitation) forgeWith(o forge.Options) *forge.Forge {
	i.t.Helper()
	place, err := forge.Locate(i.server.URL+"/"+i.repository()+".git", forge.Place{Provider: i.provider})
	if err != nil {
		i.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(i.server.Certificate())
	o.Place, o.Token, o.RootCAs = place, token, roots
	f, err := forge.New(o)
	if err != nil {
		i.t.Fatal(err)
	}
	return f
}

// push moves the agent's branch; open pull requests follow it.
func (i *imitation) push(commit string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.branches[head] = commit
	for _, p := range i.requests {
		if p.state == "open" && p.head == head && !p.fork {
			p.sha = commit
		}
	}
}

// person does something to a pull request, as its page would.
func (i *imitation) person(number int, does func(*pull)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	does(i.requests[number-1])
}

func (i *imitation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if r.Method != http.MethodGet {
		i.writes++
	}
	if i.answer != nil && i.answer(w, r) {
		return
	}
	given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if i.provider == forge.GitLab {
		given = r.Header.Get("Private-Token")
	}
	if given != token {
		i.say(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
		return
	}
	path := r.URL.EscapedPath()
	one, isOne := strings.CutPrefix(path, i.api()+"/")
	switch {
	case r.Method == http.MethodGet && path == i.api():
		i.list(w, r)
	case r.Method == http.MethodPost && path == i.api():
		i.open(w, r)
	case isOne && (r.Method == http.MethodPatch && i.provider == forge.GitHub || r.Method == http.MethodPut && i.provider == forge.GitLab):
		i.edit(w, r, one)
	default:
		i.say(w, http.StatusNotFound, map[string]any{"message": "404 Not Found"})
	}
}

func (i *imitation) say(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(what); err != nil {
		i.t.Error(err)
	}
}

// list filters as both do: GitHub's head has the owner's name before it and leaves forks of others out, GitLab's source branch does not.
func (i *imitation) list(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	from, to := q.Get("source_branch"), q.Get("target_branch")
	if i.provider == forge.GitHub {
		owner, branch, _ := strings.Cut(q.Get("head"), ":")
		if owner != "mesh" || q.Get("state") != "all" {
			i.t.Errorf("GitHub was asked for %s", r.URL)
		}
		from, to = branch, q.Get("base")
	}
	found := []any{}
	for _, p := range slices.Backward(i.requests[:len(i.requests)-i.hidden]) {
		if p.head == from && p.base == to {
			found = append(found, i.show(p))
		}
	}
	i.hidden = 0
	size, err := strconv.Atoi(q.Get("per_page"))
	if err != nil {
		i.t.Error(err)
	}
	i.say(w, http.StatusOK, found[:min(len(found), size)])
}

func (i *imitation) open(w http.ResponseWriter, r *http.Request) {
	var o struct {
		Title, Head, Base, Body string
		Description             string
		Source                  string `json:"source_branch"`
		Target                  string `json:"target_branch"`
	}
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		i.t.Error(err)
	}
	p := &pull{number: len(i.requests) + 1, title: o.Title, body: o.Body + o.Description, head: o.Head + o.Source, base: o.Base + o.Target, state: "open"}
	p.sha = i.branches[p.head]
	if refusal := i.refuse(p); refusal != nil {
		i.say(w, refusal.status, refusal.what)
		return
	}
	i.requests = append(i.requests, p)
	i.say(w, http.StatusCreated, i.show(p))
}

type refusal struct {
	status int
	what   any
}

func (i *imitation) refuse(p *pull) *refusal {
	invalid := func(what any) *refusal {
		return &refusal{http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed", "errors": []any{what}}}
	}
	if len(p.title) == 0 || len([]rune(p.title)) > 255 || len([]rune(p.body)) > 65536 && i.provider == forge.GitHub || len([]rune(p.body)) > 1<<20 {
		i.t.Errorf("a title of %d, a body of %d", len(p.title), len(p.body))
	}
	for _, other := range i.requests {
		if other.state == "open" && other.head == p.head && other.base == p.base && !other.fork {
			if i.provider == forge.GitLab {
				return &refusal{http.StatusConflict, map[string]any{"message": []string{"Another open merge request already exists for this source branch: !" + strconv.Itoa(other.number)}}}
			}
			return invalid(map[string]any{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for mesh:" + p.head + "."})
		}
	}
	switch {
	case p.sha == "" && i.provider == forge.GitLab:
		return &refusal{http.StatusUnprocessableEntity, map[string]any{"message": map[string]any{"base": []string{`Source branch "` + p.head + `" does not exist`}}}}
	case p.sha == "":
		return invalid(map[string]any{"resource": "PullRequest", "field": "head", "code": "invalid"})
	case i.branches[p.base] == "" && i.provider == forge.GitHub:
		return invalid(map[string]any{"resource": "PullRequest", "field": "base", "code": "invalid"})
	case i.inBase[p.sha] && i.provider == forge.GitHub:
		return invalid(map[string]any{"resource": "PullRequest", "code": "custom", "message": "No commits between " + p.base + " and " + p.head})
	}
	return nil
}

func (i *imitation) edit(w http.ResponseWriter, r *http.Request, number string) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(i.requests) {
		i.say(w, http.StatusNotFound, map[string]any{"message": "404 Not Found"})
		return
	}
	var o map[string]string // nothing but texts is ever changed
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		i.t.Error(err)
	}
	p := i.requests[n-1]
	for field, value := range o {
		switch field {
		case "title":
			p.title = value
		case "body", "description":
			p.body = value
		default:
			i.t.Errorf("%s is changed to %q", field, value)
		}
	}
	i.say(w, http.StatusOK, i.show(p))
}

// show writes a pull request as each of them does.
func (i *imitation) show(p *pull) map[string]any {
	from := 1
	if p.fork {
		from = 2
	}
	page := fmt.Sprintf("%s/%s/%d", i.server.URL, i.repository(), p.number)
	if i.provider == forge.GitLab {
		state := map[string]string{"open": "opened"}[p.state]
		if state == "" {
			state = p.state
		}
		shown := map[string]any{
			"id": 1000 + p.number, "iid": p.number, "title": p.title, "description": p.body, "web_url": page, "state": state, "sha": p.sha,
			"source_branch": p.head, "target_branch": p.base, "source_project_id": from, "target_project_id": 1, "merge_commit_sha": nil,
		}
		if p.merge != "" {
			shown["merge_commit_sha"] = p.merge
		}
		return shown
	}
	shown := map[string]any{
		"id": 1000 + p.number, "number": p.number, "title": p.title, "body": p.body, "html_url": page, "state": "open", "merged_at": nil,
		"merge_commit_sha": "7e57000000000000000000000000000000000000", // of the merge that GitHub tries in the background
		"head":             map[string]any{"ref": p.head, "sha": p.sha, "repo": map[string]any{"id": from}},
		"base":             map[string]any{"ref": p.base, "sha": i.branches[p.base], "repo": map[string]any{"id": 1}},
	}
	if p.state != "open" {
		shown["state"] = "closed"
	}
	if p.state == "merged" {
		shown["merged_at"], shown["merge_commit_sha"] = "2026-11-02T10:00:00Z", p.merge
	}
	return shown
}
