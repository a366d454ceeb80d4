// Command check measures how long it takes to check a mesh, and writes the figures into the section "check" of test/bench/RESULTS.md. It is what
// `make bench-check` runs.
//
// A mesh is a third each of Services, VirtualServices and DestinationRules over ten namespaces. Measured are, in one process, the layers by themselves
// (Istio's analyzers over converted objects, one proxy's configuration from Istio's generator) and a whole Check, with and without a cluster that has the same objects; and, in
// processes of their own, the commands `mooring check`, `mooring version` and `istioctl analyze` over the same files. The rules on single objects are measured
// by the benchmark BenchmarkStructure of render/check, which is run for it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mooring-dev/mooring/test/results"
)

// options are the flags.
type options struct {
	sizes  []int
	rounds int
	out    string
}

// figure is one line of the table.
type figure struct {
	objects int
	what    string
	// first is a checker that has seen nothing, again one that has seen all but one object. Negative is not measured.
	first, again time.Duration
	note         string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-check:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	o := options{}
	sizes := flag.String("sizes", "500,2000,15000", "how many objects, one size after the other; the commands are measured up to 2000")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each is measured; the median is told")
	flag.StringVar(&o.out, "out", "test/bench/RESULTS.md", "the file with the section that is rewritten")
	flag.Parse()
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 3 {
			return fmt.Errorf("-sizes: %q is not a number of 3 or more", text)
		}
		o.sizes = append(o.sizes, n)
	}
	begin := results.Load()
	figures, err := structure(ctx)
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, options) ([]figure, error){layers, wholes, commands} {
		more, err := measure(ctx, o)
		if err != nil {
			return err
		}
		figures = append(figures, more...)
	}
	return write(ctx, o, begin, figures)
}
