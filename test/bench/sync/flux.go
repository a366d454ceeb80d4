package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mooring-dev/mooring/test/bench/flux"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/results"
)

// fluxInterval is the shortest that Flux's documentation advises. Between its passes it does not look, so this bounds how long an edit lives.
const fluxInterval = time.Minute

// buildFlux gives nil and the reason where it cannot be built; that is no failure.
func buildFlux(ctx context.Context, o options) (*flux.Binary, string, error) {
	if !o.flux {
		return nil, "Flux was left out of this run, with `-flux=false`.", nil
	}
	built, err := flux.Build(ctx, os.Stderr)
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench-sync: Flux is left out:", err)
		return nil, "Flux's kustomize-controller is missing here, because it could not be built on this machine; `make bench-sync` has printed why.", nil
	}
	return &built, "", nil
}

// peer is Flux's part of a run. It reconciles one folder of many objects and then as many small ones as there were Moorings.
type peer struct {
	*bench
	controller *flux.Controller
	source     *flux.Source
	large      flux.Kustomization
	files      map[string]string
	revision   string
}

// besideFlux measures of Flux what was measured of Mooring, when the agent is gone. A fault of Flux's is told beside the table; what was measured before
// stays.
func (b *bench) besideFlux(ctx context.Context) error {
	if b.flux == nil {
		return nil
	}
	if err := b.agent.Stop(); err != nil {
		return err
	}
	p := &peer{bench: b}
	err := p.begin(ctx)
	for _, measure := range []func(context.Context) error{p.firstApply, p.unchanged, p.oneChanged, p.edited, p.many, p.atRest, p.restarted} {
		if err == nil {
			err = measure(ctx)
		}
	}
	err = errors.Join(err, p.end())
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.fluxNote = fmt.Sprintf("Flux runs alone after Mooring's agent has ended, with `%s`, its temporary files in memory, and no source-controller: its artifacts come from a file server on this machine, and "+
		"its times begin when one is announced. Intervals are the same as Mooring's, but for the edits: Flux sees them in its next pass, and %s is the shortest interval that it advises.", flux.Settings, fluxInterval)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-sync: Flux:", err)
		b.fluxNote += " What is missing in its column could not be measured; `make bench-sync` has printed why."
	}
	return nil
}

// begin starts the controller with a source that has nothing yet.
func (p *peer) begin(ctx context.Context) error {
	p.files = folder(fluxSpace, fluxSpace, "app", p.options.objects)
	for i := range p.moorings {
		maps.Copy(p.files, folder(nameOf("team", i), fluxSpaceOf(i), nameOf("team", i), perMooring))
	}
	if err := p.namespace(ctx, fluxSpace); err != nil {
		return err
	}
	for i := 0; i < p.moorings; i += moorPerSpace {
		if err := p.namespace(ctx, fluxSpaceOf(i)); err != nil {
			return err
		}
	}
	if err := p.flux.Install(ctx, p.World); err != nil {
		return err
	}
	var err error
	if p.source, err = flux.NewSource(ctx, p.Client()); err != nil {
		return err
	}
	p.controller, err = p.flux.Start(ctx, p.World)
	return err
}

func fluxSpaceOf(i int) string { return nameOf("bench-flux-team", i/moorPerSpace) }

func (p *peer) end() error {
	var errs []error
	if p.controller != nil {
		errs = append(errs, p.controller.Stop())
	}
	if p.source != nil {
		errs = append(errs, p.source.Close())
	}
	return errors.Join(errs...)
}

// found fills Flux's cell of a line.
func (p *peer) found(id, format string, args ...any) {
	for i := range p.rows {
		if p.rows[i].id == id {
			p.rows[i].flux = fmt.Sprintf(format, args...)
			fmt.Fprintf(os.Stderr, "Flux: %s: %s\n", p.rows[i].what, p.rows[i].flux)
		}
	}
}

// publish announces what the files are now.
func (p *peer) publish(ctx context.Context) (at time.Time, err error) {
	p.revision, at, err = p.source.Publish(ctx, p.files)
	return at, err
}

// applied waits for the newest revision.
func (p *peer) applied(ctx context.Context, k flux.Kustomization) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return k.Applied(ctx, p.revision)
}

func (p *peer) firstApply(ctx context.Context) (err error) {
	if p.large, err = flux.NewKustomization(ctx, p.Client(), "large", fluxSpace, time.Hour); err != nil {
		return err
	}
	if err := p.large.WithoutArtifact(ctx); err != nil {
		return err
	}
	at, err := p.publish(ctx)
	if err != nil {
		return err
	}
	if err := p.applied(ctx, p.large); err != nil {
		return err
	}
	p.found(firstRow, "%s from the artifact to Ready", results.Duration(time.Since(at)))
	return nil
}

