package repos_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// filtering makes a repository on a server that can leave files out, as GitHub, GitLab and Gitea can.
func filtering(t *testing.T, s *gitserver.Server, name string, files map[string]string) *gitserver.TestRepo {
	t.Helper()
	repo := s.Repo(t, name, files)
	repo.Config("uploadpack.allowFilter", "true")
	repo.Config("uploadpack.allowAnySHA1InWant", "true")
	return repo
}

func estate() map[string]string {
	files := map[string]string{
		"README.md":                          "of the whole",
		"apps/shop/base/kustomization.yaml":  "resources: [vs.yaml]",
		"apps/shop/base/vs.yaml":             "kind: VirtualService",
		"apps/shop/base/logo.png":            "not configuration",
		"apps/shop/prod/kustomization.yaml":  "resources: [../base]",
		"apps/shop/prod/values.env":          "a=b",
		"apps/shop/prod/patches/timeout.yml": "timeout: 1s",
		"apps/shop/prod/script.sh":           "exit",
	}
	for i := range 10 {
		files[fmt.Sprintf("apps/other-%d/kustomization.yaml", i)] = fmt.Sprintf("namePrefix: other-%d-", i)
	}
	return files
}

// stored are the contents of all files that are in the store.
func stored(t *testing.T, repo *gitserver.TestRepo, dir string) []string {
	t.Helper()
	folders, err := filepath.Glob(filepath.Join(dir, "*", "objects"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("%v, %v", folders, err)
	}
	list := repo.Git("--git-dir", filepath.Dir(folders[0]), "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
	var contents []string
	for line := range strings.Lines(list) {
		if kind, id, _ := strings.Cut(strings.TrimSpace(line), " "); kind == "blob" {
			contents = append(contents, repo.Git("--git-dir", filepath.Dir(folders[0]), "cat-file", "blob", id))
		}
	}
	slices.Sort(contents)
	return contents
}

func wantStored(t *testing.T, repo *gitserver.TestRepo, dir string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, stored(t, repo, dir)); diff != "" {
		t.Errorf("in the store (-want +got):\n%s", diff)
	}
}

// wanted pulls, and says what is going to be read.
func wanted(t *testing.T, s *repos.Store, r repos.Remote, folders ...string) *repos.Snapshot {
	t.Helper()
	snap := pull(t, s, r, main)
	if err := snap.Want(t.Context(), folders...); err != nil {
		t.Fatalf("want %v: %v (hint: %s)", folders, err, repos.HintOf(err))
	}
	return snap
}

// Only what is read comes, and what is likely to be read next.
func TestOnlyFilesThatAreRead(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := filtering(t, s, "mesh.git", estate())
		store, dir := open(t, repos.Options{})
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		snap := wanted(t, store, remote, "apps/shop/prod", "no/such/folder")
		wantStored(t, repo, dir, "resources: [../base]", "timeout: 1s")
		if got := read(t, snap.FS(), "apps/shop/base/kustomization.yaml"); got != "resources: [vs.yaml]" {
			t.Errorf("reads %q", got)
		}
		prod := []string{"resources: [../base]", "timeout: 1s", "resources: [vs.yaml]", "kind: VirtualService"}
		wantStored(t, repo, dir, prod...)
		if got := read(t, snap.FS(), "apps/shop/prod/values.env"); got != "a=b" {
			t.Errorf("reads %q", got)
		}
		prod = append(prod, "a=b")
		wantStored(t, repo, dir, prod...)

		// A commit elsewhere brings no file, and one here what it changes: in one conversation, because both folders were read before.
		repo.Commit(gitserver.Change{Files: map[string]string{"apps/other-3/kustomization.yaml": "elsewhere"}})
		wanted(t, store, remote, "apps/shop/prod")
		wantStored(t, repo, dir, prod...)
		repo.Commit(gitserver.Change{Files: map[string]string{
			"apps/other-4/kustomization.yaml": "elsewhere", "apps/shop/base/vs.yaml": "changed", "apps/shop/prod/values.env": "a=c",
		}})
		before := s.Counts("")
		snap = wanted(t, store, remote, "apps/shop/prod")
		after := s.Counts("")
		if got := after.UploadPack - before.UploadPack; got != 2 {
			t.Errorf("%d conversations, want one for the commit and one for the files", got)
		}
		wantStored(t, repo, dir, append(prod, "changed", "a=c")...)
		if got := read(t, snap.FS(), "apps/shop/base/vs.yaml") + read(t, snap.FS(), "apps/shop/prod/values.env"); got != "changeda=c" {
			t.Errorf("reads %q", got)
		}
		if got := s.Counts(""); got != after {
			t.Errorf("reading what was prefetched has asked the server: %+v, then %+v", after, got)
		}
		checkTree(t, snap.FS(), repo, "main")
	})
}

