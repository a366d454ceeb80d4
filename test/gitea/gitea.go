// Package gitea runs a real forge: Gitea, built from its Go module (the nested module in test/gitea/server). It listens with TLS on a free port of loopback, under
// a private authority, since a Mooring sends no secret over plain HTTP. Its front end is not built; the API and Git over HTTPS need none.
//
// [Start] starts one for a test, which takes about three seconds and 200 MB. A [Server] makes [Account]s, an account makes a [Repository], and the rest goes through
// the official client, Account.Client.
package gitea

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/mooring-dev/mooring/test/child"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// Server is a running Gitea.
type Server struct {
	// URL of it, https, without a slash at its end.
	URL string
	// CA of its certificate, PEM: what a Secret has as ca.crt.
	CA []byte
	// Version of it.
	Version string

	dir     string
	process *child.Process
	client  *http.Client
	admin   *Account
}

// readyTimeout is generous: a busy machine starts it slowly.
const readyTimeout = 2 * time.Minute

// adminName is the account that makes the others.
const adminName = "keeper"

// config of a forge that is alone, keeps nothing, and sends nothing anywhere. What costs time and is not looked at by tests is off.
var config = template.Must(template.New("app.ini").Parse(`APP_NAME = forge
RUN_USER = {{.User}}
RUN_MODE = prod
WORK_PATH = {{.Dir}}
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true

[server]
PROTOCOL = https
CERT_FILE = {{.Dir}}/cert.pem
KEY_FILE = {{.Dir}}/key.pem
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {{.Port}}
ROOT_URL = {{.URL}}/
LOCAL_ROOT_URL = {{.URL}}/
STATIC_ROOT_PATH = {{.Static}}
APP_DATA_PATH = {{.Dir}}/data
OFFLINE_MODE = true
DISABLE_SSH = true
LFS_START_SERVER = false
GRACEFUL_HAMMER_TIME = 2s

[database]
DB_TYPE = sqlite3
PATH = {{.Dir}}/gitea.db
LOG_SQL = false

[repository]
ROOT = {{.Dir}}/repositories
DEFAULT_BRANCH = main

[security]
INSTALL_LOCK = true
SECRET_KEY = of-a-forge-that-lives-for-one-test
PASSWORD_HASH_ALGO = pbkdf2$1$50

[service]
DISABLE_REGISTRATION = true

[log]
MODE = console
LEVEL = Warn

[queue]
TYPE = channel

[indexer]
ISSUE_INDEXER_TYPE = db

[session]
PROVIDER = memory

[cron]
ENABLED = false

[actions]
ENABLED = false

[packages]
ENABLED = false

[api]
; so few, so that whoever lists turns pages
MAX_RESPONSE_ITEMS = 3
DEFAULT_PAGING_NUM = 3

[webhook]
ALLOWED_HOST_LIST = loopback
`))

// Start starts one and returns once it answers. It ends with the test, and nothing of it stays behind.
func Start(t testing.TB) *Server {
	t.Helper()
	built, err := Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Launch(t.Context(), built, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.process.LogTail(30))
		}
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Launch starts one in an empty folder and returns once it answers.
func Launch(ctx context.Context, built Binary, dir string) (*Server, error) {
	s := &Server{Version: built.Version, dir: dir}
	if err := s.configure(built); err != nil {
		return nil, fmt.Errorf("configure Gitea: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %s", readyTimeout))
	defer cancel()
	if _, err := s.run(ctx, built, "migrate"); err != nil {
		return nil, err
	}
	password := secret()
	if _, err := s.run(ctx, built, "admin", "user", "create", "--admin", "--username", adminName, "--password", password,
		"--email", adminName+"@example.com", "--must-change-password=false"); err != nil {
		return nil, err
	}
	process, err := child.Start("gitea", filepath.Join(dir, "log"), s.command(context.WithoutCancel(ctx), built, "web"))
	if err != nil {
		return nil, err
	}
	s.process = process
	if err := s.ready(ctx); err != nil {
		process.Kill()
		return nil, fmt.Errorf("start Gitea: %w\n%s", err, process.LogTail(30))
	}
	s.admin = &Account{Name: adminName, Password: password, server: s}
	if s.admin.Token, err = s.admin.token(ctx, "all"); err != nil {
		process.Kill()
		return nil, err
	}
	s.admin.Client, err = s.Client(s.admin.Token)
	return s, err
}

// Stop ends it. Its folder stays.
func (s *Server) Stop(ctx context.Context) error { return s.process.Stop(ctx) }

// PID of the process.
func (s *Server) PID() int { return s.process.PID() }

func (s *Server) configure(built Binary) error {
	ca, cert, key, err := gitserver.Certificate("gitea")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	s.CA = ca
	s.client = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	s.URL = "https://127.0.0.1:" + port
	me, err := user.Current()
	if err != nil {
		return err
	}
	var ini strings.Builder
	if err := config.Execute(&ini, map[string]string{"User": me.Username, "Dir": s.dir, "Port": port, "URL": s.URL, "Static": built.Static}); err != nil {
		return err
	}
	for name, content := range map[string]string{"app.ini": ini.String(), "cert.pem": string(cert), "key.pem": string(key), "ca.pem": string(ca)} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// command of Gitea, with no configuration but ours.
func (s *Server) command(ctx context.Context, built Binary, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, built.Path, append(args, "--config", filepath.Join(s.dir, "app.ini"))...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "GITEA_WORK_DIR=" + s.dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8"}
	return cmd
}

func (s *Server) run(ctx context.Context, built Binary, args ...string) (string, error) {
	out, err := s.command(ctx, built, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gitea %s: %w\n%s", args[0], err, out)
	}
	return string(out), nil
}

// ready waits until the API answers.
func (s *Server) ready(ctx context.Context) error {
	return s.process.Await(ctx, "it answers", func() error { return s.answers(ctx) })
}

func (s *Server) answers(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/version", nil)
	if err != nil {
		return err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /api/v1/version: %s", res.Status)
	}
	return nil
}
