package repos_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

func TestHTTPAuth(t *testing.T) {
	t.Parallel()
	const password = "s3cret-password"
	plain := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true})
	basic := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, Username: "ship", Password: password})
	bearer := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, BearerToken: password})
	client := gitserver.HTTP(t, gitserver.HTTPOptions{ClientCert: true})
	cert, key, err := client.ClientCert()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		server *gitserver.Server
		secret map[string]string
		kind   repos.Kind
		says   string
	}{
		{"own authority", plain, map[string]string{"ca.crt": string(plain.CA())}, "", ""},
		{"unknown authority", plain, nil, repos.KindTLS, "ca.crt"},
		{"another authority", plain, map[string]string{"ca.crt": string(basic.CA())}, repos.KindTLS, "ca.crt"},
		{"password", basic, map[string]string{"ca.crt": string(basic.CA()), "username": "ship", "password": password}, "", ""},
		{"wrong password", basic, map[string]string{"ca.crt": string(basic.CA()), "username": "ship", "password": "another-password"}, repos.KindAuth, "401"},
		{"no password", basic, map[string]string{"ca.crt": string(basic.CA())}, repos.KindAuth, "401"},
		{"token", bearer, map[string]string{"ca.crt": string(bearer.CA()), "bearerToken": password}, "", ""},
		{"wrong token", bearer, map[string]string{"ca.crt": string(bearer.CA()), "bearerToken": "another-password"}, repos.KindAuth, "401"},
		{"client certificate", client, map[string]string{"ca.crt": string(client.CA()), "tls.crt": string(cert), "tls.key": string(key)}, "", ""},
		{"no client certificate", client, map[string]string{"ca.crt": string(client.CA())}, repos.KindTLS, "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo := c.server.Repo(t, strings.ReplaceAll(c.name, " ", "_")+".git", map[string]string{"f": "x"})
			remote := repos.Remote{URL: repo.URL}
			if c.secret != nil {
				remote.Auth = auth(t, c.secret)
			}
			store, _ := open(t, repos.Options{})
			snap, err := tryPull(t.Context(), store, remote, main)
			if c.kind == "" {
				if err != nil {
					t.Fatal(err)
				}
				read(t, snap.FS(), "f")
				return
			}
			wantKind(t, err, c.kind, c.says, repo.URL)
			if text := err.Error() + repos.HintOf(err); strings.Contains(text, "-password") || repos.HintOf(err) == "" {
				t.Errorf("%q shows a password or has no hint", text)
			}
		})
	}
}

func TestHTTPFaults(t *testing.T) {
	t.Parallel()
	const token = "s3cret-token"
	s := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, BearerToken: token})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	remote := repos.Remote{URL: repo.URL, Auth: auth(t, map[string]string{"ca.crt": string(s.CA()), "bearerToken": token})}
	store, _ := open(t, repos.Options{})
	for _, c := range []struct {
		fault gitserver.Fault
		kind  repos.Kind
		says  string
	}{
		{gitserver.Fault{Status: 401}, repos.KindAuth, "401"},
		{gitserver.Fault{Status: 403, Body: "no entry with " + token + "\nfor you"}, repos.KindAuth, "no entry with *** for you"},
		{gitserver.Fault{Status: 404}, repos.KindNotFound, "private repository"},
		{gitserver.Fault{Status: 429, RetryAfter: "17"}, repos.KindUnavailable, "429"},
		{gitserver.Fault{Status: 500}, repos.KindUnavailable, "500"},
		{gitserver.Fault{Status: 503, Body: "<html>away</html>"}, repos.KindUnavailable, "503"},
		{gitserver.Fault{Status: 418}, repos.KindProtocol, "418"},
		{gitserver.Fault{Status: 200, Body: "<html>log in</html>"}, repos.KindProtocol, "not as a Git server"},
		{gitserver.Fault{Cut: true, CutAfter: 150}, repos.KindUnavailable, "middle of"},
		{gitserver.Fault{RedirectTo: "https://git.example.com"}, repos.KindRedirect, "git.example.com"},
		{gitserver.Fault{RedirectTo: "http://" + s.Addr()}, repos.KindRedirect, "https to http"},
		{gitserver.Fault{RedirectTo: s.RepoURL("")}, repos.KindRedirect, "circle"},
	} {
		for _, on := range []string{"info/refs", "git-upload-pack"} {
			c.fault.On = on
			rev := repos.Revision{Ref: "main", Commit: repos.Commit(repo.Resolve("main"))}
			if err := s.Inject(c.fault); err != nil {
				t.Fatal(err)
			}
			var err error
			if on == "info/refs" {
				_, err = store.Resolve(t.Context(), remote, main)
				wantKind(t, err, c.kind, c.says)
			} else {
				_, err = store.Snapshot(t.Context(), remote, rev)
				if err == nil {
					t.Errorf("%+v: no error", c.fault)
					continue
				}
			}
			if text := err.Error() + repos.HintOf(err); strings.Contains(text, token) || strings.ContainsAny(text, "\n<") {
				t.Errorf("%q shows the token, a line end or a web page", text)
			}
			if e, ok := errors.AsType[*repos.Error](err); c.fault.RetryAfter != "" && (!ok || e.RetryAfter != 17*time.Second) {
				t.Errorf("%+v: %+v, want to come back after 17s", c.fault, e)
			}
		}
	}
	if err := s.Heal(); err != nil {
		t.Fatal(err)
	}
	pull(t, store, remote, main)
}

