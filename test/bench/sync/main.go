// Command sync measures what an agent costs and how fast it is, and writes the figures into the section "sync" of test/bench/RESULTS.md. It is what
// `make bench-sync` runs.
//
// Everything is the real thing: the mooring binary in a process of its own, a kube-apiserver with etcd, a Git server. One Mooring has 1,000 objects of Istio, half of
// them ServiceEntries and half DestinationRules, which are applied beside it by kubectl apply --server-side -k and by a bare loop of concurrent server-side
// applies, to other namespaces of the same API server. Then many Moorings of 50 such objects each are added; objects are edited one after the other, and the time
// until each is as it was is taken; and the agent is left alone for a while.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mooring-dev/mooring/test/results"
	"github.com/mooring-dev/mooring/test/world"
)

// options are the flags.
type options struct {
	objects  int
	moorings int
	edits    int
	rest     time.Duration
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
	flag.StringVar(&o.out, "out", "test/bench/RESULTS.md", "the file with the section that is rewritten")
	flag.Parse()
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
	w, err := world.Start(ctx, binaries)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	begin := results.Load()
	b, err := newBench(ctx, w, o)
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context) error{b.firstApply, b.unchanged, b.oneChanged, b.many, b.edited, b.atRest, b.restarted} {
		if err := measure(ctx); err != nil {
			return err
		}
	}
	return b.write(begin)
}
