package repos_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

type hasher interface {
	Hash(name string) (string, error)
}

// snapshotOf commits a change to an empty repository and takes it through a server.
func snapshotOf(t testing.TB, opts repos.Options, c gitserver.Change) (*repos.Snapshot, *gitserver.TestRepo) {
	t.Helper()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", nil)
	repo.Commit(c)
	store, _ := open(t, opts)
	return pull(t, store, repos.Remote{URL: repo.URL}, main), repo
}

func TestFS(t *testing.T) {
	t.Parallel()
	snap, repo := snapshotOf(t, repos.Options{}, gitserver.Change{
		Files: map[string]string{
			"kustomization.yaml":   "resources: [base]\n",
			"base/service.yaml":    "kind: Service\n",
			"base/empty":           "",
			"a/b/c/d/e/deep.yaml":  "deep: true\n",
			"a.b":                  "sorts between a and a/",
			"a-b":                  "so does this",
			"Case/x":               "upper",
			"case/x":               "lower",
			"File.yaml":            "upper",
			"file.yaml":            "lower",
			"ünï/cödé & more.yaml": "utf8",
		},
		Links: map[string]string{
			"link.yaml":     "base/service.yaml",
			"dir":           "base",
			"a/up":          "../base",
			"a/b/roundtrip": "../../a/./b/../../dir/service.yaml",
		},
	})
	fsys := snap.FS()
	if err := fstest.TestFS(fsys, "kustomization.yaml", "base/service.yaml", "a/b/c/d/e/deep.yaml", "link.yaml", "Case/x", "case/x"); err != nil {
		t.Error(err)
	}
	checkTree(t, snap.FS(), repo, "main")
	for name, want := range map[string]string{
		"link.yaml":         "kind: Service\n",
		"dir/service.yaml":  "kind: Service\n",
		"a/up/service.yaml": "kind: Service\n",
		"a/b/roundtrip":     "kind: Service\n",
		"Case/x":            "upper",
		"case/x":            "lower",
		"File.yaml":         "upper",
		"base/empty":        "",
	} {
		if got := read(t, fsys, name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if target, err := fs.ReadLink(fsys, "a/up"); target != "../base" || err != nil {
		t.Errorf("a/up leads to %q, %v", target, err)
	}
	if _, err := fs.ReadLink(fsys, "base"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("read link of a folder: %v", err)
	}
	entries, err := fs.ReadDir(fsys, "dir")
	if err != nil || len(entries) != 2 || entries[0].Name() != "empty" {
		t.Errorf("entries through a link: %v, %v", entries, err)
	}
	for _, name := range []string{"none", "base/none", "base/service.yaml/x", "none/x"} {
		for op, err := range map[string]error{
			"open": func() error { _, err := fsys.Open(name); return err }(),
			"stat": func() error { _, err := fs.Stat(fsys, name); return err }(),
			"hash": func() error { _, err := fsys.(hasher).Hash(name); return err }(),
		} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s %s: %v, want it not to exist", op, name, err)
			}
		}
	}
	for _, name := range []string{"../etc/passwd", "/etc/passwd", "base/../base", "", "./base", "base/"} {
		if _, err := fsys.Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("open %q: %v, want it to be invalid", name, err)
		}
	}
	info, err := fs.Stat(fsys, "base/service.yaml")
	if err != nil || info.Size() != 14 || !info.ModTime().Equal(snap.Time) || info.Mode() != 0o444 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	snap, repo := snapshotOf(t, repos.Options{}, gitserver.Change{
		Files: map[string]string{"base/f": "x"},
		Links: map[string]string{"l": "base/f", "d": "base"},
	})
	for name, rev := range map[string]string{
		".": "main^{tree}", "base": "main:base", "base/f": "main:base/f", "l": "main:base/f", "d": "main:base", "d/f": "main:base/f",
	} {
		got, err := snap.FS().(hasher).Hash(name)
		if want := repo.Git("rev-parse", rev); got != want || err != nil {
			t.Errorf("hash of %s = %s, %v; want %s", name, got, err, want)
		}
	}
}

