package repos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind sorts errors by what mends them.
type Kind string

// The kinds of Error.
const (
	// KindURL is a URL that is not fetched from: unknown scheme, a local path, credentials inside.
	KindURL Kind = "URL"
	// KindRef is a ref that cannot be right, such as one with two fields set.
	KindRef Kind = "Ref"
	// KindCredentials is a Secret that is incomplete or does not go with the URL.
	KindCredentials Kind = "Credentials"
	// KindAuth is a server that does not accept the credentials: HTTP 401 and 403, a refused SSH key.
	KindAuth Kind = "Auth"
	// KindHostKey is an SSH server that is unknown or not who it was.
	KindHostKey Kind = "HostKey"
	// KindTLS is a TLS server whose certificate is not trusted, or that does not trust ours.
	KindTLS Kind = "TLS"
	// KindProxy is a proxy that does not let us through.
	KindProxy Kind = "Proxy"
	// KindRedirect is a server that sends us where we do not follow.
	KindRedirect Kind = "Redirect"
	// KindNotFound is a repository that the server does not have, or does not show to us.
	KindNotFound Kind = "NotFound"
	// KindRefNotFound is a branch, tag or other ref that the repository does not have.
	KindRefNotFound Kind = "RefNotFound"
	// KindCommitNotFound is a commit that the server does not hand out.
	KindCommitNotFound Kind = "CommitNotFound"
	// KindMoved is a branch that is not where it was said to be. Nothing was changed.
	KindMoved Kind = "Moved"
	// KindDiverged is a branch that would lose commits if it moved. Nothing was changed; see DivergedError.
	KindDiverged Kind = "Diverged"
	// KindRefused is a server that lets us push, but does not make this change: a protected branch, a hook that declined.
	KindRefused Kind = "Refused"
	// KindUnavailable is a server that is away or asks us to come later: no connection, HTTP 429 and 5xx.
	KindUnavailable Kind = "Unavailable"
	// KindTimeout is a server that did not finish within the deadline.
	KindTimeout Kind = "Timeout"
	// KindProtocol is a server that does not speak Git as it should.
	KindProtocol Kind = "Protocol"
	// KindLimit is a repository, tree or file that is larger than Limits allow.
	KindLimit Kind = "Limit"
	// KindVerification is a commit or a tag that nobody has signed who is trusted; signature.ReasonOf tells why.
	KindVerification Kind = "Verification"
	// KindContent is something in the tree that is not read: a submodule, an LFS pointer, a link that leads nowhere.
	KindContent Kind = "Content"
	// KindStore is trouble with our own disk.
	KindStore Kind = "Store"
)

// Error is what this package returns for everything that goes wrong with a remote or with what is in it. It never
// holds a secret.
type Error struct {
	Kind Kind
	// Op says what was done: resolve, fetch, verify, read, relate, advance, set branch.
	Op string
	// URL of the remote without credentials; empty where there is none.
	URL string
	// Err is the cause.
	Err error
	// Hint is the next step for whoever can mend it; may be empty. Error does not print it.
	Hint string
	// RetryAfter is how long the server asks us to wait; mostly zero.
	RetryAfter time.Duration
}

// Error writes "op url: cause", in the same words whenever the same goes wrong.
func (e *Error) Error() string {
	cause := Steady(e.Err.Error())
	what := strings.TrimSpace(e.Op + " " + e.URL)
	if what == "" {
		return cause
	}
	return what + ": " + cause
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout tells whether the deadline was the cause, as in net.Error.
func (e *Error) Timeout() bool { return e.Kind == KindTimeout }

// KindOf finds the Kind of an error of this package, however it is wrapped; empty for others.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// HintOf finds the mending hint of an error of this package, however it is wrapped.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

// ErrRefNotFound is what errors.Is finds in the error for a ref that does not exist; see RefNotFoundError.
var ErrRefNotFound = errors.New("ref not found")

// RefNotFoundError says which ref is missing and what there is instead. It comes wrapped in an Error.
type RefNotFoundError struct {
	Ref Ref
	// Exist are some refs of the same sort that do exist, the most similar first; for a range the highest versions.
	Exist []string
	// Total is how many of that sort exist.
	Total int
}

// Error names the missing ref and a few that exist.
func (e *RefNotFoundError) Error() string {
	what := e.Ref.String() + " does not exist"
	if e.Ref.SemVer != "" {
		what = fmt.Sprintf("no tag is in the range %q", e.Ref.SemVer)
		if e.Total == 0 {
			return what + "; the repository has no tag that is a version"
		}
		return fmt.Sprintf("%s; the highest versions that there are: %s", what, strings.Join(e.Exist, ", "))
	}
	if e.Total == 0 {
		return what + "; the repository has no " + e.Ref.plural()
	}
	return fmt.Sprintf("%s; %s %s: %s", what, existing(e.Total, len(e.Exist)), e.Ref.plural(), strings.Join(e.Exist, ", "))
}

// Is makes errors.Is(err, ErrRefNotFound) true.
func (e *RefNotFoundError) Is(target error) bool { return target == ErrRefNotFound }

func existing(total, shown int) string {
	if total == shown {
		return "it has the"
	}
	return fmt.Sprintf("the most similar of its %d", total)
}

// fail makes an Error without operation and URL; within gives it those.
func fail(kind Kind, err error, hint string) *Error {
	return &Error{Kind: kind, Err: err, Hint: hint}
}

func failf(kind Kind, hint, format string, args ...any) *Error {
	return fail(kind, fmt.Errorf(format, args...), hint)
}

// within completes an error with what was being done. A context that ended explains whatever broke because of it.
func within(ctx context.Context, op, url string, timeout time.Duration, err error) error {
	if cause := ctx.Err(); err != nil && cause != nil && KindOf(err) != KindTimeout {
		err = ended(cause, timeout)
	}
	return locate(op, url, err)
}

// locate completes an error with what was being done.
func locate(op, url string, err error) error {
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return &Error{Kind: KindUnavailable, Op: op, URL: url, Err: err}
	}
	full := *e // flights share errors, so the original stays as it is
	full.Op, full.URL = cmp.Or(e.Op, op), cmp.Or(e.URL, url)
	return &full
}

// ended makes the error for a context that is over.
func ended(cause error, timeout time.Duration) *Error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return failf(KindTimeout, "the server may be overloaded or out of reach from here; raise --"+FlagTimeout+" if the repository is large",
			"no complete answer within %s: %w", timeout, cause)
	}
	return fail(KindUnavailable, cause, "")
}

// clean makes a text of the server fit for a message: one line, printable, short, and, where it is an error of the server's own connections, steady.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	text = Steady(strings.Join(strings.Fields(text), " ")) // before it is cut, or the cut would move
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return text
}
