package repos

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// httpTransport speaks Git's smart HTTP protocol, gitprotocol-http(5).
type httpTransport struct {
	base   string
	auth   Auth
	client *http.Client
	// timeout of shared work, such as asking for a token.
	timeout time.Duration
	by      Proxy
}

func newHTTPTransport(e endpoint, auth Auth, by Proxy, timeout time.Duration) *httpTransport {
	return &httpTransport{base: e.String(), auth: auth, by: by, timeout: timeout, client: newHTTPClient(auth, by)}
}

// newHTTPClient makes the client for a repository and for the API of its forge.
func newHTTPClient(auth Auth, by Proxy) *http.Client {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s := auth.secrets(); s != nil {
		config.RootCAs = s.roots
		if s.clientCert != nil {
			config.Certificates = []tls.Certificate{*s.clientCert}
		}
	}
	transport := &http.Transport{
		DialContext:         (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext,
		TLSClientConfig:     config,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     30 * time.Second,
	}
	by.Lead(transport)
	return &http.Client{CheckRedirect: checkRedirect, Transport: transport}
}

// checkRedirect follows only within the host, and never from https back to http, so that credentials stay where they
// belong and a server cannot point us at another one.
func checkRedirect(next *http.Request, via []*http.Request) error {
	from, to := via[0].URL, next.URL
	sameHost := from.Hostname() == to.Hostname() && (from.Port() == to.Port() || upgrade(from, to))
	switch {
	case !sameHost:
		return failf(KindRedirect, "if the repository has moved, put its new address into the url", "the server redirects to another host, %s", redact(to.String()))
	case from.Scheme != to.Scheme && !upgrade(from, to):
		return failf(KindRedirect, "", "the server redirects from %s to %s", from.Scheme, to.Scheme)
	case next.Method != http.MethodGet:
		return failf(KindRedirect, "put the new address into the url", "the server redirects the request to %s", redact(to.String()))
	case len(via) >= 5:
		return failf(KindRedirect, "", "the server redirects in a circle")
	}
	return nil
}

// upgrade is the one change of scheme that is followed: from http to https, both on their own ports.
func upgrade(from, to *url.URL) bool {
	return from.Scheme == "http" && to.Scheme == "https" && (from.Port() == "" || from.Port() == "80") &&
		(to.Port() == "" || to.Port() == "443")
}

func (t *httpTransport) open(_ context.Context, with service) (session, error) {
	return &httpSession{httpTransport: t, service: with, base: t.base}, nil
}

type httpSession struct {
	*httpTransport
	service service
	base    string // where redirects led
}

func (s *httpSession) refs(ctx context.Context) (*packp.AdvRefs, error) {
	const path = "/info/refs"
	res, err := s.send(ctx, http.MethodGet, s.base+path+"?service="+string(s.service), nil)
	if err != nil {
		return nil, err
	}
	defer closeBody(res.Body)
	if got := res.Header.Get("Content-Type"); got != s.contentType("advertisement") {
		return nil, failf(KindProtocol, notGitHint, "the server answers, but not as a Git server: its content type is %q", clean(got))
	}
	adv, err := decodeRefs(res.Body)
	if err != nil {
		return nil, garbled(err, s.auth.scrub)
	}
	final := *res.Request.URL
	final.RawQuery = ""
	base, ok := strings.CutSuffix(final.String(), path)
	if !ok {
		return nil, failf(KindRedirect, "put the new address into the url", "the server redirects to %s", redact(final.String()))
	}
	s.base = base
	return adv, nil
}

func (s *httpSession) ask(ctx context.Context, request []byte) (io.ReadCloser, error) {
	res, err := s.send(ctx, http.MethodPost, s.base+"/"+string(s.service), request)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

func (s *httpSession) lasting() bool { return true }

func (s *httpSession) close() {}

func (s *httpSession) contentType(of string) string {
	return "application/x-" + string(s.service) + "-" + of
}

// send makes one request and turns every answer but 200 into an error. A token of a GitHub App that is refused, since it
// was revoked or ran out on the way, is replaced once.
func (s *httpSession) send(ctx context.Context, method, url string, body []byte) (*http.Response, error) {
	for renewed := false; ; {
		req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
		if err != nil {
			return nil, failf(KindURL, urlHint, "the url does not parse")
		}
		req.Header.Set("User-Agent", "git/2 (mooring)") // some forges serve Git on their pages' urls to those that begin so
		if method == http.MethodPost {
			req.Header.Set("Content-Type", s.contentType("request"))
			req.Header.Set("Accept", s.contentType("result"))
		}
		token, fresh, err := s.authorize(ctx, req)
		if err != nil {
			return nil, err
		}
		res, err := s.client.Do(req)
		if err != nil {
			return nil, s.by.explain(sendError(err))
		}
		if res.StatusCode == http.StatusOK {
			return res, nil
		}
		if res.StatusCode == http.StatusUnauthorized && token != "" && !fresh && !renewed {
			closeBody(res.Body)
			s.auth.secrets().app.forget(token)
			renewed = true
			continue
		}
		defer closeBody(res.Body)
		return nil, s.statusError(res)
	}
}

// authorize puts the credentials into a request. It returns the token of a GitHub App, if that is what they are.
func (s *httpSession) authorize(ctx context.Context, req *http.Request) (token string, fresh bool, err error) {
	if sec := s.auth.secrets(); sec != nil && sec.app != nil {
		if token, fresh, err = sec.app.token(ctx, s.client, s.timeout); err == nil {
			req.SetBasicAuth(appUser, token)
		}
		return token, fresh, err
	}
	s.auth.apply(req)
	return "", false, nil
}

// sendError sorts what can happen before there is an answer.
func sendError(err error) error {
	if e, ok := errors.AsType[*Error](err); ok { // a refused redirect
		return e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, which the error carries already
	}
	if e := ProxyError(err); e != nil {
		return e
	}
	if isTLS(err) {
		return failf(KindTLS, "if the server has a private authority, put its certificate into the Secret as ca.crt", "%w", err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return failf(KindTLS, "use http:// if the server has no TLS", "the server does not speak TLS")
	}
	return failf(KindUnavailable, "check that the host is right and can be reached from here", "%w", err)
}

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	_, ok := errors.AsType[x509.UnknownAuthorityError](err)
	return ok || strings.Contains(err.Error(), "remote error: tls")
}

// statusError sorts the answers that are not 200.
func (s *httpSession) statusError(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 512)) // only to tell the user; half of it will do
	status := fmt.Errorf("the server answers %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	if said := s.auth.scrub(string(text)); said != "" && !strings.HasPrefix(said, "<") {
		status = fmt.Errorf("%w: %s", status, said)
	}
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized && s.auth.secrets() == nil:
		return fail(KindAuth, status, "name a Secret with username and password, or bearerToken")
	case code == http.StatusProxyAuthRequired: // over http the proxy answers in the server's place
		return proxyStatus(res.Status)
	case s.auth.secrets() != nil && s.auth.secrets().app != nil &&
		(code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusNotFound):
		kind := KindAuth
		if code == http.StatusNotFound {
			kind = KindNotFound
		}
		return fail(kind, status, "check the url, and that GitHub App "+s.auth.secrets().app.id+" is installed on this repository with the permission Contents")
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return fail(KindAuth, status, authHint)
	case code == http.StatusNotFound, code == http.StatusGone:
		return fail(KindNotFound, status, notFoundHint)
	case code == http.StatusTooManyRequests, code >= 500:
		e := fail(KindUnavailable, status, "the server is overloaded or asks for fewer requests; a longer interval helps")
		e.RetryAfter = retryAfter(res.Header.Get("Retry-After"))
		return e
	}
	return fail(KindProtocol, status, notGitHint)
}

// retryAfter reads the header's two forms, seconds and a date; at most an hour.
func retryAfter(value string) time.Duration {
	wait := time.Duration(0)
	if seconds, err := strconv.Atoi(value); err == nil {
		wait = time.Duration(min(seconds, 3600)) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = time.Until(at)
	}
	return max(0, min(wait, time.Hour))
}

// garbled gives an error of decoding a kind, unless it has one.
func garbled(err error, scrub func(string) string) error {
	if KindOf(err) != "" {
		return err
	}
	if e, ok := errors.AsType[*pktline.ErrorLine](err); ok {
		return refused(scrub(e.Text))
	}
	_, broken := errors.AsType[net.Error](err)
	if broken || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return failf(KindUnavailable, "", "the connection ended in the middle of the list of refs: %w", err)
	}
	return failf(KindProtocol, notGitHint, "the list of refs is garbled: %s", scrub(err.Error()))
}

// closeBody reads a little to the end, so that the connection can be used again, and closes.
func closeBody(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, io.LimitReader(body, 4<<10))
	_ = body.Close()
}
