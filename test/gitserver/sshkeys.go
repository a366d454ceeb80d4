package gitserver

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshKeys holds the keys of an SSH server and the files by which the forced command is told what to do.
type sshKeys struct {
	root         string
	dir          string
	identity     []byte
	hostKeys     []ssh.PublicKey
	hostKeyFiles []string
	authority    ssh.Signer // of the hosts; nil without certificates
	authorized   string
	command      string
}

// The forced command. It notes each session, lets Git's own hook note each pack that is made, and stalls when it is
// told so: "cat" then holds the answer open and waits for the client to go away, so that nothing outlives the session.
const forcedCommand = `#!/bin/sh
d=%[1]q
case "$SSH_ORIGINAL_COMMAND" in
git-upload-pack\ *|git-receive-pack\ *) ;;
*) echo "only git is served here" >&2; exit 1 ;;
esac
echo "session $SSH_ORIGINAL_COMMAND" >>"$d/log"
if [ -f "$d/readonly" ] && [ "${SSH_ORIGINAL_COMMAND%%%% *}" = git-receive-pack ]; then
	echo # so does Gitea
	echo "error: this key is marked as read only" >&2
	exit 1
fi
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_COUNT=2
export GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
export GIT_CONFIG_KEY_1=uploadpack.packObjectsHook GIT_CONFIG_VALUE_1="$d/hook"
if [ -f "$d/stall" ]; then
	mkfifo "$d/fifo.$$"
	sh -c "$SSH_ORIGINAL_COMMAND" <"$d/fifo.$$" 2>/dev/null | head -c "$(cat "$d/stall")" &
	exec 3>&1
	exec cat >"$d/fifo.$$"
fi
exec sh -c "$SSH_ORIGINAL_COMMAND"
`

const packHook = `#!/bin/sh
echo "pack $SSH_ORIGINAL_COMMAND" >>%[1]q/log
exec "$@"
`

func newSSHKeys(dir string, opts SSHOptions) (*sshKeys, error) {
	k := &sshKeys{
		dir:        dir,
		authorized: filepath.Join(dir, "authorized_keys"),
		command:    filepath.Join(dir, "serve"),
	}
	client, err := newKey(cmp.Or(opts.Identity, "ed25519"))
	if err != nil {
		return nil, err
	}
	if k.identity, err = marshalKey(client, opts.Passphrase); err != nil {
		return nil, err
	}
	public, err := ssh.NewPublicKey(client.Public())
	if err != nil {
		return nil, fmt.Errorf("make client key: %w", err)
	}
	files := []keyFile{
		{k.authorized, ssh.MarshalAuthorizedKey(public), 0o600},
		{k.command, fmt.Appendf(nil, forcedCommand, dir), 0o755},
		{filepath.Join(dir, "hook"), fmt.Appendf(nil, packHook, dir), 0o755},
	}
	if opts.ReadOnly {
		files = append(files, keyFile{filepath.Join(dir, "readonly"), nil, 0o600})
	}
	if opts.Certificates {
		if k.authority, err = newSigner(); err != nil {
			return nil, err
		}
	}
	types := opts.HostKeys
	if len(types) == 0 {
		types = []string{"ed25519"}
	}
	for _, kind := range types {
		added, err := k.addHostKey(kind)
		if err != nil {
			return nil, err
		}
		files = append(files, added...)
	}
	for _, f := range files {
		if err := os.WriteFile(f.path, f.content, f.mode); err != nil {
			return nil, fmt.Errorf("write ssh files: %w", err)
		}
	}
	return k, nil
}

type keyFile struct {
	path    string
	content []byte
	mode    os.FileMode
}

