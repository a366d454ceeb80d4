package repos_test

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// noise does not compress.
func noise(t testing.TB, n int) string {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.NewChaCha8([32]byte{1}).Read(b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A large file is refused when it is read, and only then; servers that can leave it out are asked to.
func TestLargeFile(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{"true", "false"} {
		t.Run("filter "+filter, func(t *testing.T) {
			s := gitserver.HTTP(t, gitserver.HTTPOptions{})
			repo := s.Repo(t, "shop.git", map[string]string{
				"small": "fine", "limit": strings.Repeat("x", 1<<10), "large": noise(t, 300<<10), "over": strings.Repeat("x", 1<<10+1),
			})
			repo.Config("uploadpack.allowFilter", filter)
			limits := repos.Limits{BlobBytes: 1 << 10}
			store, dir := open(t, repos.Options{Limits: limits})
			remote := repos.Remote{URL: repo.URL}
			check := func() {
				t.Helper()
				fsys := pull(t, store, remote, main).FS()
				read(t, fsys, "small")
				read(t, fsys, "limit")
				for _, name := range []string{"large", "over"} {
					_, err := fs.ReadFile(fsys, name)
					wantKind(t, err, repos.KindLimit, name, "1 KiB")
					_, err = fsys.Open(name)
					wantKind(t, err, repos.KindLimit, name)
					if _, err := fsys.(hasher).Hash(name); err != nil {
						t.Error(err)
					}
					if info, err := fs.Stat(fsys, name); err != nil || info.Size() <= 1<<10 {
						t.Errorf("stat of %s: %v, %v", name, info, err)
					}
				}
			}
			check()
			if n := sizes(t, dir); (n < 100<<10) != (filter == "true") {
				t.Errorf("the store has %d bytes", n)
			}
			repo.Commit(gitserver.Change{Files: map[string]string{"small": "still fine"}})
			check()

			// A limit that was raised is in force at once.
			store = reopen(t, dir, repos.Options{Limits: repos.Limits{BlobBytes: 1 << 20}})
			fsys := pull(t, store, remote, main).FS()
			if got := read(t, fsys, "large"); len(got) != 300<<10 {
				t.Errorf("large has %d bytes", len(got))
			}
			store = reopen(t, dir, repos.Options{Limits: limits})
			_, err := fs.ReadFile(pull(t, store, remote, main).FS(), "large")
			wantKind(t, err, repos.KindLimit, "large")
		})
	}
}

func TestManyFiles(t *testing.T) {
	t.Parallel()
	tree := map[string]string{}
	for i := range 300 {
		tree[fmt.Sprintf("d%d/f%d", i/100, i)] = ""
	}
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", tree)
	remote := repos.Remote{URL: repo.URL}
	store, dir := open(t, repos.Options{Limits: repos.Limits{TreeEntries: 302}})
	_, err := tryPull(t.Context(), store, remote, main)
	wantKind(t, err, repos.KindLimit, "more than 302 files and folders")
	store = reopen(t, dir, repos.Options{Limits: repos.Limits{TreeEntries: 303}})
	pull(t, store, remote, main)
	store = reopen(t, dir, repos.Options{Limits: repos.Limits{TreeEntries: 302}})
	_, err = tryPull(t.Context(), store, remote, main)
	wantKind(t, err, repos.KindLimit, "303 files and folders, more than 302")
}

// A tree of ten folders that are all the same, ten times over, has a handful of objects and ten thousand million files.
func TestTreeThatUnfolds(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	tree := repo.Git("rev-parse", "main^{tree}")
	for range 10 {
		var listing strings.Builder
		for i := range 10 {
			fmt.Fprintf(&listing, "040000 tree %s\td%d\n", tree, i)
		}
		tree = repo.GitInput(listing.String(), "mktree")
	}
	repo.SetBranch("main", repo.Git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-m", "bomb", tree))
	store, _ := open(t, repos.Options{})
	_, err := tryPull(t.Context(), store, repos.Remote{URL: repo.URL}, main)
	wantKind(t, err, repos.KindLimit, "more than 200000 files and folders")
}

func TestDeepFolders(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", 200) + "f"
	snap, _ := snapshotOf(t, repos.Options{}, gitserver.Change{Files: map[string]string{deep: "x"}})
	read(t, snap.FS(), deep)

	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{strings.Repeat("d/", 400) + "f": "x"})
	store, _ := open(t, repos.Options{})
	_, err := tryPull(t.Context(), store, repos.Remote{URL: repo.URL}, main)
	wantKind(t, err, repos.KindLimit, "256 deep")
}

func TestLargeFetch(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "noise.git", map[string]string{"a": noise(t, 200<<10)})
	zeros := s.Repo(t, "zeros.git", map[string]string{"a": strings.Repeat("\x00", 2<<20)})
	store, dir := open(t, repos.Options{Limits: repos.Limits{TotalBytes: 100 << 10}})
	_, err := tryPull(t.Context(), store, repos.Remote{URL: repo.URL}, main)
	wantKind(t, err, repos.KindLimit, "more than 100 KiB")
	_, err = tryPull(t.Context(), store, repos.Remote{URL: zeros.URL}, main)
	wantKind(t, err, repos.KindLimit, "unpacks to more than 100 KiB")
	if left := partial(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
