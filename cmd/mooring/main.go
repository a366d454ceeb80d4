// Command mooring keeps an Istio mesh moored to Git: it is the agent that runs in the cluster, and the tool of
// those who write the configuration and those who are called at night.
//
// It owns flags, subcommands, wiring and printing. What the subcommands do is done by the packages render,
// render/check, apply and sync; a command and the agent never have two ways to do one thing.
//
// Results go to standard output, everything about the way there to standard error. An error is one line
// "mooring: …", followed by "hint: …" where the user can mend it. Exit codes are a promise, see exit.go.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the image has no database of time zones, and spec.timeZone needs one
)

// version is set by the linker: -X main.version=v1.2.3.
var version = "dev"

func main() {
	os.Exit(run())
}

// run is main without the exit, so that deferred calls happen.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The first signal asks the work to end in order. After it the default is back, so that a second one ends a
	// program that does not listen.
	context.AfterFunc(ctx, stop)
	c := &cli{in: os.Stdin, out: os.Stdout, errOut: os.Stderr, getenv: os.Getenv, version: version}
	return c.execute(ctx, os.Args[1:])
}
