package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mooring-dev/mooring/test/kube"
)

// kustomizeModule is a module of its own, so that the command is of the same release as the library in ours, and brings nothing into it.
const kustomizeModule = "test/bench/kustomize"

// buildKustomize gives the path of the command. Go's cache makes that quick when it was built before.
func buildKustomize(ctx context.Context) (string, error) {
	cache, err := kube.CacheDir()
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, "kustomize")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", target, "sigs.k8s.io/kustomize/kustomize/v5")
	cmd.Dir = kustomizeModule
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build kustomize in %s: %w: %s", kustomizeModule, err, out)
	}
	return target, nil
}

// timeKustomize runs kustomize build. stopped says that it took longer than the limit.
func timeKustomize(ctx context.Context, kustomize, dir string, objects int, limit time.Duration) (took time.Duration, stopped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, kustomize, "build", dir)
	cmd.Stdout, cmd.Stderr = &out, &complaint
	begun := time.Now()
	err = cmd.Run()
	took = time.Since(begun)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return limit, true, nil
	case err != nil:
		return 0, false, fmt.Errorf("kustomize build: %w: %s", err, complaint.Bytes())
	}
	if n := bytes.Count(out.Bytes(), []byte("\n---\n")) + 1; n != objects {
		return 0, false, fmt.Errorf("kustomize build gave %d objects", n)
	}
	return took, false, nil
}
