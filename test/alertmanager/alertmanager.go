// Package alertmanager starts a real Alertmanager, from Debian's package, and notes what it tells its receiver.
package alertmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/child"
)

// Notification is what Alertmanager sends to a webhook.
type Notification struct {
	Status string  `json:"status"`
	Alerts []Alert `json:"alerts"`
}

// Alert of a notification, or of the API.
type Alert struct {
	Status       json.RawMessage   `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

// Alertmanager is a running process.
type Alertmanager struct {
	// URL of it.
	URL string

	mu   sync.Mutex
	told []Notification
}

// config groups by Mooring and tells at once.
const config = `
route: {receiver: hook, group_by: [alertname, mooring_namespace, mooring], group_wait: 100ms, group_interval: 500ms, repeat_interval: 1h}
receivers:
- {name: hook, webhook_configs: [{url: %q, send_resolved: true}]}
`

// Start starts one, and returns once it is ready. It ends with the test.
func Start(t testing.TB) *Alertmanager {
	t.Helper()
	a := &Alertmanager{}
	hook := httptest.NewServer(http.HandlerFunc(a.hear))
	t.Cleanup(hook.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, fmt.Appendf(nil, config, hook.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	process, address, err := child.Serve(t.Context(), "alertmanager", dir, "http://%s/-/ready", http.DefaultClient, func(address string) *exec.Cmd {
		return exec.Command("prometheus-alertmanager",
			"--config.file="+file, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--cluster.listen-address=")
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
		t.Fatalf("%v; Debian has it in the package prometheus-alertmanager, and test/setup installs that", err)
	}
	a.URL = "http://" + address
	return a
}

func (a *Alertmanager) hear(_ http.ResponseWriter, r *http.Request) {
	var n Notification
	if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
		n.Status = err.Error()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, n)
}

// Told are the notifications that Alertmanager sent until now.
func (a *Alertmanager) Told() []Notification {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.told)
}

// Alerts are those that it holds and that are not over.
func (a *Alertmanager) Alerts(t testing.TB) []Alert {
	t.Helper()
	var all []Alert
	if err := a.get(t.Context(), "/api/v2/alerts", &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func (a *Alertmanager) get(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+path, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, res.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(into)
}
