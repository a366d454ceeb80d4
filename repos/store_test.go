package repos_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// sizes adds up the packs below a folder.
func sizes(t testing.TB, dir string) int64 {
	t.Helper()
	var n int64
	for _, name := range files(t, dir, ".pack") {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// packsOf tells over how many packs a commit is spread.
func packsOf(t testing.TB, dir string, c repos.Commit) int {
	t.Helper()
	marks := files(t, dir, "commits/"+string(c))
	if len(marks) != 1 {
		t.Fatalf("%d marks for %s, want 1", len(marks), c)
	}
	content, err := os.ReadFile(marks[0])
	if err != nil {
		t.Fatal(err)
	}
	var mark struct{ Packs []string }
	if err := json.Unmarshal(content, &mark); err != nil {
		t.Fatal(err)
	}
	return len(mark.Packs)
}

// A ref that did not move costs one listing and no fetch; a commit that is here costs nothing at all, also in the next
// process.
func TestNoFetchWhenNothingMoved(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
		repo.SetBranch("other", "main")
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		store, dir := open(t, repos.Options{})
		first := pull(t, store, remote, main)
		after := s.Counts("")
		for range 3 {
			pull(t, store, remote, main)
		}
		pull(t, store, remote, repos.Ref{Branch: "other"}) // the same commit by another name
		store = reopen(t, dir, repos.Options{})
		pull(t, store, remote, main)
		got := s.Counts("")
		if got.UploadPack != after.UploadPack || got.InfoRefs != after.InfoRefs+5 {
			t.Errorf("counts were %+v and are %+v, want 5 listings more", after, got)
		}
		rev, err := store.Resolve(t.Context(), remote, repos.Ref{Commit: string(first.Revision.Commit)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Snapshot(t.Context(), remote, rev); err != nil {
			t.Fatal(err)
		}
		if again := s.Counts(""); again != got {
			t.Errorf("a commit that is here: counts were %+v and are %+v", got, again)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Snapshot(t.Context(), remote, rev); err != nil {
			t.Errorf("without the server: %v", err)
		}
	})
}

// Any damage to the store is mended by fetching anew, in the process that has it open and in the next one.
func TestDamagedStore(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	tree := map[string]string{}
	for i := range 50 {
		tree[fmt.Sprintf("d%d/f%d", i%5, i)] = strings.Repeat(fmt.Sprint(i), 100)
	}
	repo := s.Repo(t, "shop.git", tree)
	remote := repos.Remote{URL: repo.URL}
	older := repo.Resolve("main")
	newest := repo.Commit(gitserver.Change{Files: map[string]string{"d1/f1": "changed"}})

	each := func(t *testing.T, dir, suffix string, do func(name string) error) {
		t.Helper()
		names := files(t, dir, suffix)
		if len(names) == 0 {
			t.Fatalf("no %s in the store", suffix)
		}
		for _, name := range names {
			if err := do(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	truncate := func(name string) error {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		return os.Truncate(name, info.Size()/2)
	}
	flip := func(name string) error {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 0xff
		return os.WriteFile(name, content, 0o600)
	}
	empty := func(name string) error { return os.Truncate(name, 0) }
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		live   bool // seen also by the process that has the store open
	}{
		{"pack truncated", func(t *testing.T, dir string) { each(t, dir, ".pack", truncate) }, true},
		{"pack emptied", func(t *testing.T, dir string) { each(t, dir, ".pack", empty) }, true},
		{"pack removed", func(t *testing.T, dir string) { each(t, dir, ".pack", os.Remove) }, true},
		{"pack changed", func(t *testing.T, dir string) { each(t, dir, ".pack", flip) }, true},
		{"index truncated", func(t *testing.T, dir string) { each(t, dir, ".idx", truncate) }, false},
		{"index emptied", func(t *testing.T, dir string) { each(t, dir, ".idx", empty) }, false},
		{"index changed", func(t *testing.T, dir string) { each(t, dir, ".idx", flip) }, false},
		{"mark emptied", func(t *testing.T, dir string) { each(t, dir, "commits/"+older, empty) }, true},
		{"mark lies", func(t *testing.T, dir string) {
			each(t, dir, "commits/"+older, func(name string) error {
				return os.WriteFile(name, []byte(`{"packs":["../../../etc/passwd"]}`), 0o600)
			})
		}, true},
		{"marks removed, as by a crash before they were written", func(t *testing.T, dir string) { each(t, dir, "commits/"+older, os.Remove) }, true},
		{"leftovers of a crash", func(t *testing.T, dir string) {
			each(t, dir, "commits/"+older, os.Remove)
			each(t, dir, ".idx", os.Remove)
			each(t, dir, ".pack", func(name string) error {
				return errors.Join(truncate(name), os.Rename(name, filepath.Join(filepath.Dir(name), "incoming-123")))
			})
		}, true},
	} {
		for _, next := range []bool{false, true} {
			if !next && !c.live {
				continue
			}
			t.Run(fmt.Sprintf("%s, next process %v", c.name, next), func(t *testing.T) {
				store, dir := open(t, repos.Options{})
				repo.SetBranch("main", older)
				old := pull(t, store, remote, main)
				c.damage(t, dir)
				if next {
					store = reopen(t, dir, repos.Options{})
				}
				checkTree(t, pull(t, store, remote, main).FS(), repo, older)
				c.damage(t, dir)
				if next {
					store = reopen(t, dir, repos.Options{})
				}
				repo.SetBranch("main", newest) // damage that is met while building on it
				checkTree(t, pull(t, store, remote, main).FS(), repo, newest)
				if c.name == "pack removed" {
					checkTree(t, old.FS(), repo, older) // who reads it goes on reading
				}
			})
		}
	}
}

// Damage that is seen only while a file is read is an error then, and mended the next time.
func TestDamageWhileReading(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	content := noise(t, 100_000)
	repo := s.Repo(t, "shop.git", map[string]string{"f": content})
	remote := repos.Remote{URL: repo.URL}
	store, dir := open(t, repos.Options{})
	snap := pull(t, store, remote, main)
	pack := files(t, dir, ".pack")[0]
	damaged, err := os.ReadFile(pack)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(damaged) / 3; i < len(damaged)/2; i++ {
		damaged[i] ^= 0xff
	}
	if err := os.WriteFile(pack, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = fs.ReadFile(snap.FS(), "f")
	wantKind(t, err, repos.KindStore, "damaged")
	if got := read(t, pull(t, store, remote, main).FS(), "f"); got != content {
		t.Error("the file is not what it was after the store was mended")
	}
}

// Each set of credentials has a store of its own, so what one may read the other does not get.
func TestStoresAreApart(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, Username: "ship", Password: "rope"})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	store, dir := open(t, repos.Options{})
	right := repos.Remote{URL: repo.URL, Auth: auth(t, map[string]string{"ca.crt": string(s.CA()), "username": "ship", "password": "rope"})}
	wrong := repos.Remote{URL: repo.URL, Auth: auth(t, map[string]string{"ca.crt": string(s.CA()), "username": "ship", "password": "twine"})}
	snap := pull(t, store, right, main)
	_, err := store.Snapshot(t.Context(), wrong, snap.Revision)
	wantKind(t, err, repos.KindAuth, "401")
	_, err = store.Snapshot(t.Context(), repos.Remote{URL: repo.URL, Auth: auth(t, map[string]string{"ca.crt": string(s.CA())})}, snap.Revision)
	wantKind(t, err, repos.KindAuth, "401")
	for _, name := range files(t, dir, "") {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "rope") || strings.Contains(name, "rope") {
			t.Errorf("%s holds the password", name)
		}
	}
	// A Secret that was changed is taken up at once.
	wrong.Auth = right.Auth
	if _, err := store.Snapshot(t.Context(), wrong, snap.Revision); err != nil {
		t.Error(err)
	}
}

// There is no working tree: the store holds packs and marks, and git can look into it.
func TestStoreIsABareRepository(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"dir/marker-file.yaml": "x"})
	store, dir := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL}
	pull(t, store, remote, main)
	repo.Commit(gitserver.Change{Files: map[string]string{"dir/marker-file.yaml": strings.Repeat("y\n", 100)}})
	snap := pull(t, store, remote, main)
	read(t, snap.FS(), "dir/marker-file.yaml")
	if found := files(t, dir, "marker-file.yaml"); len(found) > 0 {
		t.Errorf("written to disk: %q", found)
	}
	folders, err := os.ReadDir(dir)
	if err != nil || len(folders) != 1 {
		t.Fatalf("%d folders, %v; want one for the one remote", len(folders), err)
	}
	bare := gitserver.Repo{Dir: filepath.Join(dir, folders[0].Name())}
	got, err := bare.Git(t.Context(), "ls-tree", "-r", "--name-only", string(snap.Revision.Commit))
	if err != nil || got != "dir/marker-file.yaml" {
		t.Errorf("git sees %q, %v", got, err)
	}
	for _, idx := range files(t, dir, ".idx") {
		if _, err := bare.Git(t.Context(), "verify-pack", idx); err != nil {
			t.Error(err)
		}
	}
}

