package repos

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/proxy"
)

// Proxy stands between us and a server: it passes bytes on and sees none of the secrets, since TLS and SSH go through it
// end to end. The zero value is what HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the process say, for HTTP alone. However
// it is printed, it shows no password.
type Proxy struct {
	sealed *sealedProxy
}

type sealedProxy struct {
	open func() *url.URL
}

// ProxyFromSecret reads the data of a Kubernetes Secret, with the keys of Flux: address, which is http://, https:// or
// socks5:// with host and port, and username and password where the proxy asks for them. Names are looked up by the
// proxy.
func ProxyFromSecret(data map[string][]byte) (Proxy, error) {
	const keyAddress = "address"
	const form = "write it as http://host:port, https://host:port or socks5://host:port"
	address, user, password := line(data[keyAddress]), line(data[keyUsername]), line(data[keyPassword])
	if address == "" {
		return Proxy{}, failf(KindCredentials, "add the proxy's address; "+form, "key %s is missing", keyAddress)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return Proxy{}, failf(KindCredentials, form, "key %s is not the address of a proxy", keyAddress)
	case u.User != nil:
		return Proxy{}, failf(KindCredentials, "write them under the keys username and password", "key %s holds credentials", keyAddress)
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5":
		return Proxy{}, failf(KindCredentials, form, "key %s has the unknown scheme %q", keyAddress, clean(u.Scheme))
	case user == "" && password != "":
		return Proxy{}, failf(KindCredentials, "add the user's name", "key %s is missing", keyUsername)
	case strings.ContainsAny(user+password, "\r\n\x00") || strings.Contains(user, ":"):
		return Proxy{}, failf(KindCredentials, "write each on one line, the name without a colon", "keys %s or %s hold what cannot be sent", keyUsername, keyPassword)
	case u.Scheme == "socks5" && (len(user) > 255 || len(password) > 255 || (user != "" && password == "")):
		return Proxy{}, failf(KindCredentials, "SOCKS5 takes 1 to 255 bytes of each", "keys %s or %s are too long or empty", keyUsername, keyPassword)
	}
	u.Path = ""
	if user != "" {
		u.User = url.UserPassword(user, password)
	}
	return Proxy{&sealedProxy{open: func() *url.URL { return u }}}, nil
}

func (p Proxy) url() *url.URL {
	if p.sealed == nil {
		return nil
	}
	return p.sealed.open()
}

// key tells proxies apart.
func (p Proxy) key() string {
	if u := p.url(); u != nil {
		return u.String()
	}
	return ""
}

// String is the address without name and password.
func (p Proxy) String() string {
	if u := p.url(); u != nil {
		return u.Scheme + "://" + u.Host
	}
	return "environment"
}

// GoString is String, so that %#v shows no secret either.
func (p Proxy) GoString() string { return "repos.Proxy{" + p.String() + "}" }

// LogValue is String, for log/slog.
func (p Proxy) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Lead makes a transport go through the proxy. ProxyError tells what went wrong on that way.
func (p Proxy) Lead(t *http.Transport) {
	t.Proxy, t.OnProxyConnectResponse = p.forRequest, proxyAnswer
}

// forRequest is what http.Transport asks.
func (p Proxy) forRequest(r *http.Request) (*url.URL, error) {
	if u := p.url(); u != nil {
		return u, nil
	}
	return http.ProxyFromEnvironment(r)
}

