package repos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// sshTransport runs Git's programs on a server over SSH. It reads no file of the machine's: no ~/.ssh, no agent.
type sshTransport struct {
	at   endpoint
	auth Auth
	by   Proxy
}

// open connects and starts the command. Every byte goes through a connection that is closed when ctx ends, so nothing
// that the server does, or does not do, can hold us longer.
func (t *sshTransport) open(ctx context.Context, with service) (session, error) {
	algorithms := t.auth.secrets().hosts.algorithms(t.at.addr())
	client, release, err := t.dial(ctx, algorithms)
	if err != nil {
		return nil, err
	}
	s, err := startCommand(client, with, t.at.path)
	if err != nil {
		release()
		return nil, failf(KindUnavailable, "", "start %s: %w", with, err)
	}
	s.release, s.auth = release, t.auth
	return s, nil
}

// dial connects and shakes hands. Without algorithms the host is unknown: then every sort of key is asked for, only
// to name it in the error.
func (t *sshTransport) dial(ctx context.Context, algorithms []string) (_ *ssh.Client, release func(), err error) {
	conn, err := t.by.dial(ctx, t.at.addr())
	if KindOf(err) != "" {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, failf(KindUnavailable, "check that the host and port are right and can be reached from here", "%w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	release = func() {
		stop()
		_ = conn.Close()
	}
	var hostKey error
	asked := algorithms
	if len(asked) == 0 {
		asked = []string{
			ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
			ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
		}
	}
	config := &ssh.ClientConfig{
		User:              cmp.Or(t.at.user, "git"),
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(t.auth.secrets().signer)},
		HostKeyAlgorithms: asked,
		ClientVersion:     "SSH-2.0-mooring",
		HostKeyCallback: func(addr string, remote net.Addr, key ssh.PublicKey) error {
			hostKey = t.auth.secrets().hosts.verify(addr, remote, key)
			return hostKey
		},
	}
	c, channels, requests, err := ssh.NewClientConn(conn, t.at.addr(), config)
	if err == nil {
		return ssh.NewClient(c, channels, requests), release, nil
	}
	release()
	negotiation, disagree := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	switch {
	case hostKey != nil:
		return nil, nil, hostKey
	case disagree && negotiation.What == "host key" && len(algorithms) > 0:
		return nil, nil, t.otherKeys(ctx, negotiation)
	case strings.Contains(err.Error(), "unable to authenticate"):
		return nil, nil, failf(KindAuth, "add the public half of the Secret's identity to the repository as a deploy key; it is "+
			fingerprint(t.auth.secrets().signer.PublicKey()), "the server does not accept the key for user %s", config.User)
	}
	if brokenOff(err) {
		err = errors.New("ssh: handshake failed: the other side closed the connection")
	}
	return nil, nil, failf(KindUnavailable, "check that an ssh server listens on this port", "%s", t.auth.scrub(err.Error()))
}

// brokenOff tells whether the connection ended before its time. Who meets the end first, the one that reads or the one that writes, is a matter of microseconds, and
// each has words of its own for it.
func brokenOff(err error) bool {
	for _, end := range []error{io.EOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// otherKeys explains a server that has none of the sorts of key that known_hosts has for it. It shakes hands once more
// to learn a key that the server does have; the callback refuses it before anything of ours is sent.
func (t *sshTransport) otherKeys(ctx context.Context, cause error) error {
	_, release, err := t.dial(ctx, nil)
	if err == nil {
		release() // cannot be: the callback accepts only what is known
	}
	if KindOf(err) == KindHostKey {
		return err
	}
	return failf(KindHostKey, "add the line that ssh-keyscan prints, after comparing the fingerprint with what the host publishes",
		"the server has no host key of the sorts that known_hosts has for %s: %w", knownhosts.Normalize(t.at.addr()), cause)
}

// pipeSession talks to a program through its standard input and output.
type pipeSession struct {
	in      io.WriteCloser
	out     io.Reader
	said    *saying // what the command says on standard error
	wait    func() error
	release func()
	auth    Auth
	asked   bool
	once    sync.Once
}

func startCommand(client *ssh.Client, with service, path string) (*pipeSession, error) {
	command, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	s := &pipeSession{said: &saying{}, wait: command.Wait}
	command.Stderr = s.said
	if s.in, err = command.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = command.StdoutPipe(); err != nil {
		return nil, err
	}
	return s, command.Start(string(with) + " " + shellQuote(path))
}

// shellQuote is how git itself quotes the path for the server's shell or git-shell.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer(`'`, `'\''`, `!`, `'\!'`).Replace(s) + "'"
}

func (s *pipeSession) refs(ctx context.Context) (*packp.AdvRefs, error) {
	adv, err := decodeRefs(s.out)
	if err == nil {
		return adv, nil
	}
	if _, isRefusal := errors.AsType[*pktline.ErrorLine](err); isRefusal || KindOf(err) != "" {
		return nil, garbled(err, s.auth.scrub)
	}
	// The command ended without a word of Git, or with an empty line, as some forges do; what it said to people is the
	// reason.
	exit, ended := s.awaitEnd(ctx)
	if said := s.auth.scrub(plainWords(s.said.String())); said != "" {
		return nil, refused(said)
	}
	if !ended || (!errors.Is(err, packp.ErrEmptyInput) && !errors.Is(err, io.ErrUnexpectedEOF)) {
		return nil, garbled(err, s.auth.scrub)
	}
	return nil, failf(KindProtocol, notGitHint, "the server ended without listing refs: %w", cmp.Or(exit, err))
}

// awaitEnd gives a command that does not speak Git a moment to end, and returns how it did.
func (s *pipeSession) awaitEnd(ctx context.Context) (exit error, ended bool) {
	const moment = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, moment)
	defer cancel()
	_ = s.in.Close()
	done := make(chan error, 1)
	go func() { // ends with the connection
		_, _ = io.Copy(io.Discard, s.out)
		done <- s.wait()
	}()
	select {
	case exit = <-done:
		return exit, true
	case <-ctx.Done():
		return nil, false
	}
}

func (s *pipeSession) ask(_ context.Context, request []byte) (io.ReadCloser, error) {
	s.asked = true
	_, err := s.in.Write(request)
	if err == nil {
		err = s.in.Close()
	}
	// A server refuses a request at the first line that it does not like, and may have ended before it has read the rest.
	// What it answered says why, and is still to be read.
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) {
		return nil, failf(KindUnavailable, "", "send request: %w", err)
	}
	return io.NopCloser(s.out), nil
}

func (s *pipeSession) lasting() bool { return false }

// close says goodbye, if nothing was asked for, and cuts the connection.
func (s *pipeSession) close() {
	s.once.Do(func() {
		if !s.asked {
			_, _ = fmt.Fprint(s.in, "0000")
			_ = s.in.Close()
		}
		s.release()
	})
}

// saying keeps the beginning of what is written, enough for a message.
type saying struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the first 4 KiB and swallows the rest.
func (t *saying) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[:min(len(p), 4<<10-len(t.text))]...)
	return len(p), nil
}

// String is what was kept.
func (t *saying) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