// What nobody asks for any more goes from the disk, and what is in use stays.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"v": "0"})
	other := s.Repo(t, "other.git", map[string]string{"v": "0"})
	store, dir := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL}
	pull(t, store, repos.Remote{URL: other.URL}, main)
	for i := range 30 {
		repo.Commit(gitserver.Change{Files: map[string]string{"v": fmt.Sprint(i)}})
		pull(t, store, remote, main)
	}
	before := len(files(t, dir, ".pack"))
	if got := len(files(t, dir, ".idx")); got != before {
		t.Errorf("%d packs and %d indexes", before, got)
	}
	age := func(by time.Duration) {
		for _, name := range files(t, dir, "") {
			then := time.Now().Add(-by)
			if err := os.Chtimes(name, then, then); err != nil {
				t.Fatal(err)
			}
		}
	}
	age(2 * time.Hour)
	repo.Commit(gitserver.Change{Files: map[string]string{"v": "last"}})
	snap := pull(t, store, remote, main)
	marks := 0
	for _, name := range files(t, dir, "") {
		if strings.Contains(name, "/commits/") {
			marks++
		}
	}
	if marks != 8+1 {
		t.Errorf("%d commits are kept, want the last 8 of one remote and the one of the other", marks)
	}
	if after := len(files(t, dir, ".pack")); after >= before || after == 0 {
		t.Errorf("%d packs were there and %d are, want fewer", before, after)
	}
	checkTree(t, snap.FS(), repo, "main")

	age(25 * time.Hour) // the folder of the other remote is removed by whoever opens the store next
	store = reopen(t, dir, repos.Options{})
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
	if folders, err := os.ReadDir(dir); err != nil || len(folders) != 1 {
		t.Errorf("%d folders, %v; want one", len(folders), err)
	}
	pull(t, store, repos.Remote{URL: other.URL}, main)
}

