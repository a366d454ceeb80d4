package sync

import (
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
)

// snapshot is a revision with what is below folders. All that can be known to be needed is fetched here, and not when it is read.
func (p *pass) snapshot(ctx context.Context, remote repos.Remote, rev repos.Revision, folders ...string) (*repos.Snapshot, error) {
	var snapshot *repos.Snapshot
	err := p.fetching(func() (err error) {
		if snapshot, err = p.source.Snapshot(ctx, remote, rev); err != nil {
			return err
		}
		return snapshot.Want(ctx, folders...)
	})
	return snapshot, err
}

// errAbsent ends a look at files when one of them is not here yet.
var errAbsent = errors.New("a file has to be fetched first")

// read lets look see the files of a commit. When one is not here yet, look comes back, and is called anew once the file was fetched: so nothing that others
// could use is held while Git takes its time, be it the slot or a share of kustomize. A failure to fetch is one of the fetch, all others are of the given stage.
func (p *pass) read(ctx context.Context, stage report.Stage, snapshot *repos.Snapshot, look func(files fs.FS) error) error {
	for {
		var absent atomic.Pointer[func() error] // a build that was left alone may still read
		err := look(snapshot.Read(ctx, func(fetch func() error) error {
			absent.Store(&fetch)
			return errAbsent
		}))
		if err == nil {
			return nil
		}
		fetch := absent.Load()
		if fetch == nil || ctx.Err() != nil {
			return &StageError{Stage: stage, Err: err}
		}
		began := time.Now()
		err = p.fetching(*fetch)
		p.out.Took[stage] -= time.Since(began) // whoever measures the stage counts it in
		if err != nil {
			return err
		}
	}
}

// fetching waits for Git, without a slot.
func (p *pass) fetching(fetch func() error) error {
	before := p.stage
	done := p.took(report.StageFetch)
	err := func() error {
		p.slots.give()
		defer p.slots.take()
		return fetch()
	}()
	done()
	if err != nil {
		return &StageError{Stage: report.StageFetch, Err: err}
	}
	p.stage = before
	return nil
}
