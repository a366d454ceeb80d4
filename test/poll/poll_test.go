package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mooring-dev/mooring/test/poll"
)

func TestUntil(t *testing.T) {
	wrong := errors.New("wrong")
	for name, c := range map[string]struct {
		answers []error // the last one again and again
		asked   int
		took    time.Duration
		want    error
	}{
		"at once": {[]error{nil}, 1, 0, nil},
		"soon":    {[]error{wrong, wrong, nil}, 3, 15 * time.Millisecond, nil},
		"never":   {[]error{wrong}, 14, time.Second, context.DeadlineExceeded},
		"final":   {[]error{wrong, poll.Final(wrong)}, 2, 5 * time.Millisecond, wrong},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began, asked := time.Now(), 0
				err := poll.Until(ctx, "all is well", func() error {
					asked++
					return c.answers[min(asked, len(c.answers))-1]
				})
				if took := time.Since(began); took != c.took || asked != c.asked || !errors.Is(err, c.want) || err != nil && !errors.Is(err, wrong) {
					t.Errorf("asked %d times in %s: %v", asked, took, err)
				}
			})
		})
	}
}
