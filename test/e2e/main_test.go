// Package e2e_test is the end-to-end suite: the real binary in a process of its own, a real kube-apiserver, Git's own
// http-backend and a real sshd.
//
// Most tests share one world with one agent, each in a namespace and a repository of its own, and run in parallel: they
// mostly wait. Tests that stop or kill agents, or that count every request, need a world where nobody else
// does anything; they take turns in a second one. A failing test prints the Mooring, its Events and the end of the agent's log.
package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-dev/mooring/test/world"
)

// patience is how long a test waits for what should be there within a second or two: two cores may be busy with much else.
const patience = time.Minute

// stage is what the tests share. It is the one mutable variable of the package, because the testing package hands nothing
// from TestMain to a test.
var stage struct {
	binaries func() (world.Binaries, error)
	shared   func() (*crowd, error)
	quiet    func() (*world.World, error)
	turn     sync.Mutex // held by the test whose turn it is in the quiet world
}

// crowd is the world that many tests share, and its agent.
type crowd struct {
	*world.World
	agent *world.Agent
}

func TestMain(m *testing.M) {
	flag.Parse()
	// Tests wait far more than they compute, so there may be more of them at a time than processors.
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	ctrl.SetLogger(logr.Discard()) // the client of the API server would complain that there is none
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	closers, code := run(ctx, m)
	for _, c := range closers {
		if err := c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	stop()
	os.Exit(code)
}

// run gives the worlds that were made, to be closed.
func run(ctx context.Context, m *testing.M) (made []*world.World, code int) {
	var mu sync.Mutex
	start := func() (*world.World, error) {
		binaries, err := stage.binaries()
		if err != nil {
			return nil, err
		}
		w, err := world.Start(ctx, binaries)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			made = append(made, w)
		}
		return w, err
	}
	stage.binaries = sync.OnceValues(func() (world.Binaries, error) { return world.Build(ctx, os.Stderr) })
	stage.quiet = sync.OnceValues(start)
	stage.shared = sync.OnceValues(func() (*crowd, error) {
		w, err := start()
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		agent, err := w.StartAgent(ctx, world.AgentOptions{})
		return &crowd{World: w, agent: agent}, err
	})
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	select {
	case code = <-ended:
	case <-ctx.Done(): // interrupted: what runs is closed all the same
		fmt.Fprintln(os.Stderr, errors.New("interrupted"))
		code = 1
	}
	mu.Lock()
	defer mu.Unlock()
	return made, code
}

// shared gives the world that many tests share, with its agent, and lets the test run beside others.
func shared(t *testing.T) *crowd {
	t.Helper()
	t.Parallel()
	c, err := stage.shared()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// quiet gives a world in which nothing happens but what this test does, with no agent. Others wait for their turn.
func quiet(t *testing.T) *world.World {
	t.Helper()
	t.Parallel()
	stage.turn.Lock()
	t.Cleanup(stage.turn.Unlock)
	w, err := stage.quiet()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.KillAgents) // after the Moorings of the test have been taken away, for which an agent is needed
	return w
}

// startAgent starts an agent. It is ended with its world or with the turn in the quiet one, if the test does not do so itself.
func startAgent(t *testing.T, w *world.World, o world.AgentOptions) *world.Agent {
	t.Helper()
	agent, err := w.StartAgent(within(t, patience), o)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

// within is a context for one wait.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, fmt.Errorf("not within %s", d))
	t.Cleanup(cancel)
	return ctx
}
