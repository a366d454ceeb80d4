package sync_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	gosync "sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// gated lets every run of the world wait at a gate until its context ends, or until it is opened.
type gated struct {
	*world
	open       chan struct{}
	waiting    atomic.Int32
	beforeGate func()
	git        gosync.Mutex // held by who asks Git, and by who changes it while a pass is under way
}

// Resolve is asked by a pass and, while that waits, by its watch.
func (g *gated) Resolve(ctx context.Context, remote repos.Remote, ref repos.Ref) (repos.Revision, error) {
	g.git.Lock()
	defer g.git.Unlock()
	return g.world.Resolve(ctx, remote, ref)
}

// after changes Git in the middle of a pass.
func (g *gated) after(d time.Duration, change func()) {
	time.AfterFunc(d, func() {
		g.git.Lock()
		defer g.git.Unlock()
		change()
	})
}

func newGated() *gated {
	g := &gated{world: newWorld(), open: make(chan struct{})}
	g.Syncer = g.restarted()
	return g
}

func (g *gated) restarted() *sync.Syncer {
	return sync.NewWith(sync.Stages{Source: g, Renderer: g, Checker: g, Surveyor: g, Applier: g, Reader: g, Slots: 1})
}

func (g *gated) Run(ctx context.Context, p *apply.Plan) (*apply.Result, error) {
	if g.beforeGate != nil {
		g.beforeGate()
	}
	err := p.Unit.AtGate(ctx, apply.GatePropagated, func(ctx context.Context) error {
		g.waiting.Add(1)
		defer g.waiting.Add(-1)
		select {
		case <-g.open:
			return nil
		case <-ctx.Done():
			return errors.New("no proxy has answered")
		}
	})
	if err != nil {
		return &apply.Result{Objects: 1}, fmt.Errorf("run mesh/prod: %w", err)
	}
	return g.world.Run(ctx, p)
}

// A commit that arrives while the run of the one before waits at a gate ends the wait: not at the timeout, at the next question to Git.
func TestNewerCommitEndsTheWaitAtAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.m.Spec.Timeout.Duration, g.m.Spec.Interval.Duration = 10*time.Minute, time.Minute
		g.after(90*time.Second, func() { g.head = rev("b") })
		began := time.Now()
		out := g.pass(t)
		want(t, out, v1alpha1.ReasonProgressing)
		if took := time.Since(began); took > 3*time.Minute {
			t.Errorf("the wait took %s", took)
		}
		if gaveWay := out.GaveWay(); gaveWay == nil || gaveWay.Newer != rev("b") {
			t.Fatalf("gave way to %v", gaveWay)
		}
		if message := report.Message(out); !strings.Contains(message, rev("a").String()+" is applied in part") || !strings.Contains(message, rev("b").String()+" is newer") {
			t.Errorf("message: %s", message)
		}
		if pause := g.Next(g.m, out); pause > time.Second {
			t.Errorf("the next pass comes after %s", pause)
		}
		close(g.open)
		out = g.pass(t)
		want(t, out, v1alpha1.ReasonApplied)
		if out.Applied != rev("b") || g.waiting.Load() != 0 {
			t.Errorf("applied %s, %d still waiting", out.Applied, g.waiting.Load())
		}
	})
}

// So does a person who changes the Mooring or asks for a pass, and a server that does not answer does not.
func TestPersonEndsTheWaitAtAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.m.Spec.Timeout.Duration, g.m.Spec.Interval.Duration = 10*time.Minute, time.Minute
		g.after(time.Second, func() { g.resolveErr = errors.New("no route to host") })
		time.AfterFunc(5*time.Minute, func() { g.Interrupt(g.m) })
		began := time.Now()
		out := g.pass(t)
		want(t, out, v1alpha1.ReasonProgressing)
		if took := time.Since(began); took != 5*time.Minute || out.GaveWay() == nil {
			t.Errorf("the wait took %s; gave way: %v", took, out.GaveWay())
		}
		g.Interrupt(g.m) // nobody waits any more
		g.resolveErr = nil
	})
}

// cached is the Mooring as the agent's cache has it.
type cached struct {
	client.Client
	m *v1alpha1.Mooring
}

