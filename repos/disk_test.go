package repos_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// badBlock is a file that can be opened and, as one on a bad disk, not read.
const badBlock = "/proc/self/mem"

// withoutFiles lets do run while the process may open no more files.
func withoutFiles(t *testing.T, do func()) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// misplaced lets do run while something else is in the place of files.
func misplaced(t *testing.T, names []string, target string, do func()) {
	t.Helper()
	if len(names) == 0 {
		t.Fatal("no such file in the store")
	}
	kept := func(name string) string { return filepath.Join(filepath.Dir(name), "kept-"+filepath.Base(name)) }
	for _, name := range names {
		if err := errors.Join(os.Rename(name, kept(name)), os.Symlink(target, name)); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for _, name := range names {
			if err := os.Rename(kept(name), name); err != nil {
				t.Errorf("it is gone: %v", err)
			}
		}
	}()
	do()
}

// What passes is an error and costs nothing: when it is over, everything is here as before, also when the server is away.
func TestTroubleThatPasses(t *testing.T) {
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": noise(t, 10_000)})
	remote := repos.Remote{URL: repo.URL}
	store, dir := open(t, repos.Options{})
	rev := pull(t, store, remote, main).Revision
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole := len(files(t, dir, ""))
	for _, c := range []struct {
		name, says string
		during     func(t *testing.T, do func())
		live       bool // seen also by the process that has the store open
	}{
		{"no more files", "too many open files", withoutFiles, true},
		{"pack that cannot be read", "input/output error", func(t *testing.T, do func()) { misplaced(t, files(t, dir, ".pack"), badBlock, do) }, true},
		{"index that cannot be read", "input/output error", func(t *testing.T, do func()) { misplaced(t, files(t, dir, ".idx"), badBlock, do) }, false},
		{"mark that cannot be read", "input/output error", func(t *testing.T, do func()) { misplaced(t, files(t, dir, string(rev.Commit)), badBlock, do) }, true},
		{"link in a circle", "too many levels of symbolic links", func(t *testing.T, do func()) {
			name := files(t, dir, ".pack")[0]
			misplaced(t, []string{name}, filepath.Base(name), do)
		}, true},
	} {
		for _, next := range []bool{false, true} {
			if !next && !c.live {
				continue
			}
			t.Run(fmt.Sprintf("%s, next process %v", c.name, next), func(t *testing.T) {
				if next {
					store = reopen(t, dir, repos.Options{})
				}
				c.during(t, func() {
					said := map[string]int{}
					for range 3 {
						_, err := store.Snapshot(t.Context(), remote, rev)
						wantKind(t, err, repos.KindStore, c.says, dir)
						said[err.Error()]++
					}
					if len(said) != 1 {
						t.Errorf("said in three tries: %v", said)
					}
				})
				snap, err := store.Snapshot(t.Context(), remote, rev)
				if err != nil {
					t.Fatalf("when it is over: %v", err)
				}
				checkTree(t, snap.FS(), repo, "main")
				if got := len(files(t, dir, "")); got != whole {
					t.Errorf("%d files are in the store, %d were", got, whole)
				}
			})
		}
	}
}

// One bad block does not last as long as the disk: the commit is fetched anew, to another place, and so is what builds on it.
func TestBadBlock(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": noise(t, 10_000)})
	remote := repos.Remote{URL: repo.URL}
	for _, where := range []string{".pack", ".idx", "mark"} {
		for _, moves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the branch moves %v", where, moves), func(t *testing.T) {
				store, dir := open(t, repos.Options{})
				rev := pull(t, store, remote, main).Revision
				names := files(t, dir, where)
				if where == "mark" {
					names = files(t, dir, string(rev.Commit))
				}
				if len(names) != 1 {
					t.Fatalf("the store has %q", names)
				}
				for _, name := range names {
					if err := errors.Join(os.Remove(name), os.Symlink(badBlock, name)); err != nil {
						t.Fatal(err)
					}
				}
				store = reopen(t, dir, repos.Options{})
				if moves {
					repo.Commit(gitserver.Change{Files: map[string]string{"g": t.Name()}})
				}
				checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
			})
		}
	}
}

// The next commit does without what cannot be read, and costs nothing of it: what a commit needs is not known while its mark cannot be read, and nothing is pruned then
// that it may need.
func TestNextCommitBesideWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, where := range []string{".pack", ".idx", "mark"} {
		t.Run(where, func(t *testing.T) {
			s := gitserver.HTTP(t, gitserver.HTTPOptions{})
			repo := s.Repo(t, "shop.git", map[string]string{"f": noise(t, 10_000)})
			remote := repos.Remote{URL: repo.URL}
			opts := repos.Keeping(repos.Options{}, 8, time.Hour, 0)
			store, dir := open(t, opts)
			first := pull(t, store, remote, main).Revision
			store = reopen(t, dir, opts)
			names := files(t, dir, where)
			if where == "mark" {
				names = files(t, dir, string(first.Commit))
			}
			misplaced(t, names, badBlock, func() {
				repo.Commit(gitserver.Change{Files: map[string]string{"g": "1"}})
				checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
			})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := store.Snapshot(t.Context(), remote, first); err != nil {
				t.Errorf("when it can be read again: %v", err)
			}
		})
	}
}

// A pack that is open may meet a bad block, too. That is no damage that the store knows of. What is opened then is read to the end first.
func TestBadBlockWhileReading(t *testing.T) {
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": noise(t, 100_000)})
	remote := repos.Remote{URL: repo.URL}
	store, dir := open(t, repos.Options{})
	snap := pull(t, store, remote, main)
	pack := files(t, dir, ".pack")[0]
	bad, err := os.Open(badBlock)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bad.Close() }()
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range open {
		target, err := os.Readlink(link)
		if err != nil || filepath.Base(target) != filepath.Base(pack) && filepath.Dir(target) != filepath.Dir(pack) {
			continue
		}
		var fd int
		if _, err := fmt.Sscan(filepath.Base(link), &fd); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Dup3(int(bad.Fd()), fd, syscall.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
	}
	_, err = fs.ReadFile(snap.FS(), "f")
	wantKind(t, err, repos.KindStore, "input/output error")
	if again := files(t, dir, ".pack"); len(again) != 1 || again[0] != pack {
		t.Errorf("the store has %q, want %q", again, pack)
	}
	before := s.Counts("")
	for _, store := range []*repos.Store{store, reopen(t, dir, repos.Options{})} {
		again, err := store.Snapshot(t.Context(), remote, snap.Revision)
		if err != nil || s.Counts("") != before {
			t.Fatalf("%v; want it from the disk", err)
		}
		checkTree(t, again.FS(), repo, "main")
	}
}
