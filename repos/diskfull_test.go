package repos_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/poll"
)

// smallDisk mounts a file system in memory and gives its folder. Whoever may not mount anything may do so in a user namespace, and nobody but the process of the
// test sees it: so the test runs in a process of its own, and smallDisk is false for the one that only waits for it.
func smallDisk(t *testing.T, options string) (string, bool) {
	t.Helper()
	const inside = "MOORING_TEST_NAMESPACE"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
		cmd.Env = append(os.Environ(), inside+"=yes")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if uid := os.Geteuid(); uid != 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
				UidMappings: []syscall.SysProcIDMap{{HostID: uid, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
			}
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Fatalf("in a namespace of its own: %v\n%s", err, out)
		}
		return "", false
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatalf("keep mounts to this process: %v", err)
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatalf("mount a file system: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, true
}

// remount changes the file system. It is busy as long as a pack that was just received is open, which the collector closes.
func remount(t *testing.T, dir, options string, flags uintptr) {
	t.Helper()
	poll.Await(t, time.Minute, fmt.Sprintf("it is mounted anew with %q", options), func() error {
		runtime.GC()
		err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, options)
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			return poll.Final(err)
		}
		return err
	})
}

// tidy fails the test when something half written was left behind.
func tidy(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*", "objects", "pack", "incoming-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// A commit that does not fit is an error that says so. What is here stays readable, other remotes go on, and once there is room nobody has to restart anything.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	dir, here := smallDisk(t, "size=1m")
	if !here {
		return
	}
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	shop, cafe := s.Repo(t, "shop.git", map[string]string{"f": "small"}), s.Repo(t, "cafe.git", map[string]string{"g": "small"})
	remote := repos.Remote{URL: shop.URL}
	store := reopen(t, dir, repos.Options{})
	small := pull(t, store, remote, main)

	shop.Commit(gitserver.Change{Files: map[string]string{"f": noise(t, 2<<20)}})
	said := map[string]int{}
	for range 3 {
		_, err := tryPull(t.Context(), store, remote, main)
		wantKind(t, err, repos.KindStore, "no space left on device", dir, "has room")
		said[err.Error()]++
		tidy(t, dir)
	}
	if len(said) != 1 {
		t.Errorf("said in three tries: %v", said)
	}
	again, err := reopen(t, dir, repos.Options{}).Snapshot(t.Context(), remote, small.Revision)
	if err != nil {
		t.Fatalf("what was fetched before: %v", err)
	}
	if got := read(t, again.FS(), "f"); got != "small" {
		t.Errorf("what was fetched before reads %q", got)
	}
	checkTree(t, pull(t, store, repos.Remote{URL: cafe.URL}, main).FS(), cafe, "main")

	remount(t, dir, "size=8m", 0)
	checkTree(t, pull(t, store, remote, main).FS(), shop, "main")
}

// Not a byte is left: polls go on, since they write nothing.
func TestDiskFullToTheLastByte(t *testing.T) {
	t.Parallel()
	dir, here := smallDisk(t, "size=1m")
	if !here {
		return
	}
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "1"})
	remote := repos.Remote{URL: repo.URL}
	store := reopen(t, dir, repos.Options{})
	first := pull(t, store, remote, main)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	rev, err := store.Resolve(t.Context(), remote, main)
	if err != nil || rev != first.Revision {
		t.Fatalf("a poll gives %v, %v", rev, err)
	}
	if _, err := store.Snapshot(t.Context(), remote, rev); err != nil {
		t.Fatalf("what is here: %v", err)
	}
	repo.Commit(gitserver.Change{Files: map[string]string{"f": "2"}})
	for _, url := range []string{repo.URL, s.Repo(t, "cafe.git", nil).URL} {
		said := map[string]int{}
		for range 3 {
			_, err = tryPull(t.Context(), store, repos.Remote{URL: url}, main)
			wantKind(t, err, repos.KindStore, "no space left on device")
			said[err.Error()]++
		}
		if len(said) != 1 {
			t.Errorf("said in three tries: %v", said)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
	tidy(t, dir)
}

// A file system may be full of files, too, or become read-only because the kernel does not trust it any more.
func TestDiskWithoutInodes(t *testing.T) {
	t.Parallel()
	dir, here := smallDisk(t, "size=8m,nr_inodes=40")
	if !here {
		return
	}
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "1"})
	remote := repos.Remote{URL: repo.URL}
	store := reopen(t, dir, repos.Options{})
	first := pull(t, store, remote, main)
	var fillers []string
	for n := range 40 {
		name := filepath.Join(dir, fmt.Sprint("filler-", n))
		if os.WriteFile(name, nil, 0o600) != nil {
			break
		}
		fillers = append(fillers, name)
	}
	repo.Commit(gitserver.Change{Files: map[string]string{"f": "2"}})
	_, err := tryPull(t.Context(), store, remote, main)
	wantKind(t, err, repos.KindStore, "no space left on device")
	if _, err := store.Snapshot(t.Context(), remote, first.Revision); err != nil {
		t.Errorf("what is here: %v", err)
	}
	for _, name := range fillers {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
}

