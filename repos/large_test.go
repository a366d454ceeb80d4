package repos_test

import (
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// A hundred thousand files are within the limits that the agent has unasked.
func TestHundredThousandFiles(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	blob := repo.Git("rev-parse", "main:f")
	var root strings.Builder
	for d := range 100 {
		var folder strings.Builder
		for f := range 1000 {
			fmt.Fprintf(&folder, "100644 blob %s\tf%03d-%03d\n", blob, d, f)
		}
		fmt.Fprintf(&root, "040000 tree %s\td%03d\n", repo.GitInput(folder.String(), "mktree"), d)
	}
	tree := repo.GitInput(root.String(), "mktree")
	repo.SetBranch("main", repo.Git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit-tree", "-m", "many", tree))
	store, _ := open(t, repos.Options{})
	fsys := pull(t, store, repos.Remote{URL: repo.URL}, main).FS()
	if got := read(t, fsys, "d099/f099-999"); got != "x" {
		t.Errorf("the last file is %q", got)
	}
	if entries, err := fs.ReadDir(fsys, "d050"); err != nil || len(entries) != 1000 {
		t.Errorf("%d entries, %v", len(entries), err)
	}
}

// A file of a hundred megabytes beside the manifests is left alone, and the memory for it is not taken.
func TestFileOfAHundredMegabytes(t *testing.T) {
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"a.yaml": "a", "video.bin": strings.Repeat("\x00", 100<<20)})
	for _, filter := range []string{"false", "true"} {
		t.Run("filter "+filter, func(t *testing.T) {
			repo.Config("uploadpack.allowFilter", filter)
			store, _ := open(t, repos.Options{})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			fsys := pull(t, store, repos.Remote{URL: repo.URL}, main).FS()
			if got := read(t, fsys, "a.yaml"); got != "a" {
				t.Errorf("a.yaml is %q", got)
			}
			_, err := fs.ReadFile(fsys, "video.bin")
			wantKind(t, err, repos.KindLimit, "video.bin", "10 MiB", "--git-max-file-size")
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 50<<20 {
				t.Errorf("%d MiB were allocated for it", took>>20)
			}
		})
	}
}
