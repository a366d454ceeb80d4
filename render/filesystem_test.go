package render_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// files makes a repository.
func files(pairs ...string) fstest.MapFS {
	repo := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		repo[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return repo
}

// TestFilesAreListed: what was read is in the set, each once, sorted, with the hash of its content.
func TestFilesAreListed(t *testing.T) {
	repo := files(
		"o/kustomization.yaml", "resources: [../b, ../c]\nconfigMapGenerator: [{name: x, files: [data]}]\n",
		"o/data", "x", "o/unused.yaml", "",
		"b/Kustomization", "resources: [../c]\nnamePrefix: b-\n",
		"c/kustomization.yml", "resources: [a.yaml]\npatches: [{path: p.yaml}]\n",
		"c/a.yaml", configMap, "c/p.yaml", configMap)
	set, err := new(render.Renderer).Render(t.Context(), repo, "./o/")
	if err != nil {
		t.Fatal(err)
	}
	var want []render.File
	for _, name := range []string{"b/Kustomization", "c/a.yaml", "c/kustomization.yml", "c/p.yaml", "o/data", "o/kustomization.yaml"} {
		sum := sha256.Sum256(repo[name].Data)
		want = append(want, render.File{Path: name, Hash: hex.EncodeToString(sum[:])})
	}
	if diff := cmp.Diff(want, set.Files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// hashing is a file system that knows the ids of its files.
type hashing struct{ fstest.MapFS }

func (hashing) Hash(name string) (string, error) {
	if name == "bad.yaml" {
		return "", errors.New("object is missing")
	}
	return "blob-" + name, nil
}

func TestFilesHaveTheHashOfTheFileSystem(t *testing.T) {
	set, err := new(render.Renderer).Render(t.Context(), hashing{files("a.yaml", configMap)}, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]render.File{{Path: "a.yaml", Hash: "blob-a.yaml"}}, set.Files); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := new(render.Renderer).Render(t.Context(), hashing{files("bad.yaml", configMap)}, ""); err == nil {
		t.Error("a hash that cannot be had is left out")
	}
}

// brokenFS fails for one name, as an object store does that lacks an object.
type brokenFS struct {
	fstest.MapFS
	name string
}

var errStore = errors.New("the object store is broken")

func (b brokenFS) fails(op, name string) error {
	if name == b.name {
		return &fs.PathError{Op: op, Path: name, Err: errStore}
	}
	return nil
}

func (b brokenFS) Open(name string) (fs.File, error) {
	if err := b.fails("open", name); err != nil {
		return nil, err
	}
	return b.MapFS.Open(name)
}

func (b brokenFS) Lstat(name string) (fs.FileInfo, error) {
	if err := b.fails("lstat", name); err != nil {
		return nil, err
	}
	return b.MapFS.Lstat(name)
}

// TestBrokenStoreIsNotAbsence: kustomize takes any error of a file system for "is not there". A kustomization that cannot be read is not an
// empty folder.
func TestBrokenStoreIsNotAbsence(t *testing.T) {
	repo := files("kustomization.yaml", "resources: [a.yaml, b]\nconfigMapGenerator: [{name: x, files: [data]}]\n", "a.yaml", configMap,
		"data", "x", "b/kustomization.yaml", "resources: []\n", "plain/a.yaml", configMap, "plain/c/b.yaml", configMap)
	for _, test := range []struct{ dir, name string }{
		{".", "kustomization.yaml"},
		{".", "kustomization.yml"},
		{".", "Kustomization"},
		{".", "a.yaml"},
		{".", "data"},
		{".", "b"},
		{".", "b/kustomization.yaml"},
		{".", "b/kustomization.yml"},
		{"plain", "plain"},
		{"plain", "plain/a.yaml"},
		{"plain", "plain/c"},
		{"plain", "plain/c/b.yaml"},
		{"plain", "plain/Kustomization"},
	} {
		set, err := new(render.Renderer).Render(t.Context(), brokenFS{repo, test.name}, test.dir)
		if !errors.Is(err, errStore) {
			t.Errorf("%s without %s: %v, %v", test.dir, test.name, set, err)
		}
		if len(render.Errors(err)) > 0 {
			t.Errorf("%s without %s is told as a fault of the commit: %v", test.dir, test.name, err)
		}
	}
}

// noLinks hides that a file system has symbolic links.
type noLinks struct{ fs.FS }

// TestLinksOfARealFileSystem: os.DirFS follows links to anywhere, so it is not asked to.
func TestLinksOfARealFileSystem(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(secret, configMap)
	write(filepath.Join(dir, "k/kustomization.yaml"), "resources: [in.yaml, out.yaml]\nconfigMapGenerator: [{name: x, files: [up/secret.yaml]}]\n")
	write(filepath.Join(dir, "k/real.yaml"), configMap)
	for link, target := range map[string]string{
		"k/in.yaml": "real.yaml", "k/out.yaml": secret, "k/up": "../../" + filepath.Base(filepath.Dir(secret)), "p/out.yaml": secret, "f": filepath.Dir(secret),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	for name, fsys := range map[string]fs.FS{"DirFS": os.DirFS(dir), "Root": root.FS()} {
		for path, want := range map[string]string{
			"k": "k/kustomization.yaml:1: resources: out.yaml leads out of the repository\nk/kustomization.yaml:2: configMapGenerator: up/secret.yaml leads out of the repository",
			"p": "p/out.yaml: the symbolic link leads out of the repository",
			"f": "path f leads out of the repository; spec.path is a folder, relative to the root of the repository",
		} {
			_, err := new(render.Renderer).Render(t.Context(), fsys, path)
			if err == nil || err.Error() != want {
				t.Errorf("%s %s:\n%v\nwant\n%s", name, path, err, want)
			}
		}
	}
	// Without a word about links, what they lead to is what the file system says it is.
	if _, err := new(render.Renderer).Render(t.Context(), noLinks{root.FS()}, "p"); err == nil {
		t.Error("a root that refuses a link is taken for an empty folder")
	}
}

// TestSubmodules: what was not fetched is not left out.
func TestSubmodules(t *testing.T) {
	repo := files("p/a.yaml", configMap, "k/kustomization.yaml", "resources: [sub, ../k/sub]\nconfigMapGenerator: [{name: x, files: [sub]}]\n")
	for _, name := range []string{"p/sub", "k/sub"} {
		repo[name] = &fstest.MapFile{Mode: fs.ModeIrregular}
	}
	for dir, want := range map[string]string{
		"p":     "p/sub: it is neither a file nor a folder: a submodule is not fetched; copy its files here, or set spec.source.recurseSubmodules: true",
		"p/sub": "path p/sub is neither a file nor a folder: a submodule is not fetched; copy its files here, or set spec.source.recurseSubmodules: true",
		"k":     "k/kustomization.yaml:1: resources: sub is neither a file nor a folder: a submodule is not fetched; copy its files here",
	} {
		_, err := new(render.Renderer).Render(t.Context(), repo, dir)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant\n%s", dir, err, want)
		}
	}
}

func TestContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, repo := range []fstest.MapFS{files("kustomization.yaml", "resources: []\n"), files("a.yaml", configMap)} {
		if _, err := new(render.Renderer).Render(ctx, repo, "."); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// stalling is a file system that stops at one name until it is let go, the second time that the name is read.
type stalling struct {
	fstest.MapFS
	at      string
	reached chan struct{}
	release chan struct{}
}

func (s stalling) Lstat(name string) (fs.FileInfo, error) {
	if name == s.at {
		s.reached <- struct{}{}
		<-s.release
	}
	return s.MapFS.Lstat(name)
}

// TestStalledReadEndsWithTheContext: the file system is given the context by who made it; Render looks at it between two files.
func TestStalledReadEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	repo := stalling{files("a.yaml", configMap, "b.yaml", configMap, "c.yaml", "not: read"), "b.yaml", make(chan struct{}, 1), make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := new(render.Renderer).Render(ctx, repo, ".")
		done <- err
	}()
	<-repo.reached
	cancel()
	close(repo.release)
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

func TestErrorsAreTakenApart(t *testing.T) {
	_, err := new(render.Renderer).Render(t.Context(), files("a.yaml", "a: [", "b.yaml", "kind: X"), ".")
	var got []string
	for _, e := range render.Errors(err) {
		got = append(got, render.Origin{File: e.File, Line: e.Line}.String())
	}
	if diff := cmp.Diff([]string{"a.yaml:1", "b.yaml:1"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if render.Errors(nil) != nil || render.Errors(errStore) != nil {
		t.Error("errors of others are taken for ours")
	}
	if got := strings.Count(err.Error(), "\n"); got != 1 {
		t.Errorf("one line each: %v", err)
	}
}

// TestMissesAreNoted: a result depends on what is not there too. A file that appears under one of these names changes it.
func TestMissesAreNoted(t *testing.T) {
	repo := files("o/kustomization.yaml", "resources: [../b]\n", "b/kustomization.yml", "resources: [a.yaml]\n", "b/a.yaml", configMap, "p/a.yaml", configMap, "p/c/x", "")
	for dir, want := range map[string][2][]string{
		"o": {{"b/Kustomization", "b/kustomization.yaml", "o/Kustomization", "o/kustomization.yml"}, nil},
		"p": {{"p/Kustomization", "p/c/Kustomization", "p/c/kustomization.yaml", "p/c/kustomization.yml", "p/kustomization.yaml", "p/kustomization.yml"}, {"p", "p/c"}},
	} {
		misses, listed, err := render.Trace(repo, dir)
		if diff := cmp.Diff(want, [2][]string{misses, listed}); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%s", dir, err, diff)
		}
	}
}

// panicking is a file system with a fault of its own.
type panicking struct{ fstest.MapFS }

func (panicking) Lstat(string) (fs.FileInfo, error) { panic("out of order") }

// TestPanic: one unit's fault is its own.
func TestPanic(t *testing.T) {
	_, err := new(render.Renderer).Render(t.Context(), panicking{files("a.yaml", configMap)}, ".")
	p, ok := errors.AsType[*render.Panic](err)
	if !ok || p.Value != "out of order" || !strings.Contains(string(p.Stack), "panicking") || strings.Contains(err.Error(), "goroutine") {
		t.Errorf("got %v, %v", err, p)
	}
}

// TestSecretsAreNotShown: kustomize quotes patches, configurations and whole objects in its errors.
func TestSecretsAreNotShown(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range archives {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		before, after, failed := strings.Cut(string(text), "-- want.err --")
		if !failed || !strings.Contains(before, "sesame") {
			continue
		}
		checked++
		if strings.Contains(after, "sesame") || strings.Contains(after, "mellon") {
			t.Errorf("%s shows a secret", name)
		}
	}
	if checked < 8 {
		t.Errorf("only %d archives have a secret in them", checked)
	}
}
