package repos_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// appWorld is a GitHub Enterprise server with one App, and the Secret for it.
type appWorld struct {
	app    *gitserver.GitHubApp
	server *gitserver.Server
	secret map[string]string
}

// appKey is the same for all Apps of the tests, since making one takes its time.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func startApp(t *testing.T) *appWorld {
	t.Helper()
	key, err := appKey()
	if err != nil {
		t.Fatal(err)
	}
	app := &gitserver.GitHubApp{ID: "12345", Installation: "777", Owner: "mesh-team", Key: &key.PublicKey}
	s := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, App: app, AllowPush: true})
	return &appWorld{app: app, server: s, secret: map[string]string{
		"ca.crt": string(s.CA()), "githubAppID": app.ID, "githubAppInstallationID": app.Installation,
		"githubAppPrivateKey": pkcs1(key), "githubAppBaseURL": "https://" + s.Addr() + "/api/v3/",
	}}
}

// with gives the Secret with other values; an empty one takes a key out.
func (w *appWorld) with(changes ...string) map[string]string {
	s := map[string]string{}
	for k, v := range w.secret {
		s[k] = v
	}
	for i := 0; i < len(changes); i += 2 {
		s[changes[i]] = changes[i+1]
		if changes[i+1] == "" {
			delete(s, changes[i])
		}
	}
	return s
}

func rsaKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pkcs1(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func pkcs8(t testing.TB, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// One token is bought for many that wait, for all repositories of the Secret, for reading, for pushing and for the API; and
// bought again before it runs out or when it was revoked, into the same folder.
func TestAppToken(t *testing.T) {
	t.Parallel()
	w := startApp(t)
	w.app.Set(func(a *gitserver.GitHubApp) { a.Delay = 100 * time.Millisecond })
	store, dir := open(t, repos.Options{})
	var all []repos.Remote
	for i := range 4 {
		repo := w.server.Repo(t, fmt.Sprintf("shop%d.git", i), map[string]string{"f": "x"})
		all = append(all, repos.Remote{URL: repo.URL, Auth: auth(t, w.secret)}) // read anew, as each pass does
	}
	minted := func(want int, when string) {
		t.Helper()
		if got, _ := w.app.Minted(); got != want {
			t.Errorf("%s: %d tokens were bought, want %d", when, got, want)
		}
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := tryPull(t.Context(), store, all[i%len(all)], main); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	minted(1, "20 pulls of 4 repositories")

	token, err := store.Token(t.Context(), all[0])
	if err != nil || len(w.app.Tokens()) != 1 || token != w.app.Tokens()[0] {
		t.Errorf("the token for the API is not the one that is good: %v", err)
	}
	at := pull(t, store, all[0], main).Revision.Commit
	if err := store.SetBranch(t.Context(), all[0], "env/prod", "", at); err != nil {
		t.Errorf("push: %v", err)
	}
	minted(1, "after a push")

	w.app.Revoke()
	pull(t, store, all[0], main)
	minted(2, "after it was revoked")
	w.app.Revoke()
	if err := store.SetBranch(t.Context(), all[0], "env/prod", at, ""); err != nil {
		t.Errorf("push with a revoked token: %v", err)
	}
	minted(3, "a push after it was revoked")

	w.app.Set(func(a *gitserver.GitHubApp) { a.Life = time.Second })
	w.app.Revoke()
	pull(t, store, all[1], main)
	minted(4, "one of a second")
	before := w.server.Counts("").InfoRefs
	await(t, func() bool { pull(t, store, all[1], main); got, _ := w.app.Minted(); return got > 4 })
	polls := w.server.Counts("").InfoRefs - before
	if got, _ := w.app.Minted(); got > 5 || polls < 1 {
		t.Errorf("%d tokens for %d polls in a second", got-4, polls)
	}
	folders, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(folders) != len(all) {
		t.Errorf("%d folders, %v; want one for each repository however many tokens there were", len(folders), err)
	}
}

// What the App's Secret may look like, and a server whose clock is another.
func TestAppSecrets(t *testing.T) {
	t.Parallel()
	w := startApp(t)
	repo := w.server.Repo(t, "shop.git", map[string]string{"f": "x"})
	key := rsaKey(t)
	w.app.Set(func(a *gitserver.GitHubApp) { a.Key = &key.PublicKey })
	for _, c := range []struct {
		name   string
		secret map[string]string
		set    func(*gitserver.GitHubApp)
	}{
		{"PKCS#1", w.with("githubAppPrivateKey", pkcs1(key)), nil},
		{"PKCS#8", w.with("githubAppPrivateKey", pkcs8(t, key)), nil},
		{"line ends", w.with("githubAppPrivateKey", strings.ReplaceAll(pkcs1(key), "\n", "\r\n"), "githubAppID", "12345\n"), nil},
		{"organisation", w.with("githubAppPrivateKey", pkcs1(key), "githubAppInstallationID", "", "githubAppInstallationOwner", "mesh-team"), nil},
		{"user", w.with("githubAppPrivateKey", pkcs1(key), "githubAppInstallationID", "", "githubAppInstallationOwner", "mesh-team"), func(a *gitserver.GitHubApp) { a.OwnerIsUser = true }},
		{"clock an hour ahead", w.with("githubAppPrivateKey", pkcs1(key)), func(a *gitserver.GitHubApp) { a.Skew = time.Hour }},
		{"clock an hour behind", w.with("githubAppPrivateKey", pkcs1(key)), func(a *gitserver.GitHubApp) { a.Skew = -time.Hour }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.set != nil {
				w.app.Set(c.set)
			}
			store, _ := open(t, repos.Options{})
			remote := repos.Remote{URL: repo.URL, Auth: auth(t, c.secret)}
			before, _ := w.app.Minted()
			pull(t, store, remote, main)
			pull(t, store, remote, main)
			if got, _ := w.app.Minted(); got != before+1 {
				t.Errorf("%d tokens were bought, want 1", got-before)
			}
			if got := remote.Auth.String(); got != "GitHub App, own authority" {
				t.Errorf("prints %q", got)
			}
		})
	}
}

// What GitHub refuses, with the hint that mends it.
func TestAppRefusals(t *testing.T) {
	t.Parallel()
	reset := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).Unix()) }
	for _, c := range []struct {
		name   string
		change []string
		set    func(*gitserver.GitHubApp)
		kind   repos.Kind
		says   []string
		wait   time.Duration
	}{
		{"another App's key", []string{"githubAppPrivateKey", pkcs1(rsaKey(t))}, nil, repos.KindAuth, []string{"401", "githubAppPrivateKey", "could not be decoded"}, 0},
		{"no such App", []string{"githubAppID", "99"}, nil, repos.KindAuth, []string{"Integration not found", "no App 99", "githubAppID"}, 0},
		{"not installed", []string{"githubAppInstallationID", "778"}, nil, repos.KindAuth, []string{"no installation 778", "githubAppInstallationID"}, 0},
		{"not installed there", []string{"githubAppInstallationID", "", "githubAppInstallationOwner", "others"}, nil, repos.KindAuth, []string{"no installation of others", "githubAppInstallationOwner"}, 0},
		{"suspended", nil, func(a *gitserver.GitHubApp) { a.Suspended = true }, repos.KindAuth, []string{"suspended", "unsuspend"}, 0},
		{"not allowed", nil, func(a *gitserver.GitHubApp) { a.Status, a.Message = 403, "Resource not accessible" }, repos.KindAuth, []string{"not accessible", "what App 12345 may do"}, 0},
		{"spent", nil, func(a *gitserver.GitHubApp) {
			a.Status, a.Header = 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset(10 * time.Minute)}
		}, repos.KindUnavailable, []string{"403"}, 10 * time.Minute},
		{"too fast", nil, func(a *gitserver.GitHubApp) { a.Status, a.Header = 403, map[string]string{"Retry-After": "60"} }, repos.KindUnavailable, []string{"403"}, time.Minute},
		{"too many", nil, func(a *gitserver.GitHubApp) { a.Status, a.Header = 429, map[string]string{"Retry-After": "30"} }, repos.KindUnavailable, []string{"429"}, 30 * time.Second},
		{"away", nil, func(a *gitserver.GitHubApp) { a.Status = 503 }, repos.KindUnavailable, []string{"503"}, 0},
		{"no API", []string{"githubAppBaseURL", ""}, nil, repos.KindCredentials, []string{"githubAppBaseURL is missing"}, 0},
		{"a teapot", nil, func(a *gitserver.GitHubApp) { a.Status = 418 }, repos.KindProtocol, []string{"418", "githubAppBaseURL"}, 0},
		{"no token", nil, func(a *gitserver.GitHubApp) { a.Status = 201 }, repos.KindProtocol, []string{"without a token"}, 0},
		{"a token that is over", nil, func(a *gitserver.GitHubApp) { a.Life = -time.Second }, repos.KindProtocol, []string{"without a token"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := startApp(t)
			repo := w.server.Repo(t, "shop.git", map[string]string{"f": "x"})
			if c.set != nil {
				w.app.Set(c.set)
			}
			store, _ := open(t, repos.Options{})
			secret := w.with(c.change...)
			remote := repos.Remote{URL: repo.URL, Auth: auth(t, secret)}
			_, err := store.Resolve(t.Context(), remote, main)
			wantKind(t, err, c.kind, c.says...)
			if text := err.Error() + repos.HintOf(err); strings.Contains(text, "PRIVATE") || strings.Contains(text, "eyJ") || strings.Contains(text, "ghs_") || repos.HintOf(err) == "" {
				t.Errorf("%q shows a secret or has no hint", text)
			}
			e, ok := errors.AsType[*repos.Error](err)
			if !ok || (e.RetryAfter-c.wait).Abs() > 5*time.Second {
				t.Errorf("to come back after %s, want %s", e.RetryAfter, c.wait)
			}
			_, err = store.Token(t.Context(), remote)
			wantKind(t, err, c.kind, c.says...)
			if got := w.server.Counts("").InfoRefs; got != 0 {
				t.Errorf("Git was asked %d times without a token", got)
			}
		})
	}
}

