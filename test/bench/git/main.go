// Command git measures how package repos gets commits, beside the git command that does the same, and writes the figures into the section "git"
// of test/bench/RESULTS.md. It is what `make bench-git` runs.
//
// Two repositories are generated and served by git http-backend on the loopback address: one of many small files with a long history, a monorepo in
// which one of a thousand applications is ours; and one of large binary files beside a small folder of configuration. Of each, the folder of one
// application is wanted: its files are read, as a render reads them.
//
// Mooring's side is a process of its own that holds nothing but a repos.Store, told what to do line by line (see child.go), so that its peak memory is that of
// fetching and reading alone. What it takes is measured in it, since an agent is a process that runs already. git's side is a process for each step, whose
// start is part of what it takes, as it is of every poll by somebody who calls git; its peak memory is that of the largest of its processes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// options are the flags.
type options struct {
	apps    int
	commits int
	largeMB int
	polls   int
	updates int
	out     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := act(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench-git:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

// act as the process that measures, or as one that it starts of itself.
func act(ctx context.Context) error {
	if len(os.Args) == 4 && os.Args[1] == childWord {
		return child(ctx, os.Args[2], os.Args[3])
	}
	var o options
	flag.IntVar(&o.apps, "apps", 1000, "how many applications of 50 files the monorepo has")
	flag.IntVar(&o.commits, "commits", 2000, "how many commits the monorepo has")
	flag.IntVar(&o.largeMB, "large", 500, "how many MB of binary files the other repository has")
	flag.IntVar(&o.polls, "polls", 50, "how often each asks whether there is something new; the median is told")
	flag.IntVar(&o.updates, "updates", 9, "how many commits are fetched one after the other; the median is told")
	flag.StringVar(&o.out, "out", "test/bench/RESULTS.md", "the file with the section that is rewritten")
	generate := flag.String("generate", "", "make the repositories in this `folder` and end; what is measured next must not stem from a process that has grown")
	flag.Parse()
	if o.apps < 1 || o.commits < 1 || o.largeMB < 1 || o.polls < 1 || o.updates < 1 {
		return fmt.Errorf("numbers are 1 or more")
	}
	if *generate != "" {
		return makeAll(ctx, o, *generate)
	}
	return run(ctx, o)
}

func makeAll(ctx context.Context, o options, root string) error {
	for _, r := range sources(o) {
		if err := r.make(ctx, root); err != nil {
			return fmt.Errorf("make %s: %w", r.name, err)
		}
	}
	return nil
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "mooring-bench-git-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := newBench(ctx, o, dir)
	if err != nil {
		return err
	}
	defer func() { _ = b.server.Close() }()
	for _, r := range sources(o) {
		if err := b.measure(ctx, r); err != nil {
			return fmt.Errorf("measure %s: %w", r.name, err)
		}
	}
	return b.write(ctx)
}
