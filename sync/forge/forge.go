package forge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/repos"
)

// Provider is the API that a forge speaks. The values are those of spec.promotion.pullRequest.provider.
type Provider string

// The providers.
const (
	GitHub Provider = "GitHub"
	GitLab Provider = "GitLab"
	// Gitea is Forgejo's API as well.
	Gitea Provider = "Gitea"
)

// Place is where a repository's pull requests are.
type Place struct {
	Provider Provider
	// URL of the forge's API, or of the forge: the path that its API has below that is added where it is missing.
	URL string
	// Repository is owner/name, on GitLab with all groups between.
	Repository string
}

// Options of a Forge.
type Options struct {
	// Place as Locate gives it, with nothing left open.
	Place Place
	// Token of the account whose pull requests these will be.
	Token string
	// RootCAs that the forge's certificate is held against; nil for those of the system.
	RootCAs *x509.CertPool
	// Proxy on the way.
	Proxy repos.Proxy
	// Timeout of one Propose; 30 seconds when it is zero.
	Timeout time.Duration
}

// State of a pull request.
type State string

// The states.
const (
	// Open waits for a person.
	Open State = "Open"
	// Merged is in the base branch, in whatever way the person chose: the commit itself, rebased or squashed.
	Merged State = "Merged"
	// Closed was turned down.
	Closed State = "Closed"
)

// Forge keeps pull requests in one repository. It is safe for use by several goroutines.
type Forge struct {
	place     Place
	token     string
	timeout   time.Duration
	transport *http.Transport
}

// api is what Propose needs of a forge. Every implementation is one forge's official client.
type api interface {
	// find gives the pull requests of the head branch to the base branch, in whatever state, the newest first. Those of forks are left out.
	find(ctx context.Context, head, base string) ([]request, error)
	// open makes one.
	open(ctx context.Context, head, base string, t text) (request, error)
	// edit writes what is not empty in t, and nothing else.
	edit(ctx context.Context, number int64, t text) (request, error)
}

// text of a pull request.
type text struct{ title, body string }

// request is a pull request as the forge tells of it.
type request struct {
	number int64
	page   string
	state  State
	// head is the id that the forge gives for the head branch. Of one that is not open it may be that of a branch that has moved on.
	head string
	// final is that id as it was when it was merged or closed, where the forge keeps it.
	final string
	// merge is the commit on the base branch that holds it, once it is merged.
	merge string
	text
}

// New makes a Forge. It asks the forge nothing.
func New(o Options) (*Forge, error) {
	place, err := o.Place.complete()
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(o.Token) == "" {
		return nil, failf(KindOptions, rights(place.Provider), "there is no token for %s", place.Provider)
	}
	f := &Forge{place: place, token: strings.TrimSpace(o.Token), timeout: o.Timeout}
	if f.timeout <= 0 {
		f.timeout = 30 * time.Second
	}
	f.transport = &http.Transport{
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: f.timeout,
		IdleConnTimeout:       30 * time.Second,
		ForceAttemptHTTP2:     true,
	}
	o.Proxy.Lead(f.transport)
	return f, nil
}

// complete holds a Place against what New needs, and brings its URL into one form: https, and the API's path.
func (p Place) complete() (Place, error) {
	u, err := url.Parse(p.URL)
	switch {
	case err != nil || u.Host == "":
		return p, failf(KindOptions, "write spec.promotion.pullRequest.url as https://host or https://host/path", "the address of the forge's API is no URL")
	case u.Scheme != "https":
		return p, failf(KindOptions, "set spec.promotion.pullRequest.url to an https:// address", "%s would get the token over %s://, where everybody on the way can read it", u.Host, u.Scheme)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return p, failf(KindOptions, "put the token into the Secret of spec.promotion.secretRef under the key token", "the address of the forge's API holds credentials, a query or a fragment")
	}
	base := strings.TrimSuffix(u.Path, "/")
	switch p.Provider {
	case GitHub:
		switch host := strings.ToLower(u.Hostname()); {
		case host == "github.com":
			u.Host, base = "api.github.com", ""
		case host == "api.github.com" || strings.HasSuffix(host, ".ghe.com"):
			if !strings.HasPrefix(host, "api.") {
				u.Host = "api." + u.Host
			}
		default:
			base = strings.TrimSuffix(base, "/api/v3") + "/api/v3"
		}
	case GitLab:
		base = strings.TrimSuffix(base, "/api/v4") + "/api/v4"
	case Gitea: // its client adds the rest
		base = strings.TrimSuffix(base, "/api/v1")
	default:
		return p, failf(KindOptions, providerHint, "%q is no provider", p.Provider)
	}
	u.Path, u.RawPath = base+"/", ""
	p.URL = u.String()
	return p, p.checkRepository()
}

// client of the forge for one Propose, over w.
func (f *Forge) client(ctx context.Context, w *wire) (api, error) {
	over := &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	switch f.place.Provider {
	case GitHub:
		return newGitHub(f.place, f.token, over)
	case GitLab:
		return newGitLab(f.place, f.token, over)
	default:
		return newGitea(ctx, f.place, f.token, over)
	}
}