func (c *cached) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.m == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "moorings"}, "prod")
	}
	c.m.DeepCopyInto(into.(*v1alpha1.Mooring))
	return nil
}

// What a person asks for before the pass is at its gate counts as well: nobody could be woken then.
func TestPersonIsHeardBeforeTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.m.Spec.Timeout.Duration, g.m.Spec.Interval.Duration = 10*time.Minute, time.Minute
		now := &cached{m: g.m.DeepCopy()}
		g.Syncer = sync.NewWith(sync.Stages{Source: g, Renderer: g, Checker: g, Surveyor: g, Applier: g, Reader: g, Client: now})
		g.changes = 1
		began := time.Now()
		after := func(change func(*v1alpha1.Mooring), gone bool) {
			t.Helper()
			now.m = g.m.DeepCopy()
			if change(now.m); gone {
				now.m = nil
			}
			out := g.pass(t)
			want(t, out, v1alpha1.ReasonProgressing)
			if out.GaveWay() == nil || !strings.Contains(report.Message(out), "waits for the next pass") {
				t.Errorf("message: %s", report.Message(out))
			}
		}
		after(func(m *v1alpha1.Mooring) { m.Generation++ }, false)
		after(func(m *v1alpha1.Mooring) { m.UID = "another" }, false)
		after(func(m *v1alpha1.Mooring) { m.Annotations = map[string]string{v1alpha1.ReconcileAnnotation: "now"} }, false)
		after(func(*v1alpha1.Mooring) {}, true)
		if g.runs != 0 || time.Since(began) != 0 {
			t.Errorf("%d runs, %s", g.runs, time.Since(began))
		}

		// At the gate of a run that began before.
		now.m = g.m.DeepCopy()
		g.beforeGate = func() { now.m.Generation++ }
		out := g.pass(t)
		want(t, out, v1alpha1.ReasonProgressing)
		if out.Result == nil || out.GaveWay() == nil || time.Since(began) != 0 {
			t.Errorf("gave way: %v after %s", out.GaveWay(), time.Since(began))
		}
	})
}

// What nobody interrupts ends with the pass's own timeout, and is a failure.
func TestGateEndsWithThePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		g.m.Spec.Timeout.Duration, g.m.Spec.Interval.Duration = 2*time.Minute, time.Minute
		out := g.pass(t)
		want(t, out, v1alpha1.ReasonApplyFailed)
		if out.GaveWay() != nil || !strings.Contains(report.Message(out), "no proxy has answered") {
			t.Errorf("message: %s", report.Message(out))
		}
	})
}

// One pass works at a time here. Those that wait at a gate leave the place to others.
func TestWaitingPassesLeaveTheirPlaceToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGated()
		done := make(chan report.Outcome)
		for i := range 100 {
			m := g.m.DeepCopy()
			m.Name = fmt.Sprintf("prod-%d", i)
			go func() { done <- g.Once(t.Context(), m) }()
			synctest.Wait()
		}
		if g.waiting.Load() != 100 {
			t.Fatalf("%d wait at the gate, want 100", g.waiting.Load())
		}
		close(g.open)
		for range 100 {
			want(t, <-done, v1alpha1.ReasonApplied)
		}
	})
}

// The time that a commit has to become healthy begins when it is applied, not when the one before was.
func TestWaitForHealthBeginsAnewWithACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.m.Spec.Wait = true
		w.m.Spec.Timeout.Duration, w.m.Spec.Interval.Duration = 10*time.Minute, time.Minute
		w.unhealthy = []apply.Health{{Status: "InProgress", Message: "0 of 1 replicas"}}
		want(t, w.pass(t), v1alpha1.ReasonProgressing)
		time.Sleep(11 * time.Minute)
		want(t, w.pass(t), v1alpha1.ReasonHealthTimeout)
		w.head = rev("b")
		time.Sleep(2 * time.Minute)
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonProgressing)
		if out.Applied != rev("b") {
			t.Errorf("applied %s", out.Applied)
		}
		time.Sleep(9 * time.Minute)
		want(t, w.pass(t), v1alpha1.ReasonProgressing)
		time.Sleep(2 * time.Minute)
		want(t, w.pass(t), v1alpha1.ReasonHealthTimeout)
	})
}
