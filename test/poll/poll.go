// Package poll waits for what comes about by itself, in another process or goroutine: it asks until it is so, and gives up at a deadline.
package poll

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// The pauses between two questions: they grow, so that what is soon so is not waited for, and what takes long is not disturbed.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = 100 * time.Millisecond
)

// Until calls ask until it has no error, or a Final one. When ctx ends before, the last answer is in the error.
func Until(ctx context.Context, what string, ask func() error) error {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := ask()
		if err == nil {
			return nil
		}
		if _, final := errors.AsType[*finalError](err); final {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// Final is an answer that waiting cannot change.
func Final(err error) error { return &finalError{err} }

type finalError struct{ error }

// Unwrap gives the cause.
func (e *finalError) Unwrap() error { return e.error }

// Await is Until in a test, or in what cleans up behind it. The test fails when it is not so in time.
func Await(t testing.TB, limit time.Duration, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(t.Context()), limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	if err := Until(ctx, what, ask); err != nil {
		t.Fatal(err)
	}
}

// AwaitTrue is Await for what has no more to say than whether it is so.
func AwaitTrue(t testing.TB, limit time.Duration, what string, so func() bool) {
	t.Helper()
	Await(t, limit, what, func() error {
		if !so() {
			return errNotSo
		}
		return nil
	})
}

var errNotSo = errors.New("it is not so")
