package repos_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

func TestAuthFromSecret(t *testing.T) {
	t.Parallel()
	id, err := gitserver.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	identity := string(id)
	ca, cert, key, err := gitserver.Certificate("client")
	if err != nil {
		t.Fatal(err)
	}
	const hosts = "host.example.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHKfLkHVKmzZNHxLRG5YjVr8vAaaGhXCGqv7hNPJGLdE\n"
	for _, c := range []struct {
		name   string
		secret map[string]string
		prints string
	}{
		{"basic", map[string]string{"username": "ship", "password": "rope\n"}, "basic"},
		{"bearer", map[string]string{"bearerToken": "rope"}, "bearer"},
		{"ssh", map[string]string{"identity": identity, "known_hosts": hosts}, "ssh key"},
		{"ssh with all that flux writes", map[string]string{"identity": identity, "identity.pub": "…", "known_hosts": "# a comment\r\n" + strings.TrimSpace(hosts) + "\r\n"}, "ssh key"},
		{"ssh without a last line end", map[string]string{"identity": strings.TrimSpace(identity), "known_hosts": strings.TrimSpace(hosts)}, "ssh key"},
		{"ssh with the line ends of Windows", map[string]string{"identity": strings.ReplaceAll(identity, "\n", "\r\n"), "known_hosts": strings.ReplaceAll(hosts+hosts, "\n", "\r\n")}, "ssh key"},
		{"the old names of flux", map[string]string{"caFile": string(ca), "certFile": string(cert), "keyFile": string(key)}, "client certificate, own authority"},
		{"unencrypted key with a password", map[string]string{"identity": identity, "known_hosts": hosts, "password": "not needed"}, "ssh key"},
	} {
		a, err := repos.AuthFromSecret(secret(c.secret))
		if err != nil || a.String() != c.prints {
			t.Errorf("%s: %v, %v; want %s", c.name, a, err, c.prints)
		}
	}
	for _, c := range []struct {
		name   string
		secret map[string]string
		says   string
	}{
		{"nothing", nil, "it is empty"},
		{"other keys", map[string]string{"Username": "ship", "Password": "rope"}, "it has Password, Username"},
		{"no password", map[string]string{"username": "ship"}, "key password is missing"},
		{"no username", map[string]string{"password": "rope"}, "key username is missing"},
		{"two sorts", map[string]string{"username": "ship", "password": "rope", "bearerToken": "rope"}, "exclude each other"},
		{"no hosts", map[string]string{"identity": identity}, "key known_hosts is missing"},
		{"no identity", map[string]string{"known_hosts": hosts}, "key identity is missing"},
		{"bad identity", map[string]string{"identity": "rope", "known_hosts": hosts}, "key identity is not a private key"},
		{"bad hosts", map[string]string{"identity": identity, "known_hosts": hosts + "what is this\n"}, "known_hosts: knownhosts: line 2"},
		{"bad authority", map[string]string{"ca.crt": "rope"}, "key ca.crt holds no certificate"},
		{"no certificate", map[string]string{"tls.key": "rope"}, "key tls.crt is missing"},
		{"no key", map[string]string{"tls.crt": "rope"}, "key tls.key is missing"},
		{"bad authority under its old name", map[string]string{"caFile": "rope"}, "key caFile holds no certificate"},
		{"no key under its old name", map[string]string{"certFile": "rope"}, "key tls.key is missing"},
		{"bad pair", map[string]string{"tls.crt": "rope", "tls.key": "rope"}, "keys tls.crt and tls.key"},
		{"split header", map[string]string{"bearerToken": "a\nrope"}, "HTTP cannot carry"},
	} {
		_, err := repos.AuthFromSecret(secret(c.secret))
		wantKind(t, err, repos.KindCredentials, c.says)
		if text := err.Error() + repos.HintOf(err); strings.Contains(text, "rope") {
			t.Errorf("%s: %q shows a value", c.name, text)
		}
		if repos.HintOf(err) == "" {
			t.Errorf("%s: no hint", c.name)
		}
	}
}

// However it is printed, alone or in something else, nothing of the secret comes out.
func TestAuthShowsNoSecret(t *testing.T) {
	t.Parallel()
	type wrapped struct {
		Remote repos.Remote
		hidden repos.Auth
	}
	for _, data := range []map[string]string{
		{"username": "marlinspike", "password": "s3cret"},
		{"bearerToken": "s3cret"},
	} {
		a := auth(t, data)
		w := wrapped{repos.Remote{URL: "https://x/y", Auth: a}, a}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "auth", a, "remote", w.Remote, "pointer", &w)
		text := log.String()
		for _, v := range []any{a, &a, w, &w, w.Remote, []repos.Auth{a}, map[string]repos.Auth{"a": a}} {
			encoded, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("%v %+v %#v %s %q %x %s\n", v, v, v, v, v, v, encoded)
		}
		if strings.Contains(text, "s3cret") || strings.Contains(text, "marlinspike") || strings.Contains(text, fmt.Sprintf("%x", "s3cret")) {
			t.Errorf("a secret is printed:\n%s", text)
		}
	}
	if got := (repos.Auth{}).String(); got != "anonymous" {
		t.Errorf("zero Auth prints %q", got)
	}
}

// Credentials that do not go with the URL are refused before anything is sent.
func TestAuthFitsURL(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	id, err := gitserver.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	basic := auth(t, map[string]string{"username": "ship", "password": "rope"})
	bearer := auth(t, map[string]string{"bearerToken": "rope"})
	key := auth(t, map[string]string{"identity": string(id), "known_hosts": "# none\n"})
	https := strings.Replace(repo.URL, "http:", "https:", 1)
	ssh := strings.Replace(repo.URL, "http:", "ssh:", 1)
	store, _ := open(t, repos.Options{})
	for _, c := range []struct {
		url  string
		auth repos.Auth
		says string
	}{
		{repo.URL, basic, "not sent over http"},
		{repo.URL, bearer, "not sent over http"},
		{repo.URL, key, "not sent over http"},
		{https, key, "the secret holds an ssh key"},
		{ssh, repos.Auth{}, "ssh needs a private key"},
		{ssh, basic, "ssh needs a private key"},
	} {
		remote := repos.Remote{URL: c.url, Auth: c.auth}
		_, err := store.Resolve(t.Context(), remote, main)
		wantKind(t, err, repos.KindCredentials, c.says, c.url)
		_, err = store.Snapshot(t.Context(), remote, repos.Revision{Commit: someID})
		wantKind(t, err, repos.KindCredentials, c.says)
	}
	if got := s.Counts(""); got != (gitserver.Counts{}) {
		t.Errorf("the server was asked: %+v", got)
	}
}
