package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mooring-dev/mooring/test/world"
)

// gatekeeper stands between an agent and the API server, counts the agent's writes in one namespace, and can shut the gate at
// any one of them: from then on no write passes and no answer to one comes back.
type gatekeeper struct {
	kubeconfig string

	mu        sync.Mutex
	namespace string // whose writes count
	writes    int
	shutAt    int // 0 never; the gate shuts at this write
	answered  bool
	shut      chan struct{} // closed when the gate is shut
	open      chan struct{} // closed when it opens again
}

// guard starts a gatekeeper in front of the world's API server.
func guard(t *testing.T, w *world.World) *gatekeeper {
	t.Helper()
	g := &gatekeeper{shut: make(chan struct{}), open: make(chan struct{})}
	proxy, err := w.StartProxy(g.serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.KillAgents()
		g.watch("", 0, false)
		proxy.Close()
	})
	g.kubeconfig = proxy.Kubeconfig
	return g
}

// watch counts the writes in a namespace from now on, and shuts the gate at the n-th: before it reaches the API server, or, when
// answered, after it was done and before the agent hears of it. 0 only counts.
func (g *gatekeeper) watch(namespace string, n int, answered bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.namespace, g.writes, g.shutAt, g.answered = namespace, 0, n, answered
	g.shut = make(chan struct{})
	close(g.open)
	g.open = make(chan struct{})
}

// count of the writes since watch.
func (g *gatekeeper) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.writes
}

// wasShut is closed when the gate is shut.
func (g *gatekeeper) wasShut() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

// serve lets a request through, or holds it until the agent is gone. What is held is dropped.
func (g *gatekeeper) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	hold, last, open := g.next(r)
	switch {
	case last: // the last write that is done, and nobody hears of it
		proxy.ServeHTTP(httptest.NewRecorder(), r)
	case hold:
		_, _ = io.Copy(io.Discard, r.Body) // before that, the server does not notice when the client is gone
	default:
		proxy.ServeHTTP(w, r)
		return
	}
	g.close()
	select {
	case <-r.Context().Done():
	case <-open:
	}
	panic(http.ErrAbortHandler)
}

// next says what becomes of a request: whether it is held before it reaches the API server, or done without an answer.
func (g *gatekeeper) next(r *http.Request) (hold, last bool, open <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Has("dryRun") ||
		!strings.Contains(r.URL.Path, "/namespaces/"+g.namespace+"/") || strings.Contains(r.URL.Path, "/events") {
		return false, false, g.open
	}
	g.writes++
	switch {
	case g.shutAt == 0 || g.writes < g.shutAt:
		return false, false, g.open
	case g.writes == g.shutAt && g.answered:
		return false, true, g.open
	}
	return true, false, g.open
}

func (g *gatekeeper) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-g.shut:
	default:
		close(g.shut)
	}
}
