package crash_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/world"
)

// moment is when the agent is killed.
type moment string

const (
	before  moment = "before the request"   // it never reaches the API server
	after   moment = "after the request"    // it is done, and nobody hears of it
	between moment = "between two requests" // it is done and answered; the next may be on its way
	anytime moment = "at any time"          // by the clock
)

// deadline says when to kill: at a request, or by the clock.
type deadline struct {
	moment moment
	// nth request is the one; when writes is true only those count that change something.
	nth    int
	writes bool
	// pause after the nth request, or after the deadline was set.
	pause time.Duration
}

func (d deadline) String() string {
	if d.moment == anytime {
		return fmt.Sprintf("%s after %s", d.moment, d.pause.Round(time.Millisecond))
	}
	what := "any"
	if d.writes {
		what = "writes"
	}
	return fmt.Sprintf("%s %d (of %s)", d.moment, d.nth, what)
}

// killer stands between the agent and the API server, counts requests, and kills the agent at one of them. A request that the API server
// has been given is brought to its end also when the agent is gone: so after Quiet nothing of the agent's is under way any more.
type killer struct {
	kubeconfig string

	mu       sync.Mutex
	deadline *deadline // nil when nobody is to be killed
	kill     func()
	killed   chan struct{} // closed when the deadline has come
	count    [2]int        // all requests, and writes, since arm
	last     []string      // what the agent asked for last
	hit      string        // the request at which it was killed
	active   sync.WaitGroup
}

// guard starts a killer in front of the world's API server.
func guard(t testing.TB, w *world.World) *killer {
	t.Helper()
	k := &killer{killed: make(chan struct{})}
	proxy, err := w.StartProxy(k.serve)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.KillAgents()
		proxy.Close()
	})
	k.kubeconfig = proxy.Kubeconfig
	return k
}

// arm sets a deadline, and counts from now on. The returned channel is closed when kill was called.
func (k *killer) arm(d deadline, kill func()) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deadline, k.kill, k.killed = &d, kill, make(chan struct{})
	k.count, k.last, k.hit = [2]int{}, nil, ""
	if d.moment == anytime {
		mine := k.deadline
		time.AfterFunc(d.pause, func() { k.strike(mine, "nothing in particular") })
	}
	return k.killed
}

// disarm takes the deadline away, and says whether it has come before.
func (k *killer) disarm() (hit string, last []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.deadline = nil
	return k.hit, k.last
}

// quiet waits until no request is under way.
func (k *killer) quiet() { k.active.Wait() }

// strike kills, once for each deadline.
func (k *killer) strike(d *deadline, at string) {
	k.mu.Lock()
	kill, killed := k.kill, k.killed
	mine := k.deadline == d
	if mine {
		k.deadline, k.hit = nil, at
	}
	k.mu.Unlock()
	if mine {
		kill()
		close(killed)
	}
}

func (k *killer) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Has("watch") {
		proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // it died while it wrote
	}
	r = r.WithContext(context.WithoutCancel(r.Context()))
	r.Body = io.NopCloser(bytes.NewReader(body))
	k.active.Add(1)
	defer k.active.Done()
	line := describe(r)
	d := k.due(r, line)
	if d == nil {
		proxy.ServeHTTP(w, r)
		return
	}
	switch d.moment {
	case before:
		k.strike(d, line)
		panic(http.ErrAbortHandler)
	case after:
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		k.strike(d, line)
		panic(http.ErrAbortHandler)
	default:
		proxy.ServeHTTP(w, r)
		time.AfterFunc(d.pause, func() { k.strike(d, line) })
	}
}

// due counts a request, and gives the deadline when this is its request.
func (k *killer) due(r *http.Request, line string) *deadline {
	k.mu.Lock()
	defer k.mu.Unlock()
	write := r.Method != http.MethodGet && r.Method != http.MethodHead && !r.URL.Query().Has("dryRun") && !strings.Contains(r.URL.Path, "/events")
	k.count[0]++
	n := k.count[0]
	if write {
		k.count[1]++
	}
	if k.deadline == nil {
		return nil
	}
	k.last = append(k.last, line)
	if k.deadline.writes {
		n = k.count[1]
	}
	if n != k.deadline.nth || k.deadline.writes && !write {
		return nil
	}
	return k.deadline
}

// describe is "PATCH /api/v1/namespaces/…?dryRun".
func describe(r *http.Request) string {
	line := r.Method + " " + r.URL.Path
	if r.URL.Query().Has("dryRun") {
		line += " (dry run)"
	}
	return line
}
