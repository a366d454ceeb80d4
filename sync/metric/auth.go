package metric

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Auth is what a Prometheus wants to see; zero for none.
type Auth struct {
	Username, Password string
	// BearerToken is sent in place of a name and a password.
	BearerToken string
	// CA holds certificates of a private authority in PEM.
	CA []byte
}

// AuthOf reads the data of a Secret: username and password, or bearerToken; ca.crt.
func AuthOf(data map[string][]byte) (Auth, error) {
	a := Auth{
		Username: string(data["username"]), Password: string(data["password"]),
		BearerToken: strings.TrimSpace(string(data["bearerToken"])), CA: data["ca.crt"],
	}
	fail := func(hint, why string) (Auth, error) {
		return Auth{}, &Error{Kind: KindCredentials, Hint: hint, Err: fmt.Errorf("%s", why)}
	}
	switch {
	case !a.set() && len(a.CA) == 0:
		return fail("its keys are username and password, or bearerToken; ca.crt", "the Secret has none of the keys that are read")
	case a.BearerToken != "" && a.Password != "":
		return fail("take one of them out", "the Secret holds both a bearerToken and a password")
	case a.BearerToken == "" && (a.Username == "") != (a.Password == ""):
		return fail("", "the Secret holds only one of username and password")
	case strings.ContainsAny(a.BearerToken, "\r\n"):
		return fail("", "the Secret's bearerToken has several lines")
	case len(a.CA) > 0 && !x509.NewCertPool().AppendCertsFromPEM(a.CA):
		return fail("", "the Secret's ca.crt holds no certificate in PEM")
	}
	return a, nil
}

// set says whether there is something to keep secret.
func (a Auth) set() bool { return a.Username != "" || a.Password != "" || a.BearerToken != "" }

// line to one Prometheus: adds the credentials, reads no more than it should, and notes the status.
type line struct {
	auth      Auth
	transport *http.Transport
	// status of the last answer; 0 before there is one.
	status int
}

// line is refused where credentials would be seen by others.
func (q Query) line() (*line, error) {
	u, err := url.Parse(q.Address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, &Error{Kind: KindAddress, Name: q.Name, Err: fmt.Errorf("the address is not http://host:port or https://host:port")}
	case u.User != nil:
		return nil, &Error{Kind: KindAddress, Name: q.Name, Err: fmt.Errorf("the address has credentials in it"), Hint: "put them into a Secret and name it in secretRef"}
	case u.Scheme != "https" && q.Auth.set():
		return nil, q.fail(KindCredentials, "use an https address, or take secretRef out", "credentials are never sent over http")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(q.Auth.CA) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(q.Auth.CA) {
			return nil, q.fail(KindCredentials, "", "ca.crt holds no certificate in PEM")
		}
	}
	return &line{auth: q.Auth, transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10,
	}}, nil
}

func (l *line) client() *http.Client {
	return &http.Client{Transport: l, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// RoundTrip sends one request.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context()) // a RoundTripper must not change what it is given
	switch {
	case l.auth.BearerToken != "":
		req.Header.Set("Authorization", "Bearer "+l.auth.BearerToken)
	case l.auth.set():
		req.SetBasicAuth(l.auth.Username, l.auth.Password)
	}
	res, err := l.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	l.status = res.StatusCode
	res.Body = &limited{ReadCloser: res.Body, left: maxAnswer + 1}
	return res, nil
}

// limited is an error, not an end, for a body that is too large: half an answer may well be JSON.
type limited struct {
	io.ReadCloser
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooLarge
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