// dial connects to an address for SSH. An error without a Kind is one of a connection without a proxy.
func (p Proxy) dial(ctx context.Context, addr string) (net.Conn, error) {
	direct := &net.Dialer{KeepAlive: 15 * time.Second}
	u := p.url()
	if u == nil {
		return direct.DialContext(ctx, "tcp", addr)
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443", "socks5": "1080"}[u.Scheme])
	at := net.JoinHostPort(u.Hostname(), port)
	if u.Scheme != "socks5" {
		return connect(ctx, direct, u, at, addr)
	}
	var auth *proxy.Auth
	if u.User != nil {
		password, _ := u.User.Password()
		auth = &proxy.Auth{User: u.User.Username(), Password: password}
	}
	dialer, err := proxy.SOCKS5("tcp", at, auth, direct)
	if err != nil {
		return nil, proxyTrouble(err)
	}
	conn, err := dialer.(proxy.ContextDialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, proxyTrouble(err)
	}
	return conn, nil
}

// connect asks an HTTP proxy for a tunnel, RFC 9110, section 9.3.6.
func connect(ctx context.Context, direct *net.Dialer, u *url.URL, at, addr string) (_ net.Conn, err error) {
	var conn net.Conn
	if u.Scheme == "https" {
		conn, err = (&tls.Dialer{NetDialer: direct, Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", at)
	} else {
		conn, err = direct.DialContext(ctx, "tcp", at)
	}
	if err != nil {
		return nil, proxyTrouble(err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		stop()
		if err != nil {
			_ = conn.Close()
		}
	}()
	request := "CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\nUser-Agent: mooring\r\n"
	if u.User != nil {
		password, _ := u.User.Password()
		request += "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)) + "\r\n"
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		return nil, proxyTrouble(err)
	}
	const maxHead = 64 << 10
	limited := &io.LimitedReader{R: conn, N: maxHead}
	buffered := bufio.NewReader(limited)
	res, err := http.ReadResponse(buffered, &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, proxyTrouble(fmt.Errorf("it does not answer as an HTTP proxy: %w", err))
	}
	if res.StatusCode/100 != 2 {
		_ = res.Body.Close()
		return nil, proxyStatus(res.Status)
	}
	limited.N = math.MaxInt64
	return &tunnel{Conn: conn, in: buffered}, nil // an SSH server speaks first, so its words may be in the buffer
}

// tunnel is a connection of which something may have been read already.
type tunnel struct {
	net.Conn
	in io.Reader
}

// Read gives what was read ahead first.
func (t *tunnel) Read(b []byte) (int, error) { return t.in.Read(b) }

// proxyAnswer sees what an HTTP proxy answers to http.Transport.
func proxyAnswer(_ context.Context, _ *url.URL, _ *http.Request, res *http.Response) error {
	if res.StatusCode == http.StatusOK {
		return nil
	}
	return proxyStatus(res.Status)
}

func proxyStatus(status string) *Error {
	if strings.HasPrefix(status, "407") {
		return failf(KindProxy, "give the proxy's username and password in the Secret of spec.source.proxySecretRef, or in HTTPS_PROXY of the agent",
			"the proxy does not accept the credentials: it answers %s", clean(status))
	}
	return failf(KindProxy, "check that the proxy, which the Secret of spec.source.proxySecretRef or HTTPS_PROXY of the agent names, lets this machine reach the host and port behind it", "the proxy answers %s", clean(status))
}

// explain adds to what broke on the way to a server that a proxy stands there, which may be no proxy at all.
func (p Proxy) explain(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != KindUnavailable || p.sealed == nil {
		return err
	}
	return fail(KindUnavailable, fmt.Errorf("through the proxy %s: %w", p, e.Err), "check address in the Secret of spec.source.proxySecretRef: that it is a proxy of this sort; "+e.Hint)
}

// ProxyError is what an error of a transport that was led through a proxy says of that: it is away, or says no. It is nil for all other errors.
func ProxyError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok && e.Kind == KindProxy { // see proxyAnswer
		return e
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks")) {
		return proxyTrouble(err)
	}
	return nil
}

// proxyTrouble is a proxy that is away, or a SOCKS proxy that says no.
func proxyTrouble(err error) *Error {
	text := err.Error()
	if strings.Contains(text, "authentication") { // the library has no type for it
		return failf(KindProxy, "give the proxy's username and password in the Secret of spec.source.proxySecretRef, or in HTTPS_PROXY of the agent",
			"the proxy does not accept the credentials: %w", err)
	}
	return failf(KindProxy, "check address in the Secret of spec.source.proxySecretRef, or HTTPS_PROXY of the agent, and that the proxy may reach the host and port behind it",
		"no way through the proxy: %w", err)
}
