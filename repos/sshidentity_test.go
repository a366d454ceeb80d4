package repos_test

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// A deploy key of any type gets in: with a passphrase and without one, as ssh-keygen writes it today and as it did before.
func TestSSHIdentities(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		for _, passphrase := range []string{"", "open sesame"} {
			t.Run(kind+" "+passphrase, func(t *testing.T) {
				t.Parallel()
				s := gitserver.SSH(t, gitserver.SSHOptions{Identity: kind, Passphrase: passphrase})
				repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
				identities := []string{string(s.Identity())}
				if old := oldForm(t, s.Identity(), passphrase); old != "" {
					identities = append(identities, old)
				}
				for _, identity := range identities {
					data := map[string]string{"identity": identity, "known_hosts": string(s.KnownHosts())}
					if passphrase != "" {
						data["password"] = passphrase
					}
					store, _ := open(t, repos.Options{})
					if got := read(t, pull(t, store, repos.Remote{URL: repo.URL, Auth: auth(t, data)}, main).FS(), "f"); got != "x" {
						t.Errorf("f is %q", got)
					}
				}
			})
		}
	}
}

// oldForm is a key as PKCS #1 or SEC 1, which ssh-keygen -m PEM writes; empty for what has no such form.
func oldForm(t *testing.T, identity []byte, passphrase string) string {
	t.Helper()
	if passphrase != "" {
		return ""
	}
	key, err := ssh.ParseRawPrivateKey(identity)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		block.Type, block.Bytes = "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)
	case *ecdsa.PrivateKey:
		block.Type = "EC PRIVATE KEY"
		if block.Bytes, err = x509.MarshalECPrivateKey(key); err != nil {
			t.Fatal(err)
		}
	default:
		return ""
	}
	return string(pem.EncodeToMemory(block))
}
