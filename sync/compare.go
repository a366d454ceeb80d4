package sync

import (
	"context"
	"fmt"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Comparison is what one revision of a Mooring's path makes out of another.
type Comparison struct {
	From, To repos.Revision
	// Plan holds what differs. It is for reading: nothing that lives was looked at, and nothing was checked.
	Plan *apply.Plan
}

// Compare renders two revisions of a Mooring's path, with its spec as it is now, and says what differs. The zero revision is the newest one in Git. Of the cluster nothing is
// read but the Secret with the credentials for Git.
func (s *Syncer) Compare(ctx context.Context, m *v1alpha1.Mooring, from, to repos.Revision) (c Comparison, err error) {
	p := s.begin(m)
	p.previewing = true
	p.slots.take()
	defer p.slots.give()
	ctx, cancel := context.WithTimeout(ctx, p.mooring.Spec.Timeout.Duration)
	defer cancel()
	defer func() {
		if out := p.end(recover()); err == nil {
			err = out.Err
		}
	}()

	remote, err := p.remote(ctx)
	if err != nil {
		return c, err
	}
	var sides [2]*target
	for i, rev := range []repos.Revision{from, to} {
		if rev.IsZero() {
			if rev, err = p.resolve(ctx, remote); err != nil {
				return c, err
			}
		}
		if sides[i], err = p.render(ctx, remote, rev); err != nil {
			return c, fmt.Errorf("render %s: %w", rev, err)
		}
	}
	return Comparison{From: sides[0].rev, To: sides[1].rev, Plan: apply.Compare(sides[0].set, sides[1].set)}, nil
}
