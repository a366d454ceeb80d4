package kube

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one part of the control plane. Its output goes to NAME.log in the cluster's folder.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	// done is closed when the process has ended and was waited for; err is set before.
	done chan struct{}
	err  error
}

// run starts binary's part with flags, in dir. A process that is not detached dies with us, also when we are killed.
func run(binary, part, dir string, detach bool, flags ...string) (*process, error) {
	p := &process{name: part, log: filepath.Join(dir, part+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", part, err)
	}
	defer func() { _ = out.Close() }()
	p.cmd = exec.Command(binary, append([]string{part}, flags...)...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	if detach {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the child ends, not the process. So this
		// goroutine keeps a thread of its own for as long as the child lives, and never gives it back.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", part, err)
	}
	if detach {
		if err := os.WriteFile(pidFile(dir, part), []byte(strconv.Itoa(p.cmd.Process.Pid)+"\n"), 0o600); err != nil {
			p.kill()
			return nil, fmt.Errorf("record the process of %s: %w", part, err)
		}
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

// kill ends the process at once and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it answers with an error only when the process has ended, which is what is wanted
	<-p.done
}

// shutdown asks the process to end in order, and kills it when it takes longer than ctx or ten seconds.
func (p *process) shutdown(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
	}
}

// tail is the end of the log, for the error of a start that went wrong.
func (p *process) tail(lines int) string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return fmt.Sprintf("--- %s, the last %d of %d lines:\n%s", p.log, min(lines, len(all)), len(all),
		strings.Join(all[max(0, len(all)-lines):], "\n"))
}
