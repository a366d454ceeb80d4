package repos

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// flights lets callers that want the same thing at the same time share one piece of work. The work has a deadline of
// its own and goes on while anybody waits for it; a caller whose context ends leaves at once, and the last one to
// leave ends the work.
type flights[K comparable, T any] struct {
	mu  sync.Mutex
	now map[K]*flight[T]
}

type flight[T any] struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int
	value   T
	err     error
}

// do joins the work for key or begins it. work may call sealed when whoever comes from now on needs work of their own.
func (f *flights[K, T]) do(ctx context.Context, key K, timeout time.Duration, work func(ctx context.Context, sealed func()) (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		return *new(T), err
	}
	f.mu.Lock()
	c, ok := f.now[key]
	if !ok {
		flying, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		c = &flight[T]{done: make(chan struct{}), cancel: cancel}
		if f.now == nil {
			f.now = map[K]*flight[T]{}
		}
		f.now[key] = c
		go f.run(flying, key, c, work)
	}
	c.waiters++
	f.mu.Unlock()

	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.waiters--; c.waiters == 0 {
		c.cancel()
		f.forget(key, c)
	}
	return *new(T), ctx.Err()
}

func (f *flights[K, T]) run(ctx context.Context, key K, c *flight[T], work func(context.Context, func()) (T, error)) {
	sealed := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.forget(key, c)
	}
	defer close(c.done)
	defer sealed()
	defer c.cancel()
	defer func() {
		if p := recover(); p != nil { // what a server sends must not bring the process down
			c.err = failf(KindProtocol, "this is a fault of mooring: please report it", "panic: %v", p)
		}
	}()
	c.value, c.err = work(ctx, sealed)
}

// forget lets nobody join c any more; the caller holds the lock.
func (f *flights[K, T]) forget(key K, c *flight[T]) {
	if f.now[key] == c {
		delete(f.now, key)
	}
}

// gate lets one at a time through. Unlike a mutex it can be given up waiting for.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

// enter waits for the gate and returns what leaves it.
func (g gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g <- struct{}{}:
		return func() { <-g }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another fetch of the same repository: %w", ctx.Err())
	}
}
