package repos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxAPIAnswer bounds what GitHub's API may answer; an answer lists permissions and may list many repositories.
const maxAPIAnswer = 4 << 20

// missing marks an answer of 404.
type missing struct{ error }

// Unwrap gives the cause.
func (m missing) Unwrap() error { return m.error }

// call makes one request with a JWT, and a second one when the first was refused and the server's clock is far from ours: a
// JWT is good for minutes. It returns what the clock of the server said.
func (a *githubApp) call(ctx context.Context, client *http.Client, method, path string, into any) (served time.Time, err error) {
	const skew = 30 * time.Second
	clock := time.Now()
	for attempt := 0; ; attempt++ {
		token, err := a.jwt(clock)
		if err != nil {
			return served, err
		}
		res, err := a.send(ctx, client, method, path, token)
		if err != nil {
			return served, err
		}
		text, err := io.ReadAll(io.LimitReader(res.Body, maxAPIAnswer))
		closeBody(res.Body)
		served = time.Now()
		if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
			served = date
		}
		off := time.Since(served).Abs()
		switch {
		case res.StatusCode == http.StatusUnauthorized && attempt == 0 && off > skew:
			clock = served
		case res.StatusCode/100 != 2:
			return served, a.refusal(res, strings.ReplaceAll(string(text), token, "***"))
		case err != nil:
			return served, failf(KindUnavailable, "", "the connection ended in the middle of the answer: %w", err)
		default:
			if err := json.Unmarshal(text, into); err != nil { // its text may quote the answer
				return served, failf(KindProtocol, "check "+keyAppBase+" in the Secret", "%s does not answer as GitHub's API", a.api)
			}
			return served, nil
		}
	}
}

func (a *githubApp) send(ctx context.Context, client *http.Client, method, path, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.api+path, nil)
	if err != nil {
		return nil, failf(KindCredentials, "check "+keyAppBase+" in the Secret", "the address of the API does not parse")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	req.Header.Set("User-Agent", "mooring")
	res, err := client.Do(req)
	if err != nil {
		err := sendError(err)
		if e, ok := errors.AsType[*Error](err); ok {
			return nil, fail(e.Kind, fmt.Errorf("%s: %w", a.api, e.Err), e.Hint)
		}
		return nil, err
	}
	return res, nil
}

// refusal sorts the answers that bring nothing. GitHub says what it means in a field message.
func (a *githubApp) refusal(res *http.Response, text string) error {
	var said struct {
		Message string `json:"message"`
	}
	status := fmt.Errorf("%s answers %d %s", a.api, res.StatusCode, http.StatusText(res.StatusCode))
	if json.Unmarshal([]byte(text), &said) == nil && said.Message != "" {
		status = fmt.Errorf("%w: %s", status, clean(said.Message))
	}
	low := strings.ToLower(said.Message)
	wait, limited := rateLimit(res)
	switch code := res.StatusCode; {
	case limited || code >= 500:
		e := fail(KindUnavailable, status, "GitHub is away or asks for fewer requests; a longer interval helps")
		e.RetryAfter = wait
		return e
	case strings.Contains(low, "suspended"):
		return fail(KindAuth, status, "the installation "+a.where()+" is suspended: let its owner unsuspend it in the settings of the installed GitHub Apps")
	case code == http.StatusNotFound && strings.Contains(low, "integration"):
		return fail(KindAuth, status, "there is no App "+a.id+": check "+keyAppID+" and, for GitHub Enterprise, "+keyAppBase+" in the Secret")
	case code == http.StatusNotFound:
		return fail(KindAuth, missing{status}, "App "+a.id+" has no installation "+a.where()+": install it there, or mend "+keyAppInstallation+" or "+keyAppOwner+" in the Secret")
	case code == http.StatusUnauthorized:
		return fail(KindAuth, status, keyAppKey+" in the Secret is not, or no longer, a key of App "+a.id+": check "+keyAppID+", or generate a key in the App's settings"+clockHint(res))
	case code == http.StatusForbidden, code == http.StatusUnprocessableEntity:
		return fail(KindAuth, status, "check what App "+a.id+" may do, and that its installation "+a.where()+" is in force")
	}
	return fail(KindProtocol, status, "check "+keyAppBase+" in the Secret")
}

// clockHint names the other thing that a refused JWT may mean.
func clockHint(res *http.Response) string {
	date, err := http.ParseTime(res.Header.Get("Date"))
	if off := time.Since(date); err == nil && off.Abs() > time.Minute {
		return "; and set this machine's clock, which is far from the server's"
	}
	return ""
}

// rateLimit tells whether an answer means "later", and when: Retry-After, or the second at which the hour's budget is
// filled again.
func rateLimit(res *http.Response) (wait time.Duration, limited bool) {
	after := res.Header.Get("Retry-After")
	wait = retryAfter(after)
	spent := res.Header.Get("X-RateLimit-Remaining") == "0"
	if reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil && spent && after == "" {
		wait = max(0, min(time.Until(time.Unix(reset, 0)), time.Hour))
	}
	limited = res.StatusCode == http.StatusTooManyRequests || (res.StatusCode == http.StatusForbidden && (spent || after != ""))
	return wait, limited
}