// Retry-After has two forms; what makes no sense, or would hold us for ever, does not count as it stands.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{})
	date := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"17", 17 * time.Second},
		{date(5 * time.Minute), 5 * time.Minute},
		{date(-time.Minute), 0},
		{date(48 * time.Hour), time.Hour},
		{"99999999", time.Hour},
		{"-5", 0},
		{"soon", 0},
	} {
		for _, status := range []int{429, 503} {
			if err := s.Inject(gitserver.Fault{Status: status, RetryAfter: c.value}); err != nil {
				t.Fatal(err)
			}
			_, err := store.Resolve(t.Context(), repos.Remote{URL: repo.URL}, main)
			e, ok := errors.AsType[*repos.Error](err)
			if !ok || e.Kind != repos.KindUnavailable || (e.RetryAfter-c.want).Abs() > 5*time.Second {
				t.Errorf("%d with Retry-After %q: %+v, want to come back after %s", status, c.value, e, c.want)
			}
		}
	}
}

// A redirect within the host is followed, for all that comes after it too.
func TestHTTPRedirectOnTheSameHost(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	s.Repo(t, "new/shop.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{})
	if err := s.Inject(gitserver.Fault{RedirectTo: "http://" + s.Addr() + "/new", Times: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Resolve(t.Context(), repos.Remote{URL: s.RepoURL("shop.git")}, main); err != nil {
		t.Error(err)
	}
	rev := repos.Revision{Commit: someID}
	if err := s.Inject(gitserver.Fault{RedirectTo: "http://" + s.Addr() + "/new", Times: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := store.Snapshot(t.Context(), repos.Remote{URL: s.RepoURL("shop.git")}, rev)
	wantKind(t, err, repos.KindNotFound, "404") // the second conversation is not redirected any more
	if got := s.Counts("new/shop.git").UploadPack; got != 1 {
		t.Errorf("%d requests for objects at the new place, want 1", got)
	}
}

// Credentials do not travel: neither to another host nor to another port.
func TestCredentialsStayWithTheHost(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 10)
	thief := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header }))
	defer thief.Close()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, Username: "ship", Password: "rope"})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL, Auth: auth(t, map[string]string{"ca.crt": string(s.CA()), "username": "ship", "password": "rope"})}
	if err := s.Inject(gitserver.Fault{RedirectTo: thief.URL}); err != nil {
		t.Fatal(err)
	}
	_, err := store.Resolve(t.Context(), remote, main)
	wantKind(t, err, repos.KindRedirect, thief.Listener.Addr().String())
	_, err = store.Snapshot(t.Context(), remote, repos.Revision{Commit: someID})
	wantKind(t, err, repos.KindRedirect)
	select {
	case h := <-seen:
		t.Errorf("the other host was asked, with headers %v", h)
	default:
	}
}

