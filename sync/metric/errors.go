package metric

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
)

// Kind sorts errors by what mends them.
type Kind string

// The kinds of Error. Only Unreachable and TooSlow may go over by themselves; the others wait for another spec or Secret.
const (
	// KindUnreachable is a Prometheus that does not answer: no connection, a certificate that is not trusted, HTTP 5xx.
	KindUnreachable Kind = "Unreachable"
	// KindTooSlow is one that did not answer in time.
	KindTooSlow Kind = "TooSlow"
	// KindDenied is one that does not accept the credentials, or wants some: HTTP 401 and 403.
	KindDenied Kind = "Denied"
	// KindQuery is an expression that Prometheus does not understand or cannot answer, with its own words; or bounds that cannot be right.
	KindQuery Kind = "Query"
	// KindCredentials is a Secret that is incomplete, or credentials that would go over http.
	KindCredentials Kind = "Credentials"
	// KindAddress is an address at which there is no Prometheus, or that leads elsewhere.
	KindAddress Kind = "Address"
	// KindTooLarge is an answer of more than a mebibyte.
	KindTooLarge Kind = "TooLarge"
)

// Error is a question that has no answer. It never holds a credential.
type Error struct {
	Kind Kind
	// Name of the query.
	Name string
	// Host that was asked; empty where it did not come to that.
	Host string
	// Err is the cause.
	Err error
	// Hint is the next step for whoever can mend it; may be empty. Error does not print it.
	Hint string
}

// Error writes "ask host for name: cause".
func (e *Error) Error() string {
	what := "ask"
	if e.Host != "" {
		what += " " + e.Host
	}
	if e.Name != "" {
		what += " for " + e.Name
	}
	return what + ": " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf finds the Kind of an error of this package, however it is wrapped; empty for others.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return ""
}

// HintOf finds the hint of an error of this package, however it is wrapped.
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	return ""
}

func (q Query) fail(kind Kind, hint, format string, args ...any) *Error {
	e := &Error{Kind: kind, Name: q.Name, Hint: hint, Err: fmt.Errorf(format, args...)}
	if u, err := url.Parse(q.Address); err == nil {
		e.Host = u.Host
	}
	return e
}

// errTooLarge ends the reading of an answer.
var errTooLarge = fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20)

// explain what the client could not do. status is that of the last answer, 0 where there was none.
func (q Query) explain(err error, status int, late bool) *Error {
	said, _ := errors.AsType[*prometheus.Error](err)
	if said != nil {
		said = unpack(said)
	}
	answers := fmt.Sprintf("it answers %d %s", status, http.StatusText(status))
	switch {
	case late, said != nil && (said.Type == prometheus.ErrTimeout || said.Type == prometheus.ErrCanceled):
		return q.fail(KindTooSlow, "ask for less: fewer series, a shorter time, or a recording rule", "there is no answer in time")
	case errors.Is(err, errTooLarge):
		return q.fail(KindTooLarge, "let the query give fewer series: sum or avg them", "%w", err)
	case said == nil && status == 0:
		return q.unreachable(err)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		hint := "it wants credentials: put them into a Secret and name it in secretRef"
		if q.Auth.set() {
			hint = "it does not take the credentials of the Secret: look at its keys and whether they may query"
		}
		return q.fail(KindDenied, hint, "%s", answers)
	case status >= 300 && status < 400:
		return q.fail(KindAddress, "name the address that it leads to; a redirect is not followed, lest another server gets the credentials", "%s", answers)
	case said != nil && (said.Type == prometheus.ErrBadData || said.Type == prometheus.ErrExec):
		return q.fail(KindQuery, "try the query in Prometheus' own page", "Prometheus says: %s", clip(said.Msg))
	case status >= 500:
		return q.fail(KindUnreachable, "", "%s", answers)
	case said == nil && status == http.StatusOK:
		return q.fail(KindUnreachable, "", "the answer broke off or is not that of Prometheus' API")
	}
	return q.fail(KindAddress, "address is that of Prometheus without /api/v1", "%s, not as Prometheus' API does", answers)
}

// unpack what Prometheus says with a status for which the client does not read it: 503 for a query that ran out of time.
func unpack(said *prometheus.Error) *prometheus.Error {
	var body struct {
		ErrorType prometheus.ErrorType `json:"errorType"`
		Error     string               `json:"error"`
	}
	if json.Unmarshal([]byte(said.Detail), &body) == nil && body.ErrorType != "" {
		return &prometheus.Error{Type: body.ErrorType, Msg: body.Error}
	}
	return said
}

func (q Query) unreachable(err error) *Error {
	if long, ok := errors.AsType[*url.Error](err); ok {
		err = long.Err // without the method and the address
	}
	hint := ""
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		hint = "if it has a private authority, put its certificate into the Secret as ca.crt"
	}
	return q.fail(KindUnreachable, hint, "%w", err)
}
