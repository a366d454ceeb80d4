package kube_test

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/mooring-dev/mooring/test/kube"
)

// processesIn finds what runs with the folder on its command line. Its own process is left out.
func processesIn(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, file := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		cmdline, err := os.ReadFile(file)
		if err != nil || pid == os.Getpid() {
			continue // it has ended since
		}
		if bytes.Contains(cmdline, []byte("="+dir)) {
			found = append(found, pid)
		}
	}
	return found
}

// The test binary runs one of its own tests, as `go test` would, and nothing is left of it.
func TestRunStopsAll(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^TestStartServesIstioAndMooring$")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := regexp.MustCompile(`cluster in (/\S+)`).FindSubmatch(out)
	if found == nil {
		t.Fatalf("the test did not say where its cluster was:\n%s", out)
	}
	dir := string(found[1])
	if left := processesIn(t, dir); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// A test binary that is killed, as `go test -timeout` and a closed terminal do, takes its cluster with it.
func TestKilledOwnerTakesTheClusterAlong(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), hold+"="+dir)
	cmd.Stderr = t.Output()
	if _, err := cmd.StdinPipe(); err != nil { // never written to: it waits for the end of it
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	if running := processesIn(t, dir); len(running) != 3 {
		t.Fatalf("processes %v run, want three", running)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says "killed"
	eventually(t, "the cluster of the killed process is gone", func() bool { return len(processesIn(t, dir)) == 0 })
}

func TestUpAndDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	t.Cleanup(func() {
		if _, err := kube.Down(dir); err != nil {
			t.Error(err)
		}
	})
	first, started, err := kube.Up(t.Context(), dir, t.Output())
	if err != nil || !started || first.Unready != nil {
		t.Fatalf("up: started %t, %+v, %v", started, first, err)
	}
	second, started, err := kube.Up(t.Context(), dir, t.Output())
	if err != nil || started || second.PIDs["etcd"] != first.PIDs["etcd"] {
		t.Fatalf("up again: started %t, %+v, %v; want what was there", started, second, err)
	}
	if err := syscall.Kill(first.PIDs["kube-apiserver"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the status says that the API server is gone", func() bool {
		d, err := kube.Status(t.Context(), dir)
		return err == nil && d.Unready != nil
	})
	third, started, err := kube.Up(t.Context(), dir, t.Output())
	if err != nil || !started || third.Unready != nil {
		t.Fatalf("up after the API server died: started %t, %+v, %v", started, third, err)
	}
	if stopped, err := kube.Down(dir); err != nil || len(stopped) != 3 {
		t.Errorf("down: stopped %v, %v", stopped, err)
	}
	if left := processesIn(t, dir); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
	if stopped, err := kube.Down(dir); err != nil || len(stopped) != 0 {
		t.Errorf("down again: stopped %v, %v", stopped, err)
	}
}

// A process id that was recorded long ago may be anybody's now. If this one were trusted, the test would end here.
func TestDownLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	for _, part := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(dir, part+".pid"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if stopped, err := kube.Down(dir); err != nil || len(stopped) != 0 {
		t.Errorf("down: stopped %v, %v", stopped, err)
	}
}
