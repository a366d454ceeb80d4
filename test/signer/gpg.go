// Package signer signs commits and tags for tests, with the programs that people use for it: gpg and ssh-keygen.
//
// GPG is a folder with keys of its own, made and used without a word. An SSH key is a file. Both Sign what Git has signed; Commit and
// Tag put a signature where Git puts it, so that a test can have objects that Git itself would not make.
package signer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// GPG is a folder of OpenPGP keys.
type GPG struct {
	t testing.TB
	// Home is the value of GNUPGHOME.
	Home string
}

// NewGPG makes an empty one, which goes with its agent when the test ends.
func NewGPG(t testing.TB) *GPG {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // the path of a socket in it may not be long
	if err != nil {
		t.Fatal(err)
	}
	g := &GPG{t: t, Home: home}
	t.Cleanup(func() {
		kill := exec.Command("gpgconf", "--kill", "all") //nolint:noctx // the test's context is over
		kill.Env = g.env()
		if out, err := kill.CombinedOutput(); err != nil {
			t.Errorf("gpgconf --kill all: %v\n%s", err, out)
		}
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g *GPG) env() []string { return append(os.Environ(), "GNUPGHOME="+g.Home, "LC_ALL=C") }

// Run gpg and give what it prints.
func (g *GPG) Run(input []byte, args ...string) []byte {
	g.t.Helper()
	args = append([]string{"--batch", "--yes", "--no-tty", "--pinentry-mode", "loopback", "--passphrase", ""}, args...)
	return run(g.t, g.env(), input, "gpg", args...)
}

// at makes gpg believe that it is another time; the zero time is now.
func at(when time.Time) []string {
	if when.IsZero() {
		return nil
	}
	return []string{"--faked-system-time", when.UTC().Format("20060102T150405") + "!"}
}

// Key makes a primary key and gives its fingerprint: of an algorithm such as ed25519 or rsa3072, for a usage such as sign or cert, expiring such
// as never or 30d, made at a time.
func (g *GPG) Key(user, algorithm, usage, expires string, when time.Time) string {
	g.t.Helper()
	g.Run(nil, append(at(when), "--quick-generate-key", user, algorithm, usage, expires)...)
	return g.fingerprints(user)[0]
}

// Subkey adds one, and gives its fingerprint.
func (g *GPG) Subkey(primary, algorithm, usage, expires string, when time.Time) string {
	g.t.Helper()
	g.Run(nil, append(at(when), "--quick-add-key", primary, algorithm, usage, expires)...)
	all := g.fingerprints(primary)
	return all[len(all)-1]
}

// fingerprints of the primary key and then the subkeys.
func (g *GPG) fingerprints(key string) []string {
	g.t.Helper()
	var all []string
	for line := range strings.Lines(string(g.Run(nil, "--with-colons", "--list-keys", key))) {
		if fields := strings.Split(line, ":"); fields[0] == "fpr" {
			all = append(all, fields[9])
		}
	}
	if len(all) == 0 {
		g.t.Fatalf("gpg knows no key %s", key)
	}
	return all
}

// Export public keys, armored.
func (g *GPG) Export(keys ...string) []byte {
	g.t.Helper()
	return g.Run(nil, append([]string{"--armor", "--export"}, keys...)...)
}

// Import keys.
func (g *GPG) Import(data []byte) {
	g.t.Helper()
	g.Run(data, "--import")
}

// Revocation is the certificate that gpg makes beside each primary key, fit to be imported.
func (g *GPG) Revocation(primary string) []byte {
	g.t.Helper()
	content, err := os.ReadFile(filepath.Join(g.Home, "openpgp-revocs.d", primary+".rev"))
	if err != nil {
		g.t.Fatal(err)
	}
	return bytes.ReplaceAll(content, []byte("\n:-----BEGIN"), []byte("\n-----BEGIN")) // a guard against accidents
}

// Edit answers the questions of --edit-key.
func (g *GPG) Edit(key string, commands ...string) {
	g.t.Helper()
	input := strings.Join(append(commands, "save"), "\n") + "\n"
	run(g.t, g.env(), []byte(input), "gpg", "--no-tty", "--yes", "--pinentry-mode", "loopback", "--passphrase", "", "--command-fd", "0", "--status-fd", "2", "--edit-key", key)
}

// Sign as Git has it done, with a key or (when it ends in !) just that subkey, at a time.
func (g *GPG) Sign(payload []byte, key string, when time.Time, more ...string) []byte {
	g.t.Helper()
	return g.Run(payload, append(append(at(when), more...), "-bsau", key)...)
}

// SSH is a key of ssh-keygen.
type SSH struct {
	t testing.TB
	// File of the private key; the public one is beside it.
	File string
	// Public is the line of the public key, without line end.
	Public string
}

// NewSSH makes a key, of a kind and perhaps with bits, as for ssh-keygen -t and -b.
func NewSSH(t testing.TB, kind string, more ...string) *SSH {
	t.Helper()
	s := &SSH{t: t, File: filepath.Join(t.TempDir(), "key")}
	run(t, os.Environ(), nil, "ssh-keygen", append([]string{"-q", "-t", kind, "-N", "", "-C", "a comment", "-f", s.File}, more...)...)
	content, err := os.ReadFile(s.File + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	s.Public = strings.TrimSpace(string(content))
	return s
}

// Sign as Git has it done.
func (s *SSH) Sign(payload []byte, more ...string) []byte { return s.SignFor("git", payload, more...) }

// SignFor signs for another namespace than Git's.
func (s *SSH) SignFor(namespace string, payload []byte, more ...string) []byte {
	s.t.Helper()
	return run(s.t, os.Environ(), payload, "ssh-keygen", append([]string{"-Y", "sign", "-n", namespace, "-f", s.File}, more...)...)
}

// Certify makes a certificate for another key, as for ssh-keygen -s, and lets that key sign with it from now on.
func (s *SSH) Certify(other *SSH, identity, principals string, more ...string) {
	s.t.Helper()
	args := append([]string{"-q", "-s", s.File, "-I", identity, "-n", principals}, more...)
	run(s.t, os.Environ(), nil, "ssh-keygen", append(args, other.File+".pub")...)
	other.File += "-cert.pub"
}

// Commit puts a signature into a commit that has none.
func Commit(raw, signature []byte) []byte {
	return WithHeader(raw, "gpgsig", signature)
}

// WithHeader adds a header of several lines behind the others of a commit.
func WithHeader(raw []byte, name string, value []byte) []byte {
	header, message, _ := bytes.Cut(raw, []byte("\n\n"))
	lines := strings.ReplaceAll(strings.TrimSuffix(string(value), "\n"), "\n", "\n ")
	return fmt.Appendf(nil, "%s\n%s %s\n\n%s", header, name, lines, message)
}

// Tag puts a signature behind a tag that has none.
func Tag(raw, signature []byte) []byte {
	return append(bytes.Clone(raw), signature...)
}

func run(t testing.TB, env []string, input []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = env
	cmd.Stdin = bytes.NewReader(input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, problems.String())
	}
	return out.Bytes()
}
