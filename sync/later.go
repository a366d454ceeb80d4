package sync

import (
	"errors"
	"fmt"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/forge"
)

// later is a forge that asked to be asked later: passes are made for other reasons as well, and none of them asks it sooner. It is for one place and one token, since the
// limits of forges are, so that a new token is tried at once. The zero value holds nobody.
type later struct {
	place forge.Place
	token string
	until time.Time
	err   error
}

// holds gives the refusal that still counts, in the words that it had; nil when the forge may be asked.
func (l *later) holds(o forge.Options, now time.Time) error {
	if l.err != nil && l.place == o.Place && l.token == o.Token && now.Before(l.until) {
		return l.err
	}
	return nil
}

// note keeps what came of asking. To an error by which the forge, or the Git server beside it, names an instant that is added: a full minute, so that the same answer reads the
// same, by whatever clock.
func (l *later) note(o forge.Options, err error, now time.Time) error {
	*l = later{}
	wait := asksToWait(err)
	if wait == 0 {
		return err
	}
	until := now.Add(wait + time.Minute - 1).Truncate(time.Minute)
	*l = later{place: o.Place, token: o.Token, until: until, err: fmt.Errorf("%w; it is asked again at %s, since it wants to be left alone until then", err, stamp(until))}
	return l.err
}

// asksToWait is for how long whoever said no asks us to stay away, at most an hour; mostly zero.
func asksToWait(err error) time.Duration {
	if e, ok := errors.AsType[*forge.Error](err); ok {
		return e.RetryAfter
	}
	if e, ok := errors.AsType[*repos.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