// unchanged takes the time of its own metric, as it is taken of Mooring's.
func (p *peer) unchanged(ctx context.Context) error {
	const rounds = 10
	passes, took, err := p.controller.Passes(ctx, p.large.Labels()...)
	if err != nil {
		return err
	}
	asked, err := p.asked(ctx)
	if err != nil {
		return err
	}
	for range rounds {
		if err := p.sync(ctx); err != nil {
			return err
		}
	}
	now, err := p.asked(ctx)
	if err != nil {
		return err
	}
	n, all, err := p.controller.Passes(ctx, p.large.Labels()...)
	if err != nil {
		return err
	}
	p.found(unchangedRow, "%s; requests about objects in %.0f passes: %d", results.Duration(seconds((all-took)/(n-passes))), n-passes, aboutObjects(now.Since(asked)).Total())
	return nil
}

func (p *peer) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.large.Sync(ctx)
}

func (p *peer) oneChanged(ctx context.Context) error {
	const rounds = 5
	var took []time.Duration
	for i := range rounds {
		n := 101 + i
		maps.Copy(p.files, p.bench.files(fluxSpace, i, n))
		at, err := p.publish(ctx)
		if err != nil {
			return err
		}
		if err := p.until(ctx, fluxSpace, nameOf("app", i*5), int64(n)); err != nil {
			return err
		}
		took = append(took, time.Since(at))
		if err := p.applied(ctx, p.large); err != nil {
			return err
		}
	}
	p.found(changedRow, "%s, median of %d", results.Duration(percentile(took, 50)), rounds)
	return nil
}

// edited spreads edits of different objects over a whole interval, and waits for all of them.
func (p *peer) edited(ctx context.Context) error {
	edits := min(20, p.options.objects/2-25) // those before have other values by now
	if edits < 1 {
		return nil
	}
	if err := p.large.Every(ctx, fluxInterval); err != nil {
		return err
	}
	if err := p.sync(ctx); err != nil {
		return err
	}
	took := make([]time.Duration, edits)
	g, ctx := errgroup.WithContext(ctx)
	for i := range edits {
		name := nameOf("app", 25+i)
		if err := p.edit(ctx, fluxSpace, name); err != nil {
			return errors.Join(err, g.Wait())
		}
		began := time.Now()
		g.Go(func() error {
			err := p.until(ctx, fluxSpace, name, 100)
			took[i] = time.Since(began)
			return err
		})
		if err := pause(ctx, fluxInterval/time.Duration(edits)); err != nil {
			return errors.Join(err, g.Wait())
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	p.found(editRow, "%s to one of %d objects, at an interval of %s", percentiles(took), p.options.objects, fluxInterval)
	return nil
}

func (p *peer) many(ctx context.Context) error {
	if err := p.large.Every(ctx, time.Hour); err != nil {
		return err
	}
	if err := p.sync(ctx); err != nil {
		return err
	}
	began := time.Now()
	var all []flux.Kustomization
	for i := range p.moorings {
		k, err := flux.NewKustomization(ctx, p.Client(), nameOf("team", i), nameOf("team", i), manyInterval)
		if err != nil {
			return err
		}
		all = append(all, k)
	}
	for _, k := range all {
		if err := p.applied(ctx, k); err != nil {
			return err
		}
	}
	p.found(manyRow, "%s", results.Duration(time.Since(began)))
	return nil
}

// atRest leaves the controller alone for one whole interval of the many, in which it does all that it does in any other.
func (p *peer) atRest(ctx context.Context) error {
	rest := min(p.rest, manyInterval)
	said, memory, err := p.leaveAlone(ctx, rest, p.controller.PID(), func() (float64, error) {
		passes, _, err := p.controller.Passes(ctx)
		return passes, err
	})
	if err != nil {
		return err
	}
	p.found(restRow, "in %s %s", rest, said)
	p.found(memoryRow, "%s", memory)
	return nil
}

func (p *peer) restarted(ctx context.Context) error {
	if err := p.controller.Stop(); err != nil {
		return err
	}
	asked, err := p.asked(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if p.controller, err = p.flux.Start(ctx, p.World); err != nil {
		return err
	}
	err = poll.Until(ctx, "every Kustomization had a pass", func() error {
		seen, err := p.controller.Seen(ctx)
		if err == nil && seen < p.moorings+1 {
			err = fmt.Errorf("%d of %d", seen, p.moorings+1)
		}
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	now, err := p.glance(ctx, p.controller.PID())
	if err != nil {
		return err
	}
	p.found(restartRow, "%s", now.restarted(asked, took))
	return nil
}
