package gitserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/test/poll"
)

// SSHOptions of a server. The zero value has an Ed25519 host key and serves whoever holds Server.Identity.
type SSHOptions struct {
	// Root is the folder whose bare repositories are served; StartSSH needs it, SSH makes one when it is empty.
	Root string
	// HostKeys are the types of key that the server has: ed25519, ecdsa, rsa. Just ed25519 when empty.
	HostKeys []string
	// Identity is the type of the client's key: ed25519, ecdsa, rsa; ed25519 when empty.
	Identity string
	// Passphrase encrypts the client's private key.
	Passphrase string
	// Certificates for the host keys, signed by Server.HostAuthority.
	Certificates bool
	// ReadOnly refuses pushes, as a forge does for a deploy key without write access.
	ReadOnly bool
}

// StartSSH runs sshd on a free loopback port until Close is called or ctx ends.
func StartSSH(ctx context.Context, opts SSHOptions) (*Server, error) {
	root, err := filepath.Abs(opts.Root)
	if err != nil || opts.Root == "" {
		return nil, fmt.Errorf("serve git over ssh: no root folder given (%q)", opts.Root)
	}
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("serve git over ssh: %w", err)
	}
	sshd, err := findSSHD()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "gitserver-ssh-")
	if err != nil {
		return nil, fmt.Errorf("serve git over ssh: %w", err)
	}
	keys, err := newSSHKeys(dir, opts)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	keys.root = root
	s := &Server{Root: root, scheme: "ssh", user: me.Username, prefix: root, keys: keys}
	// The port is free when it is chosen and may be taken a moment later, so a few are tried.
	for range 5 {
		if err = s.runSSHD(ctx, sshd, dir); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

func findSSHD() (string, error) {
	for _, path := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	if path, err := exec.LookPath("sshd"); err == nil {
		return filepath.Abs(path) // sshd wants to be called by its full name
	}
	return "", errors.New("find sshd: not installed (install it: apt-get install openssh-server)")
}

// runSSHD starts the daemon and waits until it listens.
func (s *Server) runSSHD(ctx context.Context, sshd, dir string) error {
	if os.Geteuid() == 0 { // the folder in which sshd locks up the part that has no rights; it refuses to start without it
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return fmt.Errorf("start sshd: %w", err)
		}
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "sshd_config")
	if err := s.keys.writeConfig(config, sshd, port); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "sshd.log")) // a file, since sessions that go on would hold a pipe open
	if err != nil {
		return fmt.Errorf("start sshd: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command("sh", "-c", superviseScript, sshd, config)
	cmd.Env = gitEnv()
	cmd.Stderr = log
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start sshd: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start sshd: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // it ends by a signal, always
	}()

	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := awaitFile(ctx, pidFile(dir), exited); err != nil {
		_ = lifeline.Close()
		<-exited
		logged, _ := os.ReadFile(log.Name())
		return fmt.Errorf("start sshd: %w: %s", err, bytes.TrimSpace(logged))
	}
	stopWatch := context.AfterFunc(ctx, func() { _ = s.Close() })
	s.stop = func() error {
		stopWatch()
		err := lifeline.Close()
		<-exited
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

// superviseScript runs sshd until its own standard input ends, so that the daemon goes also when the process that
// started it is killed.
const superviseScript = `exec 3<&0
"$0" -D -e -f "$1" 3<&- &
pid=$!
{ cat <&3; kill $pid; } >/dev/null 2>&1 &
wait $pid
`

func pidFile(dir string) string { return filepath.Join(dir, "sshd.pid") }

// awaitFile polls until sshd has written the file with its number, which it does when it listens: who answers on the port may be another one that was quicker. It
// gives up when the process ends or half a minute is over.
func awaitFile(ctx context.Context, name string, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return poll.Until(ctx, "it listens", func() error {
		select {
		case <-exited:
			return poll.Final(errors.New("it ended at once"))
		default:
		}
		_, err := os.Stat(name)
		return err
	})
}

func freePort() (int, error) {
	l, err := listenLoopback()
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// writeConfig writes a configuration that reads nothing of the machine's and lets one key run one command.
func (k *sshKeys) writeConfig(path, sshd string, port int) error {
	lines := []string{
		"Port " + strconv.Itoa(port),
		"ListenAddress 127.0.0.1",
		"PidFile " + pidFile(k.dir),
		"AuthorizedKeysFile " + k.authorized,
		"ForceCommand " + k.command,
		"StrictModes no",
		"UsePAM no",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"PermitRootLogin prohibit-password",
		"AllowTcpForwarding no",
		"X11Forwarding no",
		"PrintMotd no",
		"MaxStartups 500",
		"LogLevel ERROR",
		// The user's shell runs the command, and bash reads .bashrc when sshd starts it: that is the machine's, and may take longer than all else here.
		"SetEnv HOME=" + os.DevNull + ` "PATH=` + os.Getenv("PATH") + `"`,
	}
	for _, file := range k.hostKeyFiles {
		lines = append(lines, "HostKey "+file)
		if k.authority != nil {
			lines = append(lines, "HostCertificate "+certificateOf(file))
		}
	}
	write := func(lines []string) error {
		return os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	}
	// OpenSSH 9.8 and later lock an address out after a few refused keys, which tests do on purpose.
	if err := write(append(lines, "PerSourcePenalties no")); err != nil {
		return fmt.Errorf("write sshd_config: %w", err)
	}
	if exec.Command(sshd, "-t", "-f", path).Run() == nil {
		return nil
	}
	if err := write(lines); err != nil {
		return fmt.Errorf("write sshd_config: %w", err)
	}
	if out, err := exec.Command(sshd, "-t", "-f", path).CombinedOutput(); err != nil {
		return fmt.Errorf("check sshd_config: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
