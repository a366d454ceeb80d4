package repos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

func proxyOf(t testing.TB, data map[string]string) repos.Proxy {
	t.Helper()
	p, err := repos.ProxyFromSecret(secret(data))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// passwords of the two who are asked for one: the proxy and, behind it, the server.
const (
	behindProxy = "s3cret-of-the-server"
	ofProxy     = "s3cret-of-the-proxy"
)

// proxied is a server of some sort that is reached through a proxy.
type proxied struct {
	name   string
	server *gitserver.Server
	auth   repos.Auth
	hidden string // what the proxy must not see
}

func proxiedServers(t *testing.T) []proxied {
	t.Helper()
	tls := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, BearerToken: behindProxy, AllowPush: true})
	plain := gitserver.HTTP(t, gitserver.HTTPOptions{AllowPush: true})
	ssh := gitserver.SSH(t, gitserver.SSHOptions{})
	return []proxied{
		{"https", tls, auth(t, map[string]string{"ca.crt": string(tls.CA()), "bearerToken": behindProxy}), behindProxy},
		{"http", plain, repos.Auth{}, ""},
		{"ssh", ssh, sshAuth(t, ssh), "git-upload-pack"},
	}
}

// Through a proxy of either sort, with a password and without one, everything is as it is without; and the proxy sees
// nothing of what goes to the server over TLS or SSH.
func TestProxy(t *testing.T) {
	t.Parallel()
	for _, s := range proxiedServers(t) {
		for i, opts := range []gitserver.ProxyOptions{
			{},
			{Username: "ship", Password: ofProxy},
			{SOCKS: true},
			{SOCKS: true, Username: "ship", Password: ofProxy},
		} {
			t.Run(fmt.Sprintf("%s SOCKS %v password %v", s.name, opts.SOCKS, opts.Password != ""), func(t *testing.T) {
				t.Parallel()
				repo := s.server.Repo(t, fmt.Sprintf("shop%d.git", i), map[string]string{"f": "x"})
				p := gitserver.Proxy(t, opts)
				data := map[string]string{"address": p.Address()}
				if opts.Username != "" {
					data["username"], data["password"] = opts.Username, opts.Password+"\n"
				}
				remote := repos.Remote{URL: repo.URL, Auth: s.auth, Proxy: proxyOf(t, data)}
				store, _ := open(t, repos.Options{})
				snap := pull(t, store, remote, main)
				if got := read(t, snap.FS(), "f"); got != "x" {
					t.Errorf("f is %q", got)
				}
				if err := store.SetBranch(t.Context(), remote, "env/prod", "", snap.Revision.Commit); err != nil {
					t.Errorf("push: %v", err)
				}
				targets := p.Targets()
				if len(targets) == 0 {
					t.Fatal("nothing went through the proxy")
				}
				for _, to := range targets {
					if to != s.server.Addr() {
						t.Errorf("a tunnel to %s, want %s", to, s.server.Addr())
					}
				}
				if s.hidden != "" && p.Saw(s.hidden) {
					t.Errorf("the proxy saw %q", s.hidden)
				}
			})
		}
	}
}

// What a proxy does not do, with a hint that names what is wrong: the proxy, not the server.
func TestProxyRefusals(t *testing.T) {
	t.Parallel()
	for _, s := range proxiedServers(t) {
		repo := s.server.Repo(t, "shop.git", map[string]string{"f": "x"})
		for _, socks := range []bool{false, true} {
			asks := gitserver.Proxy(t, gitserver.ProxyOptions{SOCKS: socks, Username: "ship", Password: ofProxy})
			refuses := gitserver.Proxy(t, gitserver.ProxyOptions{SOCKS: socks, Refuse: true})
			scheme, _, _ := strings.Cut(asks.Address(), "://")
			for _, c := range []struct {
				name string
				data map[string]string
				says string
			}{
				{"no password", map[string]string{"address": asks.Address()}, "username and password in the Secret of spec.source.proxySecretRef"},
				{"wrong password", map[string]string{"address": asks.Address(), "username": "ship", "password": "wrong"}, "does not accept the credentials"},
				{"refused", map[string]string{"address": refuses.Address()}, "the proxy"},
				{"away", map[string]string{"address": scheme + "://" + nobody}, "check address in the Secret of spec.source.proxySecretRef"},
				{"a name that nobody has", map[string]string{"address": scheme + "://no-such-host.invalid:3128"}, "check address"},
				{"no proxy", map[string]string{"address": scheme + "://" + s.server.Addr()}, ""},
			} {
				t.Run(fmt.Sprintf("%s SOCKS %v %s", s.name, socks, c.name), func(t *testing.T) {
					t.Parallel()
					store, _ := open(t, repos.Options{Timeout: 3 * time.Second})
					_, err := store.Resolve(t.Context(), repos.Remote{URL: repo.URL, Auth: s.auth, Proxy: proxyOf(t, c.data)}, main)
					kind := repos.KindProxy
					switch {
					case s.name == "http" && !socks && c.name == "no proxy":
						return // a server that is asked by its whole url answers as ever
					case s.name == "http" && !socks && c.name == "refused":
						kind = repos.KindAuth // over http a proxy's 403 looks like the server's
						c.says = "403"
					case c.name == "no proxy" && repos.KindOf(err) == repos.KindTimeout:
						kind = repos.KindTimeout // a server that waits for the end of what it takes for a request
					case c.name == "no proxy" && s.name == "https" && !socks:
						kind, c.says = repos.KindUnavailable, "through the proxy http://"
					}
					wantKind(t, err, kind, c.says)
					if text := err.Error() + repos.HintOf(err); strings.Contains(text, "s3cret") || repos.HintOf(err) == "" {
						t.Errorf("%q shows a secret or has no hint", text)
					}
				})
			}
		}
	}
}

