package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/kube"
)

// World is a running control plane and a Git server, and what was started in them.
type World struct {
	// Dir is the folder of everything; it goes with Close. The binaries are in bin below it.
	Dir string
	// Cluster with Istio's and Mooring's CRDs.
	Cluster *kube.Cluster
	// Git serves the bare repositories in its Root over http, without credentials, and lets everybody push.
	Git *gitserver.Server

	client client.Client

	mu     sync.Mutex
	agents []*Agent
}

// Start makes a world. The context is for the start alone: the world lives until Close. On an error nothing is left.
func Start(ctx context.Context, binaries Binaries) (*World, error) {
	dir, err := Scratch(os.TempDir(), "mooring-world")
	if err != nil {
		return nil, fmt.Errorf("make a world: %w", err)
	}
	w := &World{Dir: dir}
	if err := w.start(ctx, binaries); err != nil {
		return nil, errors.Join(fmt.Errorf("make a world: %w", err), w.Close())
	}
	return w, nil
}

func (w *World) start(ctx context.Context, binaries Binaries) (err error) {
	for _, name := range []string{"bin", "cluster", "git"} {
		if err := os.Mkdir(w.path(name), 0o700); err != nil {
			return err
		}
	}
	// A copy of its own: another world may be building the next one meanwhile.
	if err := copyFile(ctx, binaries.Mooring, w.path("bin", "mooring")); err != nil {
		return err
	}
	if w.Cluster, err = kube.Launch(ctx, kube.Options{Binary: binaries.ControlPlane, Dir: w.path("cluster")}); err != nil {
		return err
	}
	if err := os.Symlink(w.Cluster.KubectlPath(), w.path("bin", "kubectl")); err != nil {
		return err
	}
	w.Git, err = gitserver.StartHTTP(context.WithoutCancel(ctx), gitserver.HTTPOptions{Root: w.path("git"), AllowPush: true})
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if w.client, err = client.New(w.Cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return w.addGateway(ctx)
}

// Scratch makes a folder whose name begins with the given one and the number of this process. Those of the same name whose makers
// were killed before they could remove them go; their processes died with them.
func Scratch(parent, name string) (string, error) {
	sweep(parent, name+"-")
	return os.MkdirTemp(parent, fmt.Sprintf("%s-%d-", name, os.Getpid()))
}

func sweep(parent, prefix string) {
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		owner, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if _, err := os.Stat("/proc/" + owner); errors.Is(err, os.ErrNotExist) {
			_ = os.RemoveAll(dir)
		}
	}
}

// Close ends everything that runs in the world, the agents first, and removes its folder.
func (w *World) Close() error {
	w.KillAgents()
	var errs []error
	if w.Git != nil {
		errs = append(errs, w.Git.Close())
	}
	if w.Cluster != nil {
		w.Cluster.Stop()
	}
	return errors.Join(append(errs, os.RemoveAll(w.Dir))...)
}

// KillAgents ends every agent that was started in the world and still runs.
func (w *World) KillAgents() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.agents {
		a.Kill()
	}
	w.agents = nil
}

// Client of the cluster's admin. It knows Moorings and Kubernetes' own kinds; for others there is unstructured.
func (w *World) Client() client.Client {
	return w.client
}

func (w *World) path(parts ...string) string {
	return filepath.Join(append([]string{w.Dir}, parts...)...)
}

// copyFile copies an executable. Not with our own hands: a child that another goroutine starts while the file is open for
// writing would inherit it for a moment, and the kernel executes no file that somebody writes.
func copyFile(ctx context.Context, from, to string) error {
	if os.Link(from, to) == nil { // cheap, where both are on one file system; a build replaces the name, not the content
		return nil
	}
	if out, err := exec.CommandContext(ctx, "cp", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, out)
	}
	return nil
}
