package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// most objects that the commands are measured with: a repository's folder, not a whole mesh.
const most = 2000

// commands measures processes, from start to end, what they print thrown away.
func commands(ctx context.Context, o options) (_ []figure, err error) {
	dir, err := os.MkdirTemp("", "bench-check-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is below the folder for temporary files
	binary := map[string]string{}
	for name, pkg := range map[string]string{"mooring": "./cmd/mooring", "istioctl": "istio.io/istio/istioctl/cmd/istioctl"} {
		binary[name] = filepath.Join(dir, name)
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary[name], pkg).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	var figures []figure
	measure := func(n int, what, name string, args ...string) error {
		var all []time.Duration
		for range o.rounds {
			took, err := timed(func() error { return process(ctx, binary[name], args...) })
			if err != nil {
				return fmt.Errorf("measure %s: %w", what, err)
			}
			all = append(all, took)
		}
		figures = append(figures, told(figure{objects: n, what: what, first: median(all), again: -1}))
		return nil
	}
	if err := measure(0, "`mooring version`", "mooring", "version"); err != nil {
		return nil, err
	}
	for _, n := range o.sizes {
		if n > most {
			continue
		}
		folder := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(folder, 0o750); err != nil {
			return nil, err
		}
		if err := files(folder, n); err != nil {
			return nil, err
		}
		if err := errors.Join(
			measure(n, "`mooring check`", "mooring", "check", folder, "--root", folder),
			measure(n, "`istioctl analyze --use-kube=false --all-namespaces`", "istioctl", "analyze", "--use-kube=false", "--all-namespaces", folder),
		); err != nil {
			return nil, err
		}
	}
	return figures, nil
}

// found is how istioctl exits when it has something to say.
const found = 79

// process runs a command.
func process(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && filepath.Base(name) == "istioctl" && exit.ExitCode() == found {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