// Who answers at the end of a tunnel is checked as without one.
func TestProxyChangesNoTrust(t *testing.T) {
	t.Parallel()
	for _, s := range proxiedServers(t) {
		repo := s.server.Repo(t, "shop.git", map[string]string{"f": "x"})
		for _, socks := range []bool{false, true} {
			p := proxyOf(t, map[string]string{"address": gitserver.Proxy(t, gitserver.ProxyOptions{SOCKS: socks}).Address()})
			store, _ := open(t, repos.Options{})
			switch s.name {
			case "https":
				_, err := store.Resolve(t.Context(), repos.Remote{URL: repo.URL, Auth: auth(t, map[string]string{"bearerToken": behindProxy}), Proxy: p}, main)
				wantKind(t, err, repos.KindTLS, "ca.crt")
			case "ssh":
				other := gitserver.SSH(t, gitserver.SSHOptions{})
				hosts := strings.ReplaceAll(string(other.KnownHosts()), knownhosts.Normalize(other.Addr()), knownhosts.Normalize(s.server.Addr()))
				a := auth(t, map[string]string{"identity": string(s.server.Identity()), "known_hosts": hosts})
				_, err := store.Resolve(t.Context(), repos.Remote{URL: repo.URL, Auth: a, Proxy: p}, main)
				wantKind(t, err, repos.KindHostKey, "not who it was")
			}
		}
	}
}

// A GitHub App's API is reached through the proxy too.
func TestProxyForAnApp(t *testing.T) {
	t.Parallel()
	w := startApp(t)
	repo := w.server.Repo(t, "shop.git", map[string]string{"f": "x"})
	p := gitserver.Proxy(t, gitserver.ProxyOptions{Username: "ship", Password: ofProxy})
	data := map[string]string{"address": p.Address(), "username": "ship", "password": ofProxy}
	store, _ := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL, Auth: auth(t, w.secret), Proxy: proxyOf(t, data)}
	pull(t, store, remote, main)
	if _, err := store.Token(t.Context(), remote); err != nil {
		t.Error(err)
	}
	if p.Saw("ghs_") || p.Saw("eyJ") || len(p.Targets()) == 0 {
		t.Errorf("the proxy saw a token, or nothing at all: %q", p.Targets())
	}
	data["password"] = "wrong"
	remote.Proxy = proxyOf(t, data)
	_, err := store.Resolve(t.Context(), remote, main)
	wantKind(t, err, repos.KindProxy, "proxySecretRef")
}

// A proxy that says nothing is cut off at the deadline.
func TestProxyStalls(t *testing.T) {
	t.Parallel()
	hole := gitserver.Blackhole(t)
	const timeout = 500 * time.Millisecond
	for _, s := range proxiedServers(t) {
		for _, scheme := range []string{"http", "https", "socks5"} {
			t.Run(s.name+" "+scheme, func(t *testing.T) {
				t.Parallel()
				store, _ := open(t, repos.Options{Timeout: timeout})
				remote := repos.Remote{URL: s.server.RepoURL("x.git"), Auth: s.auth, Proxy: proxyOf(t, map[string]string{"address": scheme + "://" + hole.Addr()})}
				within(t, 20*timeout, func() {
					_, err := store.Resolve(t.Context(), remote, main)
					wantKind(t, err, repos.KindTimeout)
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%v is not a DeadlineExceeded", err)
					}
				})
			})
		}
	}
}

func TestProxyFromSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data map[string]string
		says string
	}{
		{map[string]string{"address": "http://proxy.example.com:3128\n"}, ""},
		{map[string]string{"address": "https://proxy.example.com/"}, ""},
		{map[string]string{"address": "socks5://[2001:db8::1]:1080", "username": "u", "password": "rope"}, ""},
		{map[string]string{"address": "http://proxy", "username": "u"}, ""}, // some take a name alone
		{nil, "key address is missing"},
		{map[string]string{"Address": "http://proxy"}, "key address is missing"},
		{map[string]string{"address": "proxy.example.com:3128"}, "key address"},
		{map[string]string{"address": "http://u:rope@proxy"}, "key address holds credentials"},
		{map[string]string{"address": "ftp://proxy"}, "unknown scheme"},
		{map[string]string{"address": "http://proxy/path"}, "key address is not"},
		{map[string]string{"address": "http://proxy", "password": "rope"}, "key username is missing"},
		{map[string]string{"address": "http://proxy", "username": "a:b", "password": "rope"}, "cannot be sent"},
		{map[string]string{"address": "http://proxy", "username": "a", "password": "rope\nrope"}, "cannot be sent"},
		{map[string]string{"address": "socks5://proxy", "username": "a", "password": strings.Repeat("rope", 64)}, "too long"},
	} {
		p, err := repos.ProxyFromSecret(secret(c.data))
		if c.says != "" {
			wantKind(t, err, repos.KindCredentials, c.says)
			if text := err.Error() + repos.HintOf(err); strings.Contains(text, "rope") || repos.HintOf(err) == "" {
				t.Errorf("%q shows a value or has no hint", text)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.data, err)
			continue
		}
		shown, err := json.Marshal([]any{p})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%v %+v %#v %s %v %s", p, p, []repos.Proxy{p}, p, struct{ p repos.Proxy }{p}, shown)
		if strings.Contains(text, "rope") || strings.Contains(text, fmt.Sprintf("%x", "rope")) {
			t.Errorf("a secret is printed: %s", text)
		}
	}
}