// What cannot be read says why, and what to do; what lies beside it can be read.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	const pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
	snap, _ := snapshotOf(t, repos.Options{}, gitserver.Change{
		Files: map[string]string{"ok": "fine", "lfs.bin": pointer, "long": strings.Repeat("x", 9000)},
		Links: map[string]string{
			"out": "../../etc/passwd", "abs": "/etc/passwd", "dir/out": "../..", "a": "b", "b": "a", "self": "self", "self/in": "x",
			"sub-link": "sub/file", "dangling": "none", "empty-ish": ".", "chain": "out", "twice": "dir/../../x",
		},
		Submodules: map[string]string{"sub": someID},
	})
	fsys := snap.FS()
	for _, c := range []struct {
		name string
		says string
	}{
		{"lfs.bin", "LFS pointer"},
		{"sub", "is a submodule at commit " + someID},
		{"sub/file", "is a submodule"},
		{"sub-link", "is a submodule"},
		{"out", "leads out of the repository"},
		{"chain", "leads out of the repository"},
		{"twice", "leads out of the repository"},
		{"dir/out", "leads out of the repository"},
		{"abs", "absolute target"},
		{"a", "more than 40 links"},
		{"b", "more than 40 links"},
	} {
		for op, read := range map[string]func() error{
			"read": func() error { _, err := fs.ReadFile(fsys, c.name); return err },
			"open": func() error { _, err := fsys.Open(c.name); return err },
		} {
			err := read()
			wantKind(t, err, repos.KindContent, c.says, c.name)
			if perr, ok := errors.AsType[*fs.PathError](err); !ok || perr.Op != op || perr.Path != c.name {
				t.Errorf("%s %s: %#v, want a PathError", op, c.name, err)
			}
			if repos.HintOf(err) == "" {
				t.Errorf("%s: no hint", c.name)
			}
		}
	}
	if _, err := fs.Stat(fsys, "dangling"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat of a dangling link: %v", err)
	}
	if got := read(t, fsys, "ok"); got != "fine" {
		t.Errorf("ok = %q", got)
	}
	// Walking goes past all of it.
	var seen []string
	if err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		seen = append(seen, name)
		return err
	}); err != nil || len(seen) < 15 {
		t.Errorf("walk: %v after %q", err, seen)
	}
	if info, err := fs.Lstat(fsys, "sub"); err != nil || info.Mode().Type() != fs.ModeIrregular {
		t.Errorf("submodule: %v, %v", info, err)
	}
}

// Many readers at once see the same.
func TestConcurrentReads(t *testing.T) {
	t.Parallel()
	tree := map[string]string{}
	for i := range 200 {
		tree[fmt.Sprintf("d%d/f%d.yaml", i%7, i)] = strings.Repeat(fmt.Sprintf("line %d\n", i%13), 50+i)
	}
	snap, _ := snapshotOf(t, repos.Options{}, gitserver.Change{Files: tree})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got := map[string]string{}
			err := fs.WalkDir(snap.FS(), ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					var content []byte
					content, err = fs.ReadFile(snap.FS(), name)
					got[name] = string(content)
					clear(content) // it is ours to change
				}
				return err
			})
			if diff := cmp.Diff(tree, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	wg.Wait()
}

func TestOpenFile(t *testing.T) {
	t.Parallel()
	snap, _ := snapshotOf(t, repos.Options{}, gitserver.Change{Files: map[string]string{"d/f": "content", "d/g": "", "d/h": ""}})
	f, err := snap.FS().Open("d/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.(io.Seeker).Seek(3, io.SeekStart); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(f); string(rest) != "tent" || err != nil {
		t.Errorf("rest = %q, %v", rest, err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != 7 || info.Name() != "f" {
		t.Errorf("info = %v, %v", info, err)
	}
	d, err := snap.FS().Open("d")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		entries, err := d.(fs.ReadDirFile).ReadDir(2)
		for _, e := range entries {
			names = append(names, path.Join("d", e.Name()))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"d/f", "d/g", "d/h"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if _, err := d.Read(nil); err == nil {
		t.Error("a folder can be read")
	}
	if err := errors.Join(f.Close(), d.Close()); err != nil {
		t.Error(err)
	}
}
