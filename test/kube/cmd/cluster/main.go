// Command cluster keeps a control plane for trying things out, in .cache/cluster of the work tree: up, down and status. It
// lives until it is told to stop. Tests do not use it; they start their own.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/mooring-dev/mooring/test/kube"
)

const usage = `usage: go run ./test/kube/cmd/cluster COMMAND

  build   build the control plane, unless it is in the cache, and link bin/kubectl
  up      start a control plane in the background and write .cache/kubeconfig
  down    stop it and remove its data
  status  say whether it runs
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(context.Context, tree) error{"build": build, "up": up, "down": down, "status": status}
	if len(args) != 1 || commands[args[0]] == nil {
		return fmt.Errorf("which command?\n\n%s", usage)
	}
	root, err := workTree(ctx)
	if err != nil {
		return err
	}
	return commands[args[0]](ctx, root)
}

// tree is the root of the work tree that the command was called in.
type tree string

func workTree(ctx context.Context) (tree, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the work tree: %w", err)
	}
	path := strings.TrimSpace(string(mod))
	if path == "" || path == os.DevNull {
		return "", errors.New("find the work tree: no go.mod here; call this in Mooring's work tree")
	}
	return tree(filepath.Dir(path)), nil
}

func (t tree) data() string       { return filepath.Join(string(t), ".cache", "cluster") }
func (t tree) kubeconfig() string { return filepath.Join(string(t), ".cache", "kubeconfig") }
func (t tree) kubectl() string    { return filepath.Join(string(t), "bin", "kubectl") }

// next is what to type now; a newcomer copies it as it is.
func (t tree) next() {
	fmt.Printf("\nnext:\n  export KUBECONFIG=%s\n  %s get crds\n  make cluster-down    # when you are done\n", t.kubeconfig(), t.kubectl())
}

func build(ctx context.Context, t tree) error {
	binary, err := kube.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if err := link(binary, t.kubectl()); err != nil {
		return err
	}
	fmt.Printf("kubectl and the control plane are built: %s\n", t.kubectl())
	return nil
}

func up(ctx context.Context, t tree) error {
	if err := build(ctx, t); err != nil {
		return err
	}
	d, started, err := kube.Up(ctx, t.data(), os.Stderr)
	if err != nil {
		return err
	}
	if err := link(d.Kubeconfig, t.kubeconfig()); err != nil {
		return err
	}
	if started {
		fmt.Printf("started a control plane at %s with Istio's and Mooring's CRDs; logs are in %s\n", d.Server, t.data())
	} else {
		fmt.Printf("a control plane is already up at %s; left it as it is\n", d.Server)
	}
	t.next()
	return nil
}

func down(_ context.Context, t tree) error {
	stopped, err := kube.Down(t.data())
	if err != nil {
		return err
	}
	if err := os.Remove(t.kubeconfig()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(stopped) == 0 {
		fmt.Println("no control plane was running")
	} else {
		fmt.Printf("stopped %s and removed %s\n", strings.Join(stopped, ", "), t.data())
	}
	fmt.Print("\nnext:\n  make cluster-up    # a new, empty one\n")
	return nil
}

func status(ctx context.Context, t tree) error {
	d, err := kube.Status(ctx, t.data())
	if err != nil {
		return err
	}
	if d.Unready != nil {
		return fmt.Errorf("the control plane is not up: %w; start it with: make cluster-up", d.Unready)
	}
	fmt.Printf("a control plane is up at %s\n", d.Server)
	for _, part := range slices.Sorted(maps.Keys(d.PIDs)) {
		fmt.Printf("  %-24s process %d\n", part, d.PIDs[part])
	}
	t.next()
	return nil
}

// link points path at target, in place of what path was.
func link(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(target, path)
}
