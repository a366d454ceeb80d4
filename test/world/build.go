package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
)

// Binaries that a world runs.
type Binaries struct {
	// ControlPlane is etcd, kube-apiserver, kube-controller-manager and kubectl in one.
	ControlPlane string
	// Mooring is the agent and the command line.
	Mooring string
}

// Build makes the binaries, or finds that they are made. The first build of the control plane takes about ten minutes on two
// cores; progress gets a line every ten seconds.
func Build(ctx context.Context, progress io.Writer) (Binaries, error) {
	plane, err := kube.Build(ctx, progress)
	if err != nil {
		return Binaries{}, err
	}
	mooring, err := buildMooring(ctx, progress)
	return Binaries{ControlPlane: plane, Mooring: mooring}, err
}

// buildMooring builds into .cache of the work tree, where the go command sees whether it is up to date and links only
// when it is not.
func buildMooring(ctx context.Context, progress io.Writer) (string, error) {
	root, err := Root(ctx)
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, ".cache", "world", "mooring")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", fmt.Errorf("make the cache of the mooring binary: %w", err)
	}
	unlock, err := poll.Lock(ctx, target+".lock", nil)
	if err != nil {
		return "", fmt.Errorf("build the mooring binary: %w", err)
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", target, "./cmd/mooring")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the image
	if out, err := Tell(progress, "mooring: building", cmd); err != nil {
		return "", fmt.Errorf("build mooring: %w\n%s", err, out)
	}
	return target, nil
}

// Root is the root of the work tree that this process was started in.
func Root(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the work tree: %w", err)
	}
	path := strings.TrimSpace(string(mod))
	if path == "" || path == os.DevNull {
		return "", errors.New("find the work tree: no go.mod here; call this in Mooring's work tree")
	}
	return filepath.Dir(path), nil
}

// Tell runs a command and says every ten seconds that it still runs. It answers with all that the command wrote.
func Tell(progress io.Writer, what string, cmd *exec.Cmd) (string, error) {
	begun := time.Now()
	done := make(chan struct{})
	told := make(chan struct{})
	go func() {
		defer close(told)
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				_, _ = fmt.Fprintf(progress, "%s, %s so far\n", what, time.Since(begun).Round(time.Second))
			}
		}
	}()
	out, err := cmd.CombinedOutput()
	close(done)
	<-told
	return string(out), err
}