// A token that the repository's server refuses again and again is not bought again and again within one question, and never
// shown; a repository that the App is not installed on says so.
func TestAppAtTheRepository(t *testing.T) {
	t.Parallel()
	w := startApp(t)
	repo := w.server.Repo(t, "shop.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL, Auth: auth(t, w.secret)}
	pull(t, store, remote, main)
	for _, c := range []struct {
		status, minted int
		kind           repos.Kind
	}{{401, 2, repos.KindAuth}, {403, 2, repos.KindAuth}, {404, 2, repos.KindNotFound}} {
		if err := w.server.Inject(gitserver.Fault{Status: c.status, Body: "no, " + w.app.Tokens()[0]}); err != nil {
			t.Fatal(err)
		}
		_, err := store.Resolve(t.Context(), remote, main)
		wantKind(t, err, c.kind, "App 12345 is installed on this repository")
		if strings.Contains(err.Error(), "ghs_") {
			t.Errorf("%q shows a token", err)
		}
		if got, _ := w.app.Minted(); got != c.minted {
			t.Errorf("%d: %d tokens were bought, want %d", c.status, got, c.minted)
		}
	}
	_, err := store.Resolve(t.Context(), repos.Remote{URL: strings.Replace(repo.URL, "https:", "http:", 1), Auth: remote.Auth}, main)
	wantKind(t, err, repos.KindCredentials, "not sent over http")
	_, err = store.Resolve(t.Context(), repos.Remote{URL: "ssh://git@host/x.git", Auth: remote.Auth}, main)
	wantKind(t, err, repos.KindCredentials, "https")
}

// Who has another key, or none, for the same App gets nothing that was fetched with the right one.
func TestAppKeysAreApart(t *testing.T) {
	t.Parallel()
	w := startApp(t)
	repo := w.server.Repo(t, "shop.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{})
	rev := pull(t, store, repos.Remote{URL: repo.URL, Auth: auth(t, w.secret)}, main).Revision
	thief := repos.Remote{URL: repo.URL, Auth: auth(t, w.with("githubAppPrivateKey", pkcs1(rsaKey(t))))}
	_, err := store.Snapshot(t.Context(), thief, rev)
	wantKind(t, err, repos.KindAuth, "githubAppPrivateKey")
}

func TestAppFromSecret(t *testing.T) {
	t.Parallel()
	key := rsaKey(t)
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"githubAppID": "5", "githubAppInstallationID": "7", "githubAppPrivateKey": pkcs1(key)}
	w := &appWorld{secret: good}
	for _, c := range []struct {
		name   string
		change []string
		says   string
	}{
		{"good", nil, ""},
		{"client id", []string{"githubAppID", "Iv23liAbcdEf0123"}, ""},
		{"no id", []string{"githubAppID", ""}, "githubAppID is missing"},
		{"bad id", []string{"githubAppID", "my app"}, "githubAppID is not"},
		{"no key", []string{"githubAppPrivateKey", ""}, "githubAppPrivateKey is missing"},
		{"no installation", []string{"githubAppInstallationID", ""}, "githubAppInstallationID or githubAppInstallationOwner is missing"},
		{"both", []string{"githubAppInstallationOwner", "mesh"}, "exclude each other"},
		{"bad installation", []string{"githubAppInstallationID", "7/.."}, "not a number"},
		{"bad owner", []string{"githubAppInstallationID", "", "githubAppInstallationOwner", "https://github.com/mesh"}, "not a name"},
		{"not PEM", []string{"githubAppPrivateKey", "rope"}, "is not PEM"},
		{"one line", []string{"githubAppPrivateKey", strings.ReplaceAll(pkcs1(key), "\n", `\n`)}, "is not PEM"},
		{"cut off", []string{"githubAppPrivateKey", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)[:100]}))}, "not a private key that can be read"},
		{"a public key", []string{"githubAppPrivateKey", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)}))}, "not a private key that can be read"},
		{"encrypted", []string{"githubAppPrivateKey", string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))}, "is encrypted"},
		{"another sort", []string{"githubAppPrivateKey", pkcs8(t, curve)}, "not an RSA key"},
		{"small", []string{"githubAppPrivateKey", pkcs1(small)}, "1024 bits"},
		{"http", []string{"githubAppBaseURL", "http://ghe.example.com/api/v3"}, "githubAppBaseURL"},
		{"password in it", []string{"githubAppBaseURL", "https://u:rope@ghe.example.com/api/v3"}, "githubAppBaseURL"},
		{"with a token", []string{"bearerToken", "rope"}, "exclude each other"},
		{"with a user", []string{"username", "u", "password", "rope"}, "exclude each other"},
	} {
		_, err := repos.AuthFromSecret(secret(w.with(c.change...)))
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		wantKind(t, err, repos.KindCredentials, c.says)
		if text := err.Error() + repos.HintOf(err); strings.Contains(text, "rope") || strings.Contains(text, "MII") || repos.HintOf(err) == "" {
			t.Errorf("%s: %q shows a value or has no hint", c.name, text)
		}
	}
}

// The API's token of other Secrets.
func TestTokenWithoutApp(t *testing.T) {
	t.Parallel()
	store, _ := open(t, repos.Options{})
	for _, c := range []struct {
		secret map[string]string
		want   string
	}{
		{map[string]string{"bearerToken": "a"}, "a"},
		{map[string]string{"username": "u", "password": "b"}, "b"},
		{map[string]string{"tls.crt": "", "ca.crt": string(startApp(t).server.CA())}, ""},
	} {
		got, err := store.Token(t.Context(), repos.Remote{URL: "https://git.example.com/x.git", Auth: auth(t, c.secret)})
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
}
