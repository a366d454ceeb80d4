package repos_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

func TestSSHKeys(t *testing.T) {
	t.Parallel()
	s := gitserver.SSH(t, gitserver.SSHOptions{Passphrase: "open sesame"})
	repo := s.Repo(t, "it's a shop!.git", map[string]string{"f": "x"})
	url := strings.ReplaceAll(repo.URL, " ", "%20")
	store, _ := open(t, repos.Options{})
	a := auth(t, map[string]string{"identity": string(s.Identity()), "known_hosts": string(s.KnownHosts()), "password": "open sesame"})
	snap := pull(t, store, repos.Remote{URL: url, Auth: a}, main)
	read(t, snap.FS(), "f")

	_, err := repos.AuthFromSecret(secret(map[string]string{"identity": string(s.Identity()), "known_hosts": string(s.KnownHosts())}))
	wantKind(t, err, repos.KindCredentials, "key password is missing")
	_, err = repos.AuthFromSecret(secret(map[string]string{"identity": string(s.Identity()), "known_hosts": string(s.KnownHosts()), "password": "wrong"}))
	wantKind(t, err, repos.KindCredentials, "does not open identity")

	other, err := gitserver.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	stranger := repos.Remote{URL: url, Auth: auth(t, map[string]string{"identity": string(other), "known_hosts": string(s.KnownHosts())})}
	_, err = store.Resolve(t.Context(), stranger, main)
	wantKind(t, err, repos.KindAuth, "does not accept the key", ssh.FingerprintSHA256(signer.PublicKey()))
	_, err = store.Resolve(t.Context(), repos.Remote{URL: s.RepoURL("none.git"), Auth: a}, main)
	wantKind(t, err, repos.KindNotFound, "none.git")
}

// Which hosts are believed: one known key of any sort is enough, under any spelling of known_hosts; all else fails
// closed and names what was offered and what is known.
func TestSSHKnownHosts(t *testing.T) {
	t.Parallel()
	s := gitserver.SSH(t, gitserver.SSHOptions{HostKeys: []string{"rsa", "ecdsa", "ed25519"}})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	single := gitserver.SSH(t, gitserver.SSHOptions{HostKeys: []string{"ecdsa"}, Root: s.Root})
	keys := s.HostKeys()
	line := func(hosts string, key ssh.PublicKey) string {
		return hosts + " " + strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + "\n"
	}
	at := knownhosts.Normalize(s.Addr()) // [127.0.0.1]:port
	print := ssh.FingerprintSHA256
	foreign := gitserver.SSH(t, gitserver.SSHOptions{}).HostKeys()[0]
	for _, c := range []struct {
		name, hosts string
		kind        repos.Kind
		says        []string
	}{
		{"all", string(s.KnownHosts()), "", nil},
		{"rsa alone", line(at, keys[0]), "", nil},
		{"ecdsa alone", line(at, keys[1]), "", nil},
		{"ed25519 alone", line(at, keys[2]), "", nil},
		{"hashed", line(knownhosts.HashHostname(at), keys[1]), "", nil},
		{"pattern", line("[127.0.0.*]:"+s.Addr()[10:], keys[2]), "", nil},
		{"among others", line("other.example.com,"+at, keys[2]), "", nil},
		{"an old key beside the new one", line(at, foreign) + line(at, keys[2]), "", nil},
		{"another key of the same host revoked", line(at, keys[1]) + line("@revoked *", keys[2]), "", nil},
		{"empty", "# nobody\n", repos.KindHostKey, []string{"no key for " + at, print(keys[2])}},
		{"another host", line("other.example.com", keys[2]), repos.KindHostKey, []string{"no key for " + at}},
		{"the default port", line("127.0.0.1", keys[2]), repos.KindHostKey, []string{"no key for " + at}},
		{"another key", line(at, foreign), repos.KindHostKey, []string{"offered", print(keys[2]), print(foreign)}},
		{"hashed, another key", line(knownhosts.HashHostname(at), foreign), repos.KindHostKey, []string{print(keys[2]), print(foreign)}},
		{"revoked", line(at, keys[2]) + line("@revoked *", keys[2]), repos.KindHostKey, []string{"revoked", print(keys[2])}},
		{"negated", line("*,!"+at, keys[2]), repos.KindHostKey, []string{"no key for"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, _ := open(t, repos.Options{})
			a := auth(t, map[string]string{"identity": string(s.Identity()), "known_hosts": c.hosts})
			_, err := store.Resolve(t.Context(), repos.Remote{URL: repo.URL, Auth: a}, main)
			if c.kind == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantKind(t, err, c.kind, c.says...)
		})
	}
	t.Run("no key of the known sort", func(t *testing.T) {
		store, _ := open(t, repos.Options{})
		hosts := line(knownhosts.Normalize(single.Addr()), foreign)
		a := auth(t, map[string]string{"identity": string(single.Identity()), "known_hosts": hosts})
		_, err := store.Resolve(t.Context(), repos.Remote{URL: single.RepoURL("shop.git"), Auth: a}, main)
		wantKind(t, err, repos.KindHostKey, print(single.HostKeys()[0]), print(foreign))
	})
	if got := s.Counts("").InfoRefs; got != 9 {
		t.Errorf("%d sessions, want one for each of the 9 that believe the host", got)
	}
}

// A certificate of an authority in known_hosts is believed, for the hosts that it names.
func TestSSHCertificates(t *testing.T) {
	t.Parallel()
	s := gitserver.SSH(t, gitserver.SSHOptions{HostKeys: []string{"ecdsa"}, Certificates: true})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	authority := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.HostAuthority())))
	at := knownhosts.Normalize(s.Addr())
	other := gitserver.SSH(t, gitserver.SSHOptions{Certificates: true})
	foreign := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(other.HostAuthority())))
	for _, c := range []struct {
		name, hosts string
		kind        repos.Kind
	}{
		{"authority", "@cert-authority " + at + " " + authority, ""},
		{"authority for all", "@cert-authority [127.0.0.*]:" + s.Addr()[10:] + " " + authority, ""},
		{"another authority", "@cert-authority " + at + " " + foreign, repos.KindHostKey},
		{"authority of another host", "@cert-authority other.example.com " + authority, repos.KindHostKey},
		{"revoked authority", "@cert-authority " + at + " " + authority + "\n@revoked * " + authority, repos.KindHostKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, _ := open(t, repos.Options{})
			a := auth(t, map[string]string{"identity": string(s.Identity()), "known_hosts": c.hosts + "\n"})
			_, err := store.Resolve(t.Context(), repos.Remote{URL: repo.URL, Auth: a}, main)
			if c.kind != "" {
				wantKind(t, err, c.kind)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}