// Links lead to files that are not here, and are not here themselves.
func TestSparseLinks(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := filtering(t, s, "mesh.git", estate())
	repo.Commit(gitserver.Change{Links: map[string]string{"prod": "apps/shop/prod", "apps/shop/prod/base.yaml": "../base/vs.yaml"}})
	store, _ := open(t, repos.Options{})
	snap := wanted(t, store, repos.Remote{URL: repo.URL}, "prod")
	before := s.Counts("")
	if got := read(t, snap.FS(), "prod/patches/timeout.yml"); got != "timeout: 1s" {
		t.Errorf("reads %q", got)
	}
	if got := s.Counts(""); got != before {
		t.Error("what lies behind a link was not fetched in time")
	}
	if got := read(t, snap.FS(), "prod/base.yaml"); got != "kind: VirtualService" {
		t.Errorf("reads %q", got)
	}
}

// A reader who cannot wait keeps what fetches the file, and reads again after that.
func TestReaderWhoCannotWait(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := filtering(t, s, "mesh.git", estate())
	store, _ := open(t, repos.Options{})
	snap := pull(t, store, repos.Remote{URL: repo.URL}, main)
	later := errors.New("later")
	var fetch func() error
	files := snap.Read(t.Context(), func(f func() error) error {
		fetch = f
		return later
	})
	if _, err := fs.ReadFile(files, "apps/shop/base/vs.yaml"); !errors.Is(err, later) {
		t.Fatalf("error %v, want the reader's own", err)
	}
	if err := fetch(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, files, "apps/shop/base/vs.yaml"); got != "kind: VirtualService" {
		t.Errorf("reads %q", got)
	}
}