// file:// is for tests, and only when they say so.
func TestLocalRepository(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, map[string]string{"f": "x"})
	remote := repos.Remote{URL: "file://" + repo.Dir}
	store, _ := open(t, repos.Options{})
	_, err := store.Resolve(t.Context(), remote, main)
	wantKind(t, err, repos.KindURL, "path on this machine")
	_, err = store.Snapshot(t.Context(), remote, repos.Revision{Commit: someID})
	wantKind(t, err, repos.KindURL, "path on this machine")

	store, _ = open(t, repos.Options{AllowFile: true})
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
	repo.Commit(gitserver.Change{Files: map[string]string{"f": "y"}})
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")
	_, err = store.Resolve(t.Context(), repos.Remote{URL: "file:///none"}, main)
	wantKind(t, err, repos.KindNotFound, "none")
	_, err = store.Resolve(t.Context(), repos.Remote{URL: "file://" + t.TempDir()}, main)
	wantKind(t, err, repos.KindNotFound, "not appear to be a git repository")
}

// Trouble with our own disk is not taken for the server's.
func TestStoreThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	remote := repos.Remote{URL: repo.URL}
	store, dir := open(t, repos.Options{})
	pull(t, store, remote, main)
	folders, err := os.ReadDir(dir)
	if err != nil || len(folders) != 1 {
		t.Fatalf("%d folders, %v", len(folders), err)
	}
	folder := filepath.Join(dir, folders[0].Name())
	inTheWay := func(name string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(name), os.WriteFile(name, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	repo.Commit(gitserver.Change{Files: map[string]string{"f": "y"}})
	inTheWay(filepath.Join(folder, "objects"))
	_, err = tryPull(t.Context(), store, remote, main)
	wantKind(t, err, repos.KindStore, "store's folder")
	inTheWay(folder)
	_, err = tryPull(t.Context(), store, remote, main)
	wantKind(t, err, repos.KindStore, "store's folder")
	if err := os.Remove(folder); err != nil { // as somebody who cleans up does
		t.Fatal(err)
	}
	checkTree(t, pull(t, store, remote, main).FS(), repo, "main")

	if _, err := repos.Open(filepath.Join(dir, folders[0].Name(), "HEAD"), repos.Options{}); err == nil {
		t.Error("a file can be opened as a store")
	}
	if _, err := repos.Open(dir, repos.Options{Timeout: -1}); err == nil {
		t.Error("a negative timeout is taken")
	}
}
