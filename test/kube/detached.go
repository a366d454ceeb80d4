package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/mooring-dev/mooring/test/poll"
)

// Detached is a control plane that outlives the process that started it. What is known about it lies in its folder: a
// kubeconfig, a log and a PID file for each part.
type Detached struct {
	// Server is the API server's address.
	Server string
	// Kubeconfig of the admin.
	Kubeconfig string
	// PIDs of the parts that run.
	PIDs map[string]int
	// Unready says why it is of no use, and is nil when it is ready.
	Unready error
}

// parts in the order in which they are stopped.
var parts = [...]string{"kube-controller-manager", "kube-apiserver", "etcd"}

// Up starts a control plane in dir that outlives this process. One that is there and ready is left as it is; one
// of which only a part still runs is stopped and replaced. The answer says whether it was started just now.
func Up(ctx context.Context, dir string, progress io.Writer) (_ *Detached, started bool, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, false, err
	}
	binary, err := Build(ctx, progress)
	if err != nil {
		return nil, false, err
	}
	found, err := Status(ctx, dir)
	if err != nil {
		return nil, false, err
	}
	if found.Unready == nil {
		return found, false, nil
	}
	if _, err := Down(dir); err != nil {
		return nil, false, fmt.Errorf("clear what is left of an earlier control plane: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, err
	}
	if _, err := Launch(ctx, Options{Binary: binary, Dir: dir, Detach: true}); err != nil {
		return nil, false, err
	}
	found, err = Status(ctx, dir)
	return found, true, err
}

// Status looks at the control plane in dir. That none is there is no error but the reason in Unready.
func Status(ctx context.Context, dir string) (*Detached, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	d := &Detached{Kubeconfig: filepath.Join(dir, "kubeconfig"), PIDs: make(map[string]int)}
	for _, part := range parts {
		pid, err := pidOf(dir, part)
		if err != nil {
			return nil, err
		}
		if pid != 0 {
			d.PIDs[part] = pid
		}
	}
	if len(d.PIDs) == 0 {
		d.Unready = errors.New("it is not running")
		return d, nil
	}
	for _, part := range parts {
		if d.PIDs[part] == 0 {
			d.Unready = fmt.Errorf("%s is not running; see %s", part, filepath.Join(dir, part+".log"))
			return d, nil
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", d.Kubeconfig)
	if err != nil {
		d.Unready = fmt.Errorf("read its kubeconfig: %w", err)
		return d, nil
	}
	d.Server = config.Host
	d.Unready = ready(ctx, config)
	return d, nil
}

// ready asks the API server once.
func ready(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET /readyz: %s", res.Status)
	}
	return nil
}

// Down stops the control plane in dir, whatever of it runs, removes the folder, and says which parts it stopped.
func Down(dir string) (stopped []string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		pid, err := pidOf(dir, part)
		if err != nil {
			return stopped, err
		}
		if pid == 0 {
			continue
		}
		if err := end(dir, part, pid); err != nil {
			return stopped, err
		}
		stopped = append(stopped, part)
	}
	if err := os.RemoveAll(dir); err != nil {
		return stopped, fmt.Errorf("remove the control plane's data: %w", err)
	}
	return stopped, nil
}

// end asks a part to end, and kills it when it has not after ten seconds.
func end(dir, part string, pid int) error {
	var last error
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s, process %d: %w", part, pid, err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if last = poll.Until(ctx, "it has ended", func() error {
			if runs(dir, part, pid) {
				return errors.New("it runs")
			}
			return nil
		}); last == nil {
			return nil
		}
	}
	return fmt.Errorf("stop %s, process %d: %w", part, pid, last)
}

// pidOf is the process of a part, or 0 when it does not run. A recorded number alone proves nothing, because the kernel
// gives it to another process in time.
func pidOf(dir, part string) (int, error) {
	content, err := os.ReadFile(pidFile(dir, part))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil || pid <= 1 {
		return 0, fmt.Errorf("read %s: no process id in it; remove the file if nothing of the control plane runs", pidFile(dir, part))
	}
	if !runs(dir, part, pid) {
		return 0, nil
	}
	return pid, nil
}

// runs says whether the process is that part of the control plane in dir: its command line names both. A process that has
// ended and waits to be collected has none.
func runs(dir, part string, pid int) bool {
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return false
	}
	args := bytes.Split(cmdline, []byte{0})
	return len(args) > 2 && string(args[1]) == part && bytes.Contains(cmdline, []byte("="+dir))
}

func pidFile(dir, part string) string {
	return filepath.Join(dir, part+".pid")
}