// A server that is away is an error of the server, not of the file, and gone when it is back. What was read once is on disk, for the next process too.
func TestSparseServerAway(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := filtering(t, s, "mesh.git", estate())
	store, dir := open(t, repos.Options{Timeout: 5 * time.Second})
	remote := repos.Remote{URL: repo.URL}
	snap := wanted(t, store, remote, "apps/shop/prod")
	for _, fault := range []gitserver.Fault{{On: "git-upload-pack", Status: 503}, {On: "git-upload-pack", Cut: true, CutAfter: 20}} {
		if err := s.Inject(fault); err != nil {
			t.Fatal(err)
		}
		_, err := fs.ReadFile(snap.FS(), "apps/shop/base/vs.yaml")
		wantKind(t, err, repos.KindUnavailable)
		if err := s.Heal(); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, snap.FS(), "apps/shop/base/vs.yaml"); got != "kind: VirtualService" {
		t.Errorf("reads %q", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := reopen(t, dir, repos.Options{}).Snapshot(t.Context(), remote, snap.Revision)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Want(t.Context(), "apps/shop/prod", "apps/shop/base"); err != nil {
		t.Errorf("what was read before: %v", err)
	}
	for _, name := range []string{"apps/shop/base/vs.yaml", "apps/shop/prod/patches/timeout.yml"} {
		read(t, again.FS(), name)
	}
	_, err = fs.ReadFile(again.FS(), "apps/other-1/kustomization.yaml")
	wantKind(t, err, repos.KindUnavailable)
}

// Files that may not be read are not stored, and not downloaded again and again; the others beside them come.
func TestSparseLargeFiles(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	files := estate()
	files["apps/shop/prod/huge.yaml"] = noise(t, 300<<10)
	files["apps/shop/prod/movie.bin"] = noise(t, 200<<10)
	repo := filtering(t, s, "mesh.git", files)
	store, dir := open(t, repos.Options{Limits: repos.Limits{BlobBytes: 64 << 10}})
	snap := wanted(t, store, repos.Remote{URL: repo.URL}, "apps/shop/prod")
	if got := read(t, snap.FS(), "apps/shop/prod/patches/timeout.yml"); got != "timeout: 1s" {
		t.Errorf("reads %q", got)
	}
	for _, name := range []string{"huge.yaml", "movie.bin"} {
		for range 2 {
			_, err := fs.ReadFile(snap.FS(), "apps/shop/prod/"+name)
			wantKind(t, err, repos.KindLimit, "more than 64 KiB", "--git-max-file-size")
		}
	}
	before := s.Counts("")
	snap = wanted(t, store, repos.Remote{URL: repo.URL}, "apps/shop/prod")
	if _, err := fs.ReadFile(snap.FS(), "apps/shop/prod/huge.yaml"); err == nil {
		t.Error("it can be read")
	}
	if got := s.Counts(""); got.UploadPack != before.UploadPack {
		t.Error("it was asked for again")
	}
	if got := sizes(t, dir); got > 100<<10 {
		t.Errorf("%d bytes are on disk", got)
	}
}

// Whoever gives no file by its id, or no longer has it, is asked for the whole commit, in the same call.
func TestServerThatGivesNoFiles(t *testing.T) {
	t.Parallel()
	t.Run("over SSH without the right", func(t *testing.T) {
		s := gitserver.SSH(t, gitserver.SSHOptions{})
		repo := s.Repo(t, "mesh.git", estate())
		repo.Config("uploadpack.allowFilter", "true")
		store, _ := open(t, repos.Options{})
		checkTree(t, pull(t, store, repos.Remote{URL: repo.URL, Auth: sshAuth(t, s)}, main).FS(), repo, "main")
	})
	t.Run("the right is taken away", func(t *testing.T) {
		s := gitserver.SSH(t, gitserver.SSHOptions{})
		repo := filtering(t, s, "mesh.git", estate())
		store, _ := open(t, repos.Options{})
		snap := pull(t, store, repos.Remote{URL: repo.URL, Auth: sshAuth(t, s)}, main)
		repo.Config("uploadpack.allowAnySHA1InWant", "false")
		checkTree(t, snap.FS(), repo, "main")
	})
	t.Run("it breaks over the question", func(t *testing.T) {
		s := gitserver.HTTP(t, gitserver.HTTPOptions{})
		repo := filtering(t, s, "mesh.git", estate())
		store, _ := open(t, repos.Options{})
		snap := pull(t, store, repos.Remote{URL: repo.URL}, main)
		if err := s.Inject(gitserver.Fault{On: "git-upload-pack", Status: 500, Times: 3}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := fs.ReadFile(snap.FS(), "apps/shop/base/vs.yaml")
			wantKind(t, err, repos.KindUnavailable)
		}
		checkTree(t, snap.FS(), repo, "main")
		if got := s.Counts("").UploadPack; got != 5 {
			t.Errorf("%d conversations, want one for the commit, three that fail, and one for all", got)
		}
	})
	t.Run("the commit is gone", func(t *testing.T) {
		s := gitserver.HTTP(t, gitserver.HTTPOptions{})
		repo := filtering(t, s, "mesh.git", estate())
		store, _ := open(t, repos.Options{})
		snap := pull(t, store, repos.Remote{URL: repo.URL}, main)
		repo.SetBranch("main", repo.Commit(gitserver.Change{Branch: "new", Files: map[string]string{"f": "x"}}))
		repo.Git("reflog", "expire", "--expire=now", "--all")
		repo.Git("gc", "--prune=now", "-q")
		_, err := fs.ReadFile(snap.FS(), "apps/shop/base/vs.yaml")
		wantKind(t, err, repos.KindCommitNotFound)
		checkTree(t, pull(t, store, repos.Remote{URL: repo.URL}, main).FS(), repo, "main")
	})
}

// Many read the same files and others at once.
func TestSparseConcurrentReads(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := filtering(t, s, "mesh.git", estate())
	store, _ := open(t, repos.Options{})
	snap := pull(t, store, repos.Remote{URL: repo.URL}, main)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			files := snap.Read(t.Context(), func(fetch func() error) error { return fetch() })
			for j := range 10 {
				app := (i + j) % 8
				if got, want := read(t, files, fmt.Sprintf("apps/other-%d/kustomization.yaml", app)), fmt.Sprintf("namePrefix: other-%d-", app); got != want {
					t.Errorf("reads %q, want %q", got, want)
				}
			}
		})
	}
	wg.Wait()
	if got := s.Counts("").UploadPack; got > 9 {
		t.Errorf("%d conversations for a commit and 8 files", got)
	}
}

