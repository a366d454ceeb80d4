package kube

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/mooring-dev/mooring/test/child"
)

// run starts binary's part with flags, in dir. Its output goes to PART.log there. A part that is not detached dies with us.
func run(binary, part, dir string, detach bool, flags ...string) (*child.Process, error) {
	cmd := exec.Command(binary, append([]string{part}, flags...)...)
	cmd.Dir = dir
	if detach {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	p, err := child.Start(part, filepath.Join(dir, part+".log"), cmd)
	if err != nil || !detach {
		return p, err
	}
	if err := os.WriteFile(pidFile(dir, part), []byte(strconv.Itoa(p.PID())+"\n"), 0o600); err != nil {
		p.Kill()
		return nil, fmt.Errorf("record the process of %s: %w", part, err)
	}
	return p, nil
}
