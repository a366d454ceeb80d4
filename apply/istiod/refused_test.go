package istiod_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply/istiod"
)

// TestRefused asks istiods that do not answer strangers. A real one answers everybody on its own machine, so a server stands in for it.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		why  string
	}{
		"no token":                   {http.StatusUnauthorized, "--istiod-token-file"},
		"another namespace":          {http.StatusForbidden, "DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES"},
		"debugging is off":           {http.StatusNotFound, "ENABLE_DEBUG_ON_HTTP"},
		"a redirect, to any address": {http.StatusFound, "does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var stolen atomic.Bool
			elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Store(true) }))
			defer elsewhere.Close()
			var shown atomic.Pointer[string]
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				token := r.Header.Get("Authorization")
				shown.Store(&token)
				w.Header().Set("Location", elsewhere.URL)
				w.WriteHeader(c.code)
			}))
			defer server.Close()
			file := filepath.Join(t.TempDir(), "token")
			if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			m := asking(t, istiod.Options{URLs: []string{server.URL}, TokenFile: file})
			pauses(t, m, c.why)
			if *shown.Load() != "Bearer secret" || stolen.Load() {
				t.Errorf("the token was shown as %q, and elsewhere: %t", *shown.Load(), stolen.Load())
			}
			if strings.Contains(m.Unasked(), "secret") {
				t.Errorf("the reason holds the token: %s", m.Unasked())
			}
		})
	}
	t.Run("the token cannot be read", func(t *testing.T) {
		pauses(t, asking(t, istiod.Options{URLs: []string{"http://127.0.0.1:1"}, TokenFile: filepath.Join(t.TempDir(), "absent")}), "read the token", "no such file")
	})
	t.Run("nobody is to be asked", func(t *testing.T) {
		c, err := istiod.New(&rest.Config{Host: "http://127.0.0.1:1"}, istiod.Options{})
		if err != nil {
			t.Fatal(err)
		}
		pauses(t, c.Mesh(istiod.Policy{Ask: istiod.Never, Pause: 300 * time.Millisecond}), "spec.propagation.ask is Never")
	})
	t.Run("an address that is none", func(t *testing.T) {
		if _, err := istiod.New(&rest.Config{}, istiod.Options{URLs: []string{"istiod:15014"}}); err == nil || !strings.Contains(err.Error(), "http://host:port") {
			t.Errorf("the error is %v", err)
		}
	})
}

// asking is a Mesh that needs no API server.
func asking(t *testing.T, o istiod.Options) *istiod.Mesh {
	t.Helper()
	c, err := istiod.New(&rest.Config{Host: "http://127.0.0.1:1"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c.Mesh(istiod.Policy{Ask: istiod.Service, Pause: 300 * time.Millisecond})
}
