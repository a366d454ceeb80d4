// Command demo shows Mooring's main job on a machine that has nothing but Go and git: it builds and starts a control plane, a
// Git server and the agent, and then does, step by step, what a user does. Every step checks what it says; one
// that fails ends the demo with exit code 1.
//
// It stays up until Ctrl-C; with DEMO_EXIT=1 it ends after the last step. It uses free loopback ports and one temporary folder, and leaves
// nothing behind but what was built.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/mooring-dev/mooring/test/demo/story"
	"github.com/mooring-dev/mooring/test/world"
)

// stepTimeout is generous: a step takes a few seconds on an idle machine.
const stepTimeout = 5 * time.Minute

func main() {
	os.Exit(run())
}

func run() (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(logr.Discard()) // the client of the API server would complain that there is none
	n := newNarrator(os.Stdout, os.Getenv)
	d := &demo{narrator: n}
	defer func() {
		if err := d.close(); err != nil {
			fmt.Fprintln(os.Stderr, "demo:", err)
			code = 1
		}
	}()
	err := d.play(ctx)
	switch {
	case ctx.Err() != nil:
		n.title("Interrupted. Everything is stopped and removed.")
		return 130
	case err != nil:
		d.fail(err)
		return 1
	}
	if os.Getenv("DEMO_EXIT") == "1" {
		n.title("Done. Everything is stopped and removed.")
		return 0
	}
	d.invite()
	<-ctx.Done()
	n.title("Stopped and removed. Nothing is left.")
	return 0
}

// demo is one run.
type demo struct {
	*narrator
	world *world.World
	agent *world.Agent
	story *story.Story
}

// play sets everything up and tells the story.
func (d *demo) play(ctx context.Context) error {
	d.title("Setting up")
	d.Say("A control plane (etcd, kube-apiserver and a few controllers), Istio's and Mooring's CRDs, a Git server, and the agent. " +
		"They are built from source; the first time takes about ten minutes, and says how far it is.")
	begun := time.Now()
	binaries, err := world.Build(ctx, d.out)
	if err != nil {
		return err
	}
	if d.world, err = world.Start(ctx, binaries); err != nil {
		return err
	}
	d.done("control plane at %s, with Istio's and Mooring's CRDs", d.world.Cluster.Config().Host)
	if d.story, err = story.New(ctx, d.world, d, story.Options{}); err != nil {
		return err
	}
	d.done("repository made from examples/shop, served by git http-backend at %s", d.world.Git.RepoURL(story.RepoName))
	starting, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if d.agent, err = d.world.StartAgent(starting, world.AgentOptions{}); err != nil {
		return err
	}
	d.done("agent running, process %d, metrics at %s", d.agent.PID(), d.agent.MetricsURL)
	d.done("ready after %s", time.Since(begun).Round(time.Second))
	for i, step := range d.story.Steps() {
		d.title(fmt.Sprintf("%d. %s", i+1, step.Title))
		if err := d.step(ctx, step); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, step.Title, err)
		}
	}
	return nil
}

func (d *demo) step(ctx context.Context, step story.Step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepTimeout, fmt.Errorf("the step takes longer than %s", stepTimeout))
	defer cancel()
	return step.Run(ctx)
}

// fail says what was expected, what is there, and where the log is. The log is kept, since all else goes.
func (d *demo) fail(err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	d.wrong("The demo failed: %v", err)
	if d.story != nil {
		_, _ = fmt.Fprintf(d.out, "\nWhat is there:\n%s", d.story.Describe(ctx))
	}
	if d.agent == nil {
		return
	}
	_, _ = fmt.Fprintf(d.out, "\nThe agent:\n%s\n", d.agent.LogTail(20))
	kept, err := d.keepLog(ctx)
	if err != nil {
		d.wrong("The log could not be kept: %v", err)
		return
	}
	_, _ = fmt.Fprintf(d.out, "\nThe agent's whole log is kept in %s\n", kept)
}

func (d *demo) keepLog(ctx context.Context) (string, error) {
	root, err := world.Root(ctx)
	if err != nil {
		return "", err
	}
	kept := filepath.Join(root, ".cache", "demo-agent.log")
	content, err := os.ReadFile(d.agent.LogFile())
	if err != nil {
		return "", err
	}
	return kept, errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755), os.WriteFile(kept, content, 0o644))
}

// invite says how to play with what is up.
func (d *demo) invite() {
	d.title("It is all yours")
	d.Say("Everything stays up until Ctrl-C. In another terminal:")
	env := d.world.Environment()
	d.lines(
		"export KUBECONFIG="+env["KUBECONFIG"],
		"export PATH="+filepath.Join(d.world.Dir, "bin")+":$PATH    # mooring and kubectl",
		"git clone "+d.world.Git.RepoURL(story.RepoName)+" && cd mesh    # pushing is allowed",
	)
	d.Say("For example:")
	d.lines(
		"mooring get -n moorings                       # what became of each Mooring",
		"mooring get shop-prod -n moorings             # all there is to know about one",
		"kubectl -n moorings get events                # what happened",
		"kubectl -n shop-prod delete virtualservices --all   # within five seconds they are back",
		"kubectl explain mooring.spec",
		"curl -s "+d.agent.MetricsURL+" | grep ^mooring_",
		"tail -f "+d.agent.LogFile(),
	)
}

// close ends everything and removes the folder.
func (d *demo) close() error {
	if d.world == nil {
		return nil
	}
	var err error
	if d.agent != nil {
		err = d.agent.Stop()
	}
	return errors.Join(err, d.world.Close())
}