func TestHTTPServerAway(t *testing.T) {
	t.Parallel()
	store, _ := open(t, repos.Options{})
	_, err := store.Resolve(t.Context(), repos.Remote{URL: "http://" + nobody + "/shop.git"}, main)
	wantKind(t, err, repos.KindUnavailable, "refused")
	_, err = store.Resolve(t.Context(), repos.Remote{URL: "https://no-such-host.invalid/x.git"}, main)
	wantKind(t, err, repos.KindUnavailable, "no-such-host.invalid")

	plain := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := plain.Repo(t, "shop.git", map[string]string{"f": "x"})
	_, err = store.Resolve(t.Context(), repos.Remote{URL: strings.Replace(repo.URL, "http:", "https:", 1)}, main)
	wantKind(t, err, repos.KindTLS, "does not speak TLS")
	_, err = store.Resolve(t.Context(), repos.Remote{URL: plain.RepoURL("none.git")}, main)
	wantKind(t, err, repos.KindNotFound, "none.git")
}

// A server that stalls is cut off at the deadline, wherever it stalls: the options' or, if earlier, the context's.
func TestStalls(t *testing.T) {
	t.Parallel()
	ssh := gitserver.SSH(t, gitserver.SSHOptions{})
	hole := gitserver.Blackhole(t)
	files := map[string]string{"f": strings.Repeat("some content that fills a pack\n", 1000)}
	const timeout = 700 * time.Millisecond
	for _, c := range []struct {
		name  string
		setup func(t *testing.T) (repos.Remote, *gitserver.Server)
		fault gitserver.Fault
	}{
		{"http silent", func(*testing.T) (repos.Remote, *gitserver.Server) {
			return repos.Remote{URL: "http://" + hole.Addr() + "/x.git"}, nil
		}, gitserver.Fault{}},
		{"https silent", func(*testing.T) (repos.Remote, *gitserver.Server) {
			return repos.Remote{URL: "https://" + hole.Addr() + "/x.git"}, nil
		}, gitserver.Fault{}},
		{"ssh silent", func(t *testing.T) (repos.Remote, *gitserver.Server) {
			return repos.Remote{URL: "ssh://git@" + hole.Addr() + "/x.git", Auth: sshAuth(t, ssh)}, nil
		}, gitserver.Fault{}},
		{"http in the refs", func(t *testing.T) (repos.Remote, *gitserver.Server) {
			s := gitserver.HTTP(t, gitserver.HTTPOptions{})
			return repos.Remote{URL: s.Repo(t, "a.git", files).URL}, s
		}, gitserver.Fault{Stall: true, StallAfter: 40}},
		{"http in the pack", func(t *testing.T) (repos.Remote, *gitserver.Server) {
			s := gitserver.HTTP(t, gitserver.HTTPOptions{})
			return repos.Remote{URL: s.Repo(t, "b.git", files).URL}, s
		}, gitserver.Fault{Stall: true, StallAfter: 150, On: "git-upload-pack"}},
		{"ssh in the refs", func(t *testing.T) (repos.Remote, *gitserver.Server) {
			s := gitserver.SSH(t, gitserver.SSHOptions{})
			return repos.Remote{URL: s.Repo(t, "a.git", files).URL, Auth: sshAuth(t, s)}, s
		}, gitserver.Fault{Stall: true, StallAfter: 40}},
		{"ssh in the pack", func(t *testing.T) (repos.Remote, *gitserver.Server) {
			s := gitserver.SSH(t, gitserver.SSHOptions{})
			return repos.Remote{URL: s.Repo(t, "b.git", files).URL, Auth: sshAuth(t, s)}, s
		}, gitserver.Fault{Stall: true, StallAfter: 800}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			remote, server := c.setup(t)
			rev := repos.Revision{Commit: someID}
			if server != nil {
				healthy, _ := open(t, repos.Options{})
				rev = pull(t, healthy, remote, main).Revision
				if err := server.Inject(c.fault); err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := server.Heal(); err != nil {
						t.Error(err)
					}
				}()
			}
			store, dir := open(t, repos.Options{Timeout: timeout})
			within(t, 20*timeout, func() {
				_, err := store.Snapshot(t.Context(), remote, rev)
				wantKind(t, err, repos.KindTimeout, timeout.String())
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v is not a DeadlineExceeded", err)
				}
			})
			if left := partial(t, dir); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
			patient, _ := open(t, repos.Options{})
			within(t, 20*timeout, func() {
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				defer cancel()
				_, err := patient.Snapshot(ctx, remote, rev)
				wantKind(t, err, repos.KindTimeout)
			})
			within(t, 20*timeout, func() {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(timeout/4, cancel)
				_, err := patient.Snapshot(ctx, remote, rev)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want it to be canceled", err)
				}
			})
		})
	}
}
