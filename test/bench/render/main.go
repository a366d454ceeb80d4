// Command render measures how long it takes to render one unit, beside the kustomize binary on the same inputs, and writes the figures into
// the section "render" of test/bench/RESULTS.md. It is what `make bench-render` runs.
//
// A unit is a folder in a real Git repository, fetched over HTTP into a store as the agent does, and read through the store's Snapshot. What is
// measured is Render alone: cold, with an empty cache; after a commit that changes one object; and after a commit that changes nothing that the
// unit reads. The median of several is told. kustomize build reads the same files from disk, in a process of its own; how long that process takes to start is part of
// it, some hundredths of a second. It is stopped when it takes too long.
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
)

// options are the flags.
type options struct {
	sizes  []int
	limit  time.Duration
	out    string
	rounds int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-render:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func run(ctx context.Context) error {
	sizes := flag.String("sizes", "50,1000,4000,10000", "how many objects, one size after the other")
	o := options{}
	flag.DurationVar(&o.limit, "limit", 2*time.Minute, "when kustomize is stopped")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each render is measured; the median is told")
	flag.StringVar(&o.out, "out", "test/bench/RESULTS.md", "the file with the section that is rewritten")
	flag.Parse()
	for text := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 10 {
			return fmt.Errorf("-sizes: %q is not a number of 10 or more", text)
		}
		o.sizes = append(o.sizes, n)
	}
	kustomize, err := buildKustomize(ctx)
	if err != nil {
		return err
	}
	var rows []row
	for _, n := range o.sizes {
		for _, s := range shapes() {
			if s.most > 0 && n > s.most {
				continue
			}
			r, err := measure(ctx, o, kustomize, s, n)
			if err != nil {
				return fmt.Errorf("measure %d objects, %s: %w", n, s.name, err)
			}
			fmt.Println(r)
			rows = append(rows, r)
		}
	}
	return write(ctx, o, kustomize, rows)
}
