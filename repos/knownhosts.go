package repos

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// knownHosts is a known_hosts file: plain and hashed names, other ports, @revoked and @cert-authority, as sshd(8)
// describes them.
type knownHosts struct {
	check ssh.HostKeyCallback
	certs bool // there are @cert-authority lines
}

// parseKnownHosts reads the file with the library's own parser, which takes nothing but file names. It gets the name
// of a pipe, because there may be no folder that we can write to.
func parseKnownHosts(content []byte) (*knownHosts, error) {
	content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		_, _ = w.Write(content) // ends with an error when the parser stops early, and says so itself
		_ = w.Close()
	})
	name := fmt.Sprintf("/dev/fd/%d", r.Fd())
	check, err := knownhosts.New(name)
	_ = r.Close()
	writing.Wait()
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), name+":", "line "))
	}
	return &knownHosts{check: check, certs: bytes.Contains(content, []byte("@cert-authority"))}, nil
}

// keys are those that the file has for an address.
func (k *knownHosts) keys(addr string) []knownhosts.KnownKey {
	err := k.check(addr, noAddr{}, noKey{})
	if unknown, ok := errors.AsType[*knownhosts.KeyError](err); ok {
		return unknown.Want
	}
	return nil
}

// algorithms are the sorts of host key that may be asked of an address: only those that the file can confirm. Without
// this, a server with several keys might show one that the file does not have, while it has another.
func (k *knownHosts) algorithms(addr string) []string {
	var algorithms []string
	add := func(names ...string) {
		for _, name := range names {
			if !slices.Contains(algorithms, name) {
				algorithms = append(algorithms, name)
			}
		}
	}
	if k.certs {
		add(ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
			ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01)
	}
	for _, known := range k.keys(addr) {
		if known.Key.Type() == ssh.KeyAlgoRSA { // one key, of which the signature's hash is agreed upon
			add(ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		add(known.Key.Type())
	}
	return algorithms
}

// verify is the callback of the handshake. It fails closed and names both sides' fingerprints.
func (k *knownHosts) verify(addr string, remote net.Addr, offered ssh.PublicKey) error {
	err := k.check(addr, remote, offered)
	if err == nil {
		return nil
	}
	if _, revoked := errors.AsType[*knownhosts.RevokedError](err); revoked {
		return failf(KindHostKey, "known_hosts marks this key as @revoked: find out why before you trust the server again",
			"the server's host key %s is revoked", fingerprint(offered))
	}
	known := k.keys(addr)
	if len(known) == 0 {
		return failf(KindHostKey, "compare the fingerprint with what the host publishes, then add the line that ssh-keyscan prints to known_hosts in the Secret",
			"known_hosts has no key for %s; the server offered %s", knownhosts.Normalize(addr), fingerprint(offered))
	}
	var prints []string
	for _, key := range known {
		prints = append(prints, fingerprint(key.Key))
	}
	return failf(KindHostKey, "someone may stand in between. Only if the host published a new key, replace its line in known_hosts of the Secret",
		"the server is not who it was: it offered host key %s, known_hosts has %s", fingerprint(offered), strings.Join(prints, ", "))
}

func fingerprint(key ssh.PublicKey) string {
	return fmt.Sprintf("%s %s", key.Type(), ssh.FingerprintSHA256(key))
}

// noKey equals no key, so that asking for it yields all that are known.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

type noAddr struct{}

func (noAddr) Network() string { return "tcp" }
func (noAddr) String() string  { return "0.0.0.0:0" }
