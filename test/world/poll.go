package world

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Poll calls ask until it has no error, or a Final one. When ctx ends before, the last answer is in the error.
func Poll(ctx context.Context, what string, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		var final *finalError
		if errors.As(err, &final) {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Final is an answer that waiting cannot change.
func Final(err error) error { return &finalError{err} }

type finalError struct{ error }

// Unwrap gives the cause.
func (e *finalError) Unwrap() error { return e.error }
