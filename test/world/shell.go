package world

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Environment of a shell in which mooring, kubectl and git work as for a user of this cluster: what a person would export.
func (w *World) Environment() map[string]string {
	return map[string]string{
		"KUBECONFIG": w.Cluster.Kubeconfig(),
		"PATH":       w.path("bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
}

// environment is that of commands which the world runs itself: besides, nothing of the machine's configuration, and no trace in the user's home.
func (w *World) environment() []string {
	env := os.Environ()
	for name, value := range w.Environment() {
		env = append(env, name+"="+value)
	}
	return append(env,
		"HOME="+w.Dir,
		"XDG_CACHE_HOME="+w.path("cache"),
		"KUBECACHEDIR="+w.path("cache", "kubectl"),
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Mooring demo", "GIT_AUTHOR_EMAIL=demo@mooring.invalid",
		"GIT_COMMITTER_NAME=Mooring demo", "GIT_COMMITTER_EMAIL=demo@mooring.invalid",
		// git hands loopback addresses to a proxy too, unless it is told not to.
		"no_proxy=127.0.0.1,localhost", "NO_PROXY=127.0.0.1,localhost",
		"LC_ALL=C",
	)
}

// Shell runs a line as a user types it, in dir, and gives what it wrote to stdout and stderr, in that order of time, without
// the space at the end. An exit code other than 0 is an *exec.ExitError in the error.
func (w *World) Shell(ctx context.Context, dir, line string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("%q takes too long", line))
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = w.environment()
	cmd.WaitDelay = 5 * time.Second
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	out := strings.TrimRight(both.String(), " \n")
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return out, fmt.Errorf("$ %s: %w\n%s", line, err, out)
	}
	return out, nil
}
