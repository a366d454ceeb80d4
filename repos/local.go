package repos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
)

// localTransport runs Git's programs on this machine. Only tests may allow it.
type localTransport struct {
	path string
}

func (t *localTransport) open(ctx context.Context, with service) (session, error) {
	if _, err := os.Stat(t.path); err != nil {
		return nil, failf(KindNotFound, "", "%w", err)
	}
	cmd := exec.CommandContext(ctx, string(with), t.path)
	s := &pipeSession{said: &saying{}, wait: sync.OnceValue(cmd.Wait)}
	cmd.Stderr = s.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", with, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", with, err)
	}
	s.in, s.out = in, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", with, err)
	}
	s.release = func() {
		_ = cmd.Process.Kill()
		_ = s.wait()
	}
	return s, nil
}
