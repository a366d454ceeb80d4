// Command sync measures what an agent costs and how fast it is, and writes the figures into the section "sync" of test/bench/RESULTS.md. It is what
// `make bench-sync` runs.
//
// Everything is the real thing: the mooring binary in a process of its own, a kube-apiserver with etcd, a Git server. One Mooring has 1,000 objects of Istio, half of
// them ServiceEntries and half DestinationRules, which are applied beside it by kubectl apply --server-side -k and by a bare loop of concurrent server-side
// applies, to other namespaces of the same API server. Then many Moorings of 50 such objects each are added; objects are edited one after the other, and the time
// until each is as it was is taken; and the agent is left alone for a while.
//
// When the agent is gone, the same is measured of Flux's kustomize-controller, with as many objects of the same shape in namespaces of its own; see test/bench/flux for
// how it runs. Where it cannot be built the rest is measured all the same, and the results say why its column is missing.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-dev/mooring/test/results"
	"github.com/mooring-dev/mooring/test/world"
)

// options are the flags.
type options struct {
	objects  int
	moorings int
	edits    int
	rest     time.Duration
	flux     bool
	out      string
}

// perMooring is how many objects each of the many Moorings has.
const perMooring = 50

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	o := options{}
	flag.IntVar(&o.objects, "objects", 1000, "how many objects the one large Mooring has")
	flag.IntVar(&o.moorings, "moorings", 200, "how many Moorings of 50 objects are added")
	flag.IntVar(&o.edits, "edits", 300, "how many objects are edited")
	flag.DurationVar(&o.rest, "rest", 10*time.Minute, "how long the agent is left alone")
	flag.BoolVar(&o.flux, "flux", true, "measure Flux's kustomize-controller as well, which is built first")
	flag.StringVar(&o.out, "out", "test/bench/RESULTS.md", "the file with the section that is rewritten")
	flag.Parse()
	ctrl.SetLogger(logr.Discard()) // the client of the API server would complain that there is none
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench-sync:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	binaries, err := world.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	peer, note, err := buildFlux(ctx, o)
	if err != nil {
		return err
	}
	w, err := world.Start(ctx, binaries)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	begin := results.Load()
	b, err := newBench(ctx, w, o, peer)
	if err != nil {
		return err
	}
	b.fluxNote = note
	for _, measure := range []func(context.Context) error{b.firstApply, b.unchanged, b.oneChanged, b.many, b.edited, b.atRest, b.restarted, b.besideFlux} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return b.write(begin)
}
