// Package gitserver runs real Git servers on loopback for tests, benchmarks and the demo.
//
// HTTP serves bare repositories with Git's own "git http-backend" behind net/http/cgi, with optional basic or bearer
// authentication, optional TLS under a private authority made on the fly, and faults on demand (see Fault). SSH starts
// a real OpenSSH sshd as the current user on a free port, with the host keys that the caller asks for. Repo makes and
// changes bare repositories with the git command.
//
// The functions that take a testing.TB stop what they started when the test ends and fail it on errors; those that
// begin with Start serve everybody else. Both need Debian's git package, SSH also openssh-server. Nothing listens
// anywhere but on 127.0.0.1.
package gitserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Server is a running Git server. Its methods may be called from any goroutine.
type Server struct {
	// Root is the folder whose bare repositories are served.
	Root string

	scheme string // http, https or ssh
	addr   string // host:port
	user   string // ssh only
	prefix string // the URL path under which Root is seen

	tls  *authority
	keys *sshKeys

	counts counter
	faults faults
	stop   func() error
	once   sync.Once
	err    error
}

// Counts says how often a repository was asked for.
type Counts struct {
	// InfoRefs counts the listings of refs: GET /info/refs over HTTP, sessions over SSH.
	InfoRefs int
	// UploadPack counts the requests for objects: POST /git-upload-pack over HTTP, packs that were made over SSH.
	UploadPack int
}

// Addr is the host and port that the server listens on.
func (s *Server) Addr() string {
	return s.addr
}

// RepoURL is the URL of a repository by its folder's name below Root.
func (s *Server) RepoURL(name string) string {
	host := s.addr
	if s.user != "" {
		host = s.user + "@" + s.addr
	}
	return s.scheme + "://" + host + s.prefix + "/" + name
}

// Counts of the requests for one repository, named as in RepoURL, or of all with an empty name.
func (s *Server) Counts(name string) Counts {
	if s.keys != nil {
		return s.keys.counts(name)
	}
	return s.counts.get(name)
}

// CA is the certificate of the authority behind a TLS server, PEM; nil for others.
func (s *Server) CA() []byte {
	if s.tls == nil {
		return nil
	}
	return s.tls.caPEM
}

// ClientCert is a certificate and key that a server with HTTPOptions.ClientCert accepts, PEM.
func (s *Server) ClientCert() (cert, key []byte, err error) {
	if s.tls == nil {
		return nil, nil, errors.New("make client certificate: the server has no TLS")
	}
	return s.tls.issue("client", nil)
}

// Close stops the server and waits until it is gone. Calls after the first do nothing.
func (s *Server) Close() error {
	s.once.Do(func() { s.err = s.stop() })
	return s.err
}

type counter struct {
	mu    sync.Mutex
	total map[string]Counts
}

func (c *counter) add(repo string, d Counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total == nil {
		c.total = map[string]Counts{}
	}
	for _, k := range []string{"", repo} {
		v := c.total[k]
		c.total[k] = Counts{InfoRefs: v.InfoRefs + d.InfoRefs, UploadPack: v.UploadPack + d.UploadPack}
	}
}

func (c *counter) get(repo string) Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total[repo]
}

// execPath finds Git's own programs, such as git-http-backend, and says which package has them.
func execPath() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("find git: %w (install it: apt-get install git)", err)
	}
	return filepath.Clean(strings.TrimSpace(string(out))), nil
}

// gitEnv is the environment of every git process: no configuration of the machine, no questions, any owner.
func gitEnv(config ...[2]string) []string {
	config = append(config, [2]string{"safe.directory", "*"})
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"LC_ALL=C",
		fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(config)),
	}
	for i, kv := range config {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, kv[1]))
	}
	return env
}

func listenLoopback() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	return l, nil
}
