package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// process is a child that dies with us, also when we are killed.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// done is closed when the process has ended and was waited for; err is set before.
	done chan struct{}
	err  error
}

// start runs a command in the background. What it writes goes to the end of the file log.
func start(name, log string, cmd *exec.Cmd) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = out.Close() }()
	p := &process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the child ends, not the process. So this
		// goroutine keeps a thread of its own for as long as the child lives, and never gives it back.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// ended says how the process ended, or nil while it runs.
func (p *process) ended() error {
	select {
	case <-p.done:
		if p.err != nil {
			return fmt.Errorf("%s ended: %w", p.name, p.err)
		}
		return fmt.Errorf("%s ended", p.name)
	default:
		return nil
	}
}

// kill ends the process at once, as the kernel does when memory runs out, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended, which is what is wanted
	<-p.done
}

// stop asks the process to end and waits for it. One that takes longer than ten seconds is killed, and that is an error; so
// is an exit code.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.kill()
		return fmt.Errorf("stop %s: it did not end within ten seconds", p.name)
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) && exit.ExitCode() >= 0 || p.err != nil && !errors.As(p.err, &exit) {
		return fmt.Errorf("stop %s: %w", p.name, p.err)
	}
	return nil
}

// tail is the end of what the process wrote.
func (p *process) tail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return fmt.Sprintf("--- %s, the last %d of %d lines:\n%s", p.log, min(lines, len(all)), len(all),
		strings.Join(all[max(0, len(all)-lines):], "\n"))
}

// Poll calls ask until it has no error, or a Final one. When ctx ends before, the last answer is in the error.
func Poll(ctx context.Context, what string, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		var final *finalError
		if errors.As(err, &final) {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; last seen: %w", what, context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Final is an answer that waiting cannot change.
func Final(err error) error { return &finalError{err} }

type finalError struct{ error }

// Unwrap gives the cause.
func (e *finalError) Unwrap() error { return e.error }
