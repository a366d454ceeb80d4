package forge

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/repos"
)

// Kind sorts errors by what mends them.
type Kind string

// The kinds of Error.
const (
	// KindOptions is a Mooring that does not say which forge, which repository, or with what token.
	KindOptions Kind = "Options"
	// KindAuth is a token that the forge does not know, or no longer: HTTP 401.
	KindAuth Kind = "Auth"
	// KindForbidden is a token that may not do this: HTTP 403.
	KindForbidden Kind = "Forbidden"
	// KindRateLimit is a forge that wants fewer requests; RetryAfter says when it takes the next.
	KindRateLimit Kind = "RateLimit"
	// KindNotFound is a repository that the forge does not have, or does not show to this token: HTTP 404.
	KindNotFound Kind = "NotFound"
	// KindMoved is a repository that has another name now, or an address that sends elsewhere: HTTP 3xx.
	KindMoved Kind = "Moved"
	// KindNoChanges is a head branch that has nothing that the base branch lacks: there is nothing to propose.
	KindNoChanges Kind = "NoChanges"
	// KindBranch is a head or base branch that the repository does not have.
	KindBranch Kind = "Branch"
	// KindRefused is what the forge does not take for another reason, which its own words tell.
	KindRefused Kind = "Refused"
	// KindUnavailable is a forge that is away, broken or busy: no connection, HTTP 5xx.
	KindUnavailable Kind = "Unavailable"
	// KindTimeout is a forge that did not answer in time.
	KindTimeout Kind = "Timeout"
	// KindProxy is a proxy that is away, or does not let us through.
	KindProxy Kind = "Proxy"
	// KindTLS is a forge whose certificate is not trusted.
	KindTLS Kind = "TLS"
	// KindAnswer is an answer that is no forge's: too long, or not of its API.
	KindAnswer Kind = "Answer"
)

// Error is what this package returns for everything that goes wrong. It never holds the token.
type Error struct {
	Kind Kind
	// Op says what was done: find pull request, open pull request, update pull request #7.
	Op string
	// Place is the forge and the repository: GitHub owner/name. Empty where the Mooring does not say it.
	Place string
	// Err is the cause, with the forge's own words.
	Err error
	// Hint is the next step for whoever can mend it. Error does not print it.
	Hint string
	// RetryAfter is how long the forge asks us to wait; mostly zero.
	RetryAfter time.Duration
}

// Error writes "op on place: cause".
func (e *Error) Error() string {
	var where string
	if e.Place != "" {
		where = " on " + e.Place
	}
	if e.Op == "" {
		return e.Err.Error()
	}
	return e.Op + where + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retry tells whether the same call may succeed later without anybody mending anything.
func (e *Error) Retry() bool {
	switch e.Kind {
	case KindRateLimit, KindUnavailable, KindTimeout, KindProxy, KindAnswer:
		return true
	}
	return false
}

func failf(kind Kind, hint, format string, args ...any) *Error {
	return &Error{Kind: kind, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// rights are what a token needs, in the words of the page on which it is made.
func rights(p Provider) string {
	const where = "the token lies in the Secret of spec.promotion.secretRef under the key token"
	switch p {
	case GitHub:
		return where + "; a fine-grained one needs the repository and its permission Pull requests: Read and write, a classic one the scope repo"
	case GitLab:
		return where + "; it needs the scope api and at least the role Developer in the project"
	default:
		return where + "; it needs the scope write:repository, and its account must be able to write to the repository"
	}
}

// explain turns what a client says into an Error. What the forge itself answered, as w saw it, counts for more than the client's words.
func (f *Forge) explain(op string, w *wire, err error) error {
	if err == nil {
		return nil
	}
	e := f.sort(w.refusal(), err)
	e.Op, e.Place = op, f.name()
	return e
}

func (f *Forge) sort(r *refusal, err error) *Error {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
	)
	proxy := repos.ProxyError(err)
	switch {
	case r != nil:
		return f.refused(r)
	case proxy != nil:
		return &Error{Kind: KindProxy, Hint: proxy.Hint, Err: f.clean(proxy)}
	case errors.Is(err, errTooLong):
		return failf(KindAnswer, "look whether spec.promotion.pullRequest.url leads to the forge's API", "its answer is longer than %d MiB", maxAnswer>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return failf(KindTimeout, "look whether the forge is up", "no answer within %s: %w", f.timeout, context.DeadlineExceeded)
	case errors.Is(err, context.Canceled):
		return &Error{Kind: KindTimeout, Err: context.Canceled}
	case errors.As(err, &authority), errors.As(err, &host), errors.As(err, &invalid):
		return failf(KindTLS, "put the certificate of the forge's own authority into the Secret of spec.promotion.secretRef under the key ca.crt", "%w", f.clean(err))
	}
	var broken interface{ Timeout() bool }
	if errors.As(err, &broken) { // of package net: there was no answer
		if broken.Timeout() {
			return failf(KindTimeout, "look whether the forge is up", "%w", f.clean(err))
		}
		return failf(KindUnavailable, "look whether the forge is up and can be reached from the cluster", "%w", f.clean(err))
	}
	return failf(KindAnswer, "look whether spec.promotion.pullRequest.url leads to the forge's API", "%w", f.clean(err))
}

// clean keeps an error's words and takes the token out of them.
func (f *Forge) clean(err error) error { return errors.New(f.masked(err.Error())) }

func (f *Forge) masked(s string) string { return strings.ReplaceAll(s, f.token, "***") }
