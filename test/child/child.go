// Package child starts the processes that tests and the demo need, and sees to it that none stays behind: a child dies with the
// process that started it, also when that is killed. What a child writes goes to a file, whose end is for errors.
package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/mooring-dev/mooring/test/poll"
)

// grace is how long a child may take to end when it is asked to.
const grace = 10 * time.Second

// Process is a child.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// done is closed when the process has ended and was waited for; err is set before.
	done chan struct{}
	err  error
}

// Start starts a command in the background, which appends what it writes to the file log. It dies with us, unless the command has
// attributes of its own (SysProcAttr) that say otherwise.
func Start(name, log string, cmd *exec.Cmd) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = out.Close() }()
	p := &Process{name: name, cmd: cmd, log: log, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	}
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

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended says how the process ended, or nil while it runs.
func (p *Process) Ended() error {
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

// Await calls ask until it has no error; see [poll.Until]. A process that ends meanwhile is an error at once.
func (p *Process) Await(ctx context.Context, what string, ask func() error) error {
	return poll.Until(ctx, what, func() error {
		err := ask()
		if ended := p.Ended(); err != nil && ended != nil {
			return poll.Final(ended)
		}
		return err
	})
}

// Kill ends the process at once, as the kernel does when memory runs out, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended, which is what is wanted
	<-p.done
}

// Stop asks the process to end, and waits. One that takes longer than ten seconds, or than ctx, is killed, and that is an
// error; so is an exit code. To end by the signal itself is fine.
func (p *Process) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("stop %s: it did not end within %s", p.name, grace)
	}
	if exit, ok := p.err.(*exec.ExitError); p.err != nil && (!ok || exit.ExitCode() >= 0) {
		return fmt.Errorf("stop %s: %w", p.name, p.err)
	}
	return nil
}

// LogFile is where the process writes.
func (p *Process) LogFile() string { return p.log }

// LogTail is the end of what the process wrote.
func (p *Process) LogTail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return fmt.Sprintf("--- %s, the last %d of %d lines:\n%s", p.log, min(lines, len(all)), len(all),
		strings.Join(all[max(0, len(all)-lines):], "\n"))
}
