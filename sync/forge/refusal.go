package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	// maxWords is how much of a forge's own words goes into an error.
	maxWords = 400
	// maxWait is the longest that a forge's word is taken for: beyond it, somebody's clock is wrong.
	maxWait = time.Hour
)

// refusal is an answer other than 2xx.
type refusal struct {
	status int
	header http.Header
	words  string
	method string
}

// words are what a forge says of a refusal: GitHub's message and its errors, GitLab's message, which may be a list or an object, or its error, Gitea's message.
func words(body []byte) string {
	var said struct {
		Message any    `json:"message"`
		Error   any    `json:"error"`
		Text    any    `json:"error_description"`
		Errors  any    `json:"errors"`
		Scope   string `json:"scope"`
	}
	if json.Unmarshal(body, &said) != nil {
		return "" // a proxy's page
	}
	var all []string
	for _, part := range []any{said.Message, said.Error, said.Text, said.Errors} {
		all = flat(all, part)
	}
	if said.Scope != "" {
		all = append(all, "scope "+said.Scope)
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.Join(all, "; "))
	if len(text) > maxWords {
		text = strings.ToValidUTF8(text[:maxWords], "") + "…"
	}
	return text
}

// flat gathers the texts in a piece of JSON.
func flat(all []string, part any) []string {
	switch v := part.(type) {
	case string:
		if v != "" {
			all = append(all, v)
		}
	case []any:
		for _, one := range v {
			all = flat(all, one)
		}
	case map[string]any:
		if text, ok := v["message"].(string); ok && text != "" {
			return append(all, text)
		}
		for _, key := range []string{"resource", "field", "code", "base"} { // GitHub's {"resource":"PullRequest","field":"head","code":"invalid"}
			all = flat(all, v[key])
		}
	}
	return all
}

// wait is how long the forge asks us to wait, as its headers say it.
func wait(h http.Header, now time.Time) time.Duration {
	if after := h.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err == nil {
			return min(max(time.Duration(seconds)*time.Second, 0), maxWait)
		}
		if at, err := http.ParseTime(after); err == nil {
			return min(max(at.Sub(now), 0), maxWait)
		}
	}
	for _, name := range []string{"X-RateLimit-Reset", "RateLimit-Reset"} {
		if at, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil {
			return min(max(time.Unix(at, 0).Sub(now).Truncate(time.Second)+time.Second, 0), maxWait)
		}
	}
	return 0
}

// limited says whether a refusal is for too many requests. GitHub says 403 for its limits, too.
func (r *refusal) limited() bool {
	switch {
	case r.status == http.StatusTooManyRequests:
		return true
	case r.status != http.StatusForbidden:
		return false
	}
	return r.header.Get("X-RateLimit-Remaining") == "0" || r.header.Get("Retry-After") != "" || strings.Contains(strings.ToLower(r.words), "rate limit")
}

// refused says what an answer means.
func (f *Forge) refused(r *refusal) *Error {
	said := fmt.Sprintf("HTTP %d", r.status)
	if r.words != "" {
		said += ": " + f.masked(r.words)
	}
	e := &Error{Err: errors.New(said)}
	token := rights(f.place.Provider)
	switch lower := strings.ToLower(r.words); {
	case r.limited():
		e.Kind, e.Hint = KindRateLimit, "nothing is wrong with the Mooring; a token of its own, or a longer spec.interval, spares the limit"
		if e.RetryAfter = wait(r.header, time.Now()); e.RetryAfter == 0 {
			e.RetryAfter = time.Minute // what GitHub asks for where it names no instant
		}
	case r.status == http.StatusUnauthorized:
		e.Kind, e.Hint = KindAuth, "make a new token: this one is wrong, revoked or has run out; "+token
	case r.status == http.StatusForbidden:
		e.Kind, e.Hint = KindForbidden, "give the token the right to this repository; "+token
		if sso := r.header.Get("X-GitHub-SSO"); sso != "" {
			e.Hint = "the organisation wants the token authorised for its single sign-on, on the page of the token; " + token
		}
	case r.status < 400:
		e.Kind, e.Hint = KindMoved, "name the repository's new place in spec.promotion.pullRequest.repository, or the API's in spec.promotion.pullRequest.url"
		if to, err := url.Parse(r.header.Get("Location")); err == nil && to.Path != "" {
			e.Err = fmt.Errorf("HTTP %d: it is at %s%s now", r.status, to.Host, to.Path)
		}
	case r.status >= 500:
		e.Kind, e.Hint, e.RetryAfter = KindUnavailable, "look whether the forge is well", wait(r.header, time.Now())
	case noChanges(lower):
		e.Kind, e.Hint = KindNoChanges, "the base branch has all of it: there is nothing to do"
	case r.method == http.MethodPost && noBranch(r.status, lower):
		e.Kind, e.Hint = KindBranch, "look whether the environment's branch, spec.source.ref.branch, is there; the agent pushes the other one"
	case r.status == http.StatusNotFound:
		e.Kind, e.Hint = KindNotFound, "look whether the repository is called so, and whether the token's account sees it: forges hide what it may not see; "+token
	default:
		e.Kind, e.Hint = KindRefused, "the forge's own words say why"
	}
	return e
}

// noChanges knows the words of each forge for a pull request without a change.
func noChanges(lower string) bool {
	return strings.Contains(lower, "no commits between") || // GitHub
		strings.Contains(lower, "no changes between") // Gitea
}

// noBranch says whether a pull request could not be opened for want of a branch. The list was read before, so the repository is there.
func noBranch(status int, lower string) bool {
	if status == http.StatusNotFound { // Gitea, without a word
		return true
	}
	return strings.Contains(lower, "head; invalid") || strings.Contains(lower, "base; invalid") || // GitHub
		strings.Contains(lower, "branch") && strings.Contains(lower, "does not exist") // GitLab
}

// exists says that a forge has a pull request for these branches already.
func (r *refusal) exists() bool { return strings.Contains(strings.ToLower(r.words), "already exists") }
