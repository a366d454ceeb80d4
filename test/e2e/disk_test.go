package e2e_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// smallDisk gives the folder of a file system of 1 MiB. It is mounted for a process of its own alone, which needs no right for that in a user namespace, and it goes with
// that process; others see it through /proc.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "--map-root-user", "sh", "-c", `mount -t tmpfs -o size=1m small "$0" && echo mounted && exec sleep infinity`, dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the Moorings of the test have been taken away by then
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("mount a small file system: %v", err)
	}
	return filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "root", dir)
}

// TestFullDisk fills the disk of the agent's store. That is told once, however often it is tried; what is in force is kept so, and what is new is in force once there is
// room, without a restart.
func TestFullDisk(t *testing.T) {
	w := quiet(t)
	disk := smallDisk(t)
	agent := startAgent(t, w, world.AgentOptions{Name: "full", Args: []string{"--store", filepath.Join(disk, "store")}})
	s := newSite(t, w, some("a=1 b=1"))
	u := s.mooring("prod", nil)
	u.inForce(s.head())

	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	s.commit(files{"a.yaml": configMap("a", "2")})
	said := map[string]int{}
	for range 4 {
		m := u.sync()
		ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonFetchFailed, "no space left on device", "has room")
		said[world.Ready(m).Message]++
	}
	if len(said) != 1 {
		t.Errorf("the message flaps: %v", said)
	}
	s.tamper("b", "mine")
	s.becomes("a=1 b=1")
	u.event(v1alpha1.ReasonFetchFailed)

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	u.inForceAfterSync(s.head())
	s.want("a=2 b=1")
	u.event("Recovered")
	if err := agent.Ended(); err != nil {
		t.Errorf("the agent has ended: %v", err)
	}
}
