// Package prometheus starts a real Prometheus, from Debian's package, that reads what a test says four times a second.
package prometheus

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/child"
	"github.com/mooring-dev/mooring/test/poll"
)

// Prometheus is a running process.
type Prometheus struct {
	// URL of it.
	URL string
	// Target that it scrapes; the value of the label instance.
	Target string
	// CA in PEM of its certificate; empty without TLS.
	CA []byte

	t       testing.TB
	process *child.Process
}

// Option of a Prometheus.
type Option func(*settings)

type settings struct {
	user, hash string
	flags      []string
}

// User lets Prometheus speak TLS and want a name and a password, whose bcrypt hash is given.
func User(name, hash string) Option {
	return func(s *settings) { s.user, s.hash = name, hash }
}

// Flags of the command.
func Flags(flags ...string) Option {
	return func(s *settings) { s.flags = append(s.flags, flags...) }
}

// config reads one target, with no labels of its own but job.
const config = `
global: {scrape_interval: 250ms, scrape_timeout: 250ms}
scrape_configs:
- {job_name: shop, static_configs: [{targets: [%q]}]}
`

// Start starts one that scrapes /metrics of the target, a host:port; what is there, the handler of an httptest.Server says. It returns once it is ready, and ends with the
// test.
func Start(t testing.TB, target string, options ...Option) *Prometheus {
	t.Helper()
	var s settings
	for _, o := range options {
		o(&s)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "prometheus.yml"), fmt.Appendf(nil, config, target))
	write(t, filepath.Join(dir, "web.yml"), nil)
	p := &Prometheus{t: t, Target: target}
	scheme, client := "http", http.DefaultClient
	if s.user != "" {
		scheme, client = "https", p.secure(dir, s)
	}
	process, address, err := child.Serve(t.Context(), "prometheus", dir, scheme+"://%s/-/ready", client, func(address string) *exec.Cmd {
		return exec.Command("prometheus", append([]string{
			"--config.file=" + filepath.Join(dir, "prometheus.yml"), "--web.config.file=" + filepath.Join(dir, "web.yml"),
			"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
		}, s.flags...)...)
	})
	if process != nil {
		t.Cleanup(func() {
			process.Kill()
			if t.Failed() {
				t.Log(process.LogTail(30))
			}
		})
	}
	if err != nil {
		t.Fatalf("%v; Debian has it in the package prometheus, and test/setup installs that", err)
	}
	p.URL, p.process = scheme+"://"+address, process
	return p
}

// secure writes what Prometheus needs for TLS, and makes a client that trusts it. The certificate is the one that httptest has, for 127.0.0.1.
func (p *Prometheus) secure(dir string, s settings) *http.Client {
	p.t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		p.t.Fatal(err)
	}
	p.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	write(p.t, filepath.Join(dir, "tls.crt"), p.CA)
	write(p.t, filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
	write(p.t, filepath.Join(dir, "web.yml"),
		fmt.Appendf(nil, "tls_server_config: {cert_file: tls.crt, key_file: tls.key}\nbasic_auth_users: {%s: %q}\n", s.user, s.hash))
	return server.Client()
}

func write(t testing.TB, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Await returns once the query gives something. It is for a Prometheus without a User.
func (p *Prometheus) Await(query string) {
	p.t.Helper()
	poll.Await(p.t, time.Minute, "Prometheus has something for "+query, func() error { return p.has(query) })
}

func (p *Prometheus) has(query string) error {
	res, err := http.Get(p.URL + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct {
		Error string
		Data  struct{ Result []any }
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return err
	}
	if len(answer.Data.Result) == 0 {
		return errors.New("no data " + answer.Error)
	}
	return nil
}

// Kill ends it at once.
func (p *Prometheus) Kill() { p.process.Kill() }