// A fetch that does not fit is done again once all remotes were rid of what nobody needs any more: also those that nobody has asked for since the store was opened.
func TestDiskFullOfWhatNobodyNeeds(t *testing.T) {
	t.Parallel()
	dir, here := smallDisk(t, "size=2m")
	if !here {
		return
	}
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	cafe := repos.Remote{URL: s.Repo(t, "cafe.git", map[string]string{"g": "0"}).URL}
	inForce := pull(t, reopen(t, dir, repos.Options{}), cafe, main).Revision
	left := filepath.Join(filepath.Dir(files(t, dir, ".pack")[0]), "incoming-123") // by a crash in the middle of a fetch
	then := time.Now().Add(-time.Hour)
	if err := errors.Join(os.WriteFile(left, make([]byte, 1700<<10), 0o600), os.Chtimes(left, then, then)); err != nil {
		t.Fatal(err)
	}
	store := reopen(t, dir, repos.Options{})
	var fetching sync.WaitGroup
	store = reopen(t, dir, repos.Options{})
	for _, name := range []string{"shop.git", "bar.git"} { // neither alone takes the other's room for its own
		repo := s.Repo(t, name, map[string]string{"f": noise(t, 400_000)})
		fetching.Go(func() { checkTree(t, pull(t, store, repos.Remote{URL: repo.URL}, main).FS(), repo, "main") })
	}
	fetching.Wait()
	before := s.Counts("cafe.git")
	if _, err := store.Snapshot(t.Context(), cafe, inForce); err != nil || s.Counts("cafe.git") != before {
		t.Errorf("what is in force was pruned (%v)", err)
	}
	tidy(t, dir)
}

// What was received and is not taken does not stay there, try after try.
func TestNothingIsLeftOfTries(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": noise(t, 1<<20), "d/g": "1"})
	store, dir := open(t, repos.Options{Limits: repos.Limits{TreeEntries: 1}})
	_, err := tryPull(t.Context(), store, repos.Remote{URL: repo.URL}, main)
	wantKind(t, err, repos.KindLimit)
	if left := partial(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestDiskBecomesReadOnly(t *testing.T) {
	t.Parallel()
	dir, here := smallDisk(t, "size=8m")
	if !here {
		return
	}
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "1"})
	remote := repos.Remote{URL: repo.URL}
	store := reopen(t, dir, repos.Options{})
	first := pull(t, store, remote, main).Revision
	remount(t, dir, "", syscall.MS_RDONLY)
	if rev, err := store.Resolve(t.Context(), remote, main); err != nil || rev != first {
		t.Errorf("a poll gives %v, %v", rev, err)
	}
	if _, err := store.Snapshot(t.Context(), remote, first); err != nil {
		t.Errorf("what is here: %v", err)
	}
	repo.Commit(gitserver.Change{Files: map[string]string{"f": "2"}})
	_, err := tryPull(t.Context(), store, remote, main)
	wantKind(t, err, repos.KindStore, "read-only file system", "can be written")
	remount(t, dir, "", 0)
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
}