// A reader who has no time left ends, and leaves nothing that others would wait for.
func TestSparseReaderLeaves(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := filtering(t, s, "mesh.git", estate())
	store, _ := open(t, repos.Options{Timeout: time.Minute})
	snap := wanted(t, store, repos.Remote{URL: repo.URL}, "apps/shop/prod")
	if err := s.Inject(gitserver.Fault{On: "git-upload-pack", Stall: true}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	within(t, 20*time.Second, func() {
		_, err := fs.ReadFile(snap.Read(ctx, func(fetch func() error) error { return fetch() }), "apps/shop/base/vs.yaml")
		wantKind(t, err, repos.KindTimeout)
		read(t, snap.FS(), "apps/shop/prod/kustomization.yaml") // what is here needs no server
	})
	if err := s.Heal(); err != nil {
		t.Fatal(err)
	}
	read(t, snap.FS(), "apps/shop/base/vs.yaml")
}

// A year of commits, four Moorings on one remote: packs are put together, what nobody needs goes, and what is in force can be read all the time.
func TestSparseYear(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := filtering(t, s, "mesh.git", estate())
	store, dir := open(t, repos.Keeping(repos.Options{}, 3, time.Millisecond, time.Millisecond))
	remote := repos.Remote{URL: repo.URL}
	folders := []string{"apps/shop/prod", "apps/shop/base", "apps/other-1", "apps/other-2"}
	var largest int64
	const commits = 60
	for i := range commits {
		repo.Commit(gitserver.Change{Files: map[string]string{folders[i%4] + "/kustomization.yaml": fmt.Sprint("n: ", i), "apps/other-9/kustomization.yaml": fmt.Sprint(i)}})
		for _, folder := range folders {
			snap := wanted(t, store, remote, folder)
			read(t, snap.FS(), folder+"/kustomization.yaml")
		}
		largest = max(largest, sizes(t, dir))
		if packs := len(files(t, dir, ".pack")); packs > 30 {
			t.Fatalf("%d packs after %d commits", packs, i+1)
		}
	}
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
	t.Logf("at most %d bytes on disk", largest)
	if largest > 200<<10 {
		t.Errorf("at most %d bytes on disk in %d commits", largest, commits)
	}
	folder, err := filepath.Glob(filepath.Join(dir, "*", "objects"))
	if err != nil || len(folder) != 1 {
		t.Fatal(folder, err)
	}
	repo.Git("--git-dir", filepath.Dir(folder[0]), "verify-pack", files(t, dir, ".idx")[0])
}

// A damaged pack with files is noticed when it is read, and everything is fetched anew after that.
func TestSparseDamage(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := filtering(t, s, "mesh.git", estate())
	store, dir := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL}
	snap := wanted(t, store, remote, "apps/shop/prod")
	for _, name := range files(t, dir, ".pack") {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := 20; i < len(content); i++ {
			content[i] ^= 0x55
		}
		if err := errors.Join(os.Chmod(name, 0o600), os.WriteFile(name, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	again := reopen(t, dir, repos.Options{})
	after, err := again.Snapshot(t.Context(), remote, snap.Revision)
	if err != nil {
		t.Fatal(err)
	}
	checkTree(t, after.FS(), repo, "main")
}