func (k *sshKeys) addHostKey(kind string) ([]keyFile, error) {
	key, err := newKey(kind)
	if err != nil {
		return nil, err
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("make host key: %w", err)
	}
	content, err := marshalKey(key, "")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(k.dir, "host_"+kind)
	k.hostKeys = append(k.hostKeys, public)
	k.hostKeyFiles = append(k.hostKeyFiles, file)
	files := []keyFile{{file, content, 0o600}}
	if k.authority == nil {
		return files, nil
	}
	cert := &ssh.Certificate{
		Key:             public,
		CertType:        ssh.HostCert,
		KeyId:           "gitserver",
		ValidPrincipals: []string{"127.0.0.1"},
		ValidBefore:     ssh.CertTimeInfinity,
	}
	if err := cert.SignCert(rand.Reader, k.authority); err != nil {
		return nil, fmt.Errorf("certify host key: %w", err)
	}
	return append(files, keyFile{certificateOf(file), ssh.MarshalAuthorizedKey(cert), 0o600}), nil
}

func certificateOf(keyFile string) string { return keyFile + "-cert.pub" }

func newSigner() (ssh.Signer, error) {
	key, err := newKey("ed25519")
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, fmt.Errorf("make ssh key: %w", err)
	}
	return signer, nil
}

// HostAuthority is the key that signed the host keys of a server with SSHOptions.Certificates; nil for others.
func (s *Server) HostAuthority() ssh.PublicKey {
	if s.keys == nil || s.keys.authority == nil {
		return nil
	}
	return s.keys.authority.PublicKey()
}

func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("make ssh key: no such type %q (ed25519, ecdsa, rsa)", kind)
}

func marshalKey(key crypto.Signer, passphrase string) ([]byte, error) {
	block, err := ssh.MarshalPrivateKey(key, "gitserver")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "gitserver", []byte(passphrase))
	}
	if err != nil {
		return nil, fmt.Errorf("write ssh key: %w", err)
	}
	return pem.EncodeToMemory(block), nil
}

// NewIdentity makes a private key that no server knows, PEM.
func NewIdentity() ([]byte, error) {
	key, err := newKey("ed25519")
	if err != nil {
		return nil, err
	}
	return marshalKey(key, "")
}

// Identity is the private key that an SSH server lets in, PEM.
func (s *Server) Identity() []byte {
	if s.keys == nil {
		return nil
	}
	return s.keys.identity
}

// HostKeys of an SSH server, in the order of SSHOptions.HostKeys.
func (s *Server) HostKeys() []ssh.PublicKey {
	if s.keys == nil {
		return nil
	}
	return s.keys.hostKeys
}

// KnownHosts are the lines of known_hosts for the server's address, one for each of the keys given, or for all of its
// own when there are none.
func (s *Server) KnownHosts(keys ...ssh.PublicKey) []byte {
	if len(keys) == 0 {
		keys = s.HostKeys()
	}
	var b strings.Builder
	for _, key := range keys {
		b.WriteString(knownhosts.Line([]string{s.addr}, key) + "\n")
	}
	return []byte(b.String())
}

// counts reads them from the log that the forced command writes.
func (k *sshKeys) counts(repo string) Counts {
	var c Counts
	content, err := os.ReadFile(filepath.Join(k.dir, "log"))
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(content)) {
		if repo != "" && !strings.Contains(line, "'"+filepath.Join(k.root, repo)+"'") {
			continue
		}
		switch {
		case strings.HasPrefix(line, "session "):
			c.InfoRefs++
		case strings.HasPrefix(line, "pack "):
			c.UploadPack++
		}
	}
	return c
}

func (k *sshKeys) inject(f Fault) error {
	if !f.Stall || f.On != "" || f.Times != 0 || f.Status != 0 || f.RedirectTo != "" || f.Cut {
		return errors.New("inject fault: over ssh there is only Stall")
	}
	return os.WriteFile(filepath.Join(k.dir, "stall"), []byte(strconv.Itoa(f.StallAfter)), 0o600)
}

func (k *sshKeys) heal() error {
	err := os.Remove(filepath.Join(k.dir, "stall"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
