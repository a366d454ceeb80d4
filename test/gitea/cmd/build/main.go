// Command build builds Gitea, unless it is in the cache, so that whoever waits for it sees how far it is. Tests build it themselves, where nobody looks.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mooring-dev/mooring/test/gitea"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	built, err := gitea.Build(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "gitea: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("Gitea %s is built: %s\n", built.Version, built.Path)
}
