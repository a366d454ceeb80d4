package repos_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// entryFor is a submodule in .gitmodules, with what Git would do for it and nobody does here.
func entryFor(path, url string) string {
	return fmt.Sprintf("[submodule %q]\n\tpath = %s\n\turl = %s\n\tbranch = other\n\tupdate = !touch /tmp/never\n", path, path, url)
}

// recursive is a remote whose submodules are shown.
func recursive(repo *gitserver.TestRepo, a repos.Auth) repos.Remote {
	return repos.Remote{URL: repo.URL, Auth: a, RecurseSubmodules: true}
}

// fleet is a repository with two submodules, of which one has another in it, on one server.
type fleet struct {
	ship, base, deep *gitserver.TestRepo
	baseAt, deepAt   string
}

func newFleet(t testing.TB, s *gitserver.Server, absolute bool) fleet {
	t.Helper()
	f := fleet{
		deep: s.Repo(t, "libs/deep.git", map[string]string{"deep.yaml": "kind: Deep\n"}),
		base: s.Repo(t, "libs/base.git", map[string]string{"base.yaml": "kind: Old\n"}),
		ship: s.Repo(t, "mesh/ship.git", nil),
	}
	f.deepAt = f.deep.Resolve("main")
	f.baseAt = f.base.Commit(gitserver.Change{
		Time:       time.Now().Add(-time.Hour), // each file is as old as its own commit
		Files:      map[string]string{"base.yaml": "kind: Base\n", ".gitmodules": entryFor("deep", "../deep.git"), "dir/file.yaml": "kind: File\n"},
		Links:      map[string]string{"inner.yaml": "dir/file.yaml", "dir/nested.yaml": "../deep/deep.yaml"},
		Submodules: map[string]string{"deep": f.deepAt},
	})
	f.base.Commit(gitserver.Change{Files: map[string]string{"base.yaml": "kind: Newer\n"}}) // which nobody asks for
	one, two := "../../libs/base.git", "./../../libs/deep.git/"
	if absolute {
		one, two = f.base.URL, f.deep.URL
	}
	f.ship.Commit(gitserver.Change{
		Files:      map[string]string{"own.yaml": "kind: Own\n", "vendor/beside.yaml": "kind: Beside\n", ".gitmodules": entryFor("vendor/base", one) + entryFor("vendor/deep", two)},
		Links:      map[string]string{"into.yaml": "vendor/base/base.yaml", "base": "vendor/base", "vendor/through.yaml": "base/deep/deep.yaml"},
		Submodules: map[string]string{"vendor/base": f.baseAt, "vendor/deep": f.deepAt},
	})
	return f
}

func TestSubmodules(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"relative", "absolute"} {
		t.Run(form, func(t *testing.T) {
			s := gitserver.HTTP(t, gitserver.HTTPOptions{})
			f := newFleet(t, s, form == "absolute")
			store, _ := open(t, repos.Options{})
			fsys := pull(t, store, recursive(f.ship, repos.Auth{}), main).FS()

			// What does not lead into a submodule needs none, nor does a look at what there is.
			if got := read(t, fsys, "own.yaml"); got != "kind: Own\n" {
				t.Errorf("own.yaml = %q", got)
			}
			entries, err := fs.ReadDir(fsys, "vendor")
			if err != nil || len(entries) != 4 || !entries[0].IsDir() || entries[0].Name() != "base" || entries[3].Type() != fs.ModeSymlink {
				t.Errorf("vendor has %v, %v", entries, err)
			}
			for _, look := range []func(fs.FS, string) (fs.FileInfo, error){fs.Stat, fs.Lstat} {
				if info, err := look(fsys, "vendor/base"); err != nil || !info.IsDir() || info.Name() != "base" {
					t.Errorf("vendor/base is %v, %v", info, err)
				}
			}
			if _, err := fsys.(hasher).Hash("vendor/base"); err != nil {
				t.Error(err)
			}
			if n := s.Counts("libs/base.git"); n.InfoRefs+n.UploadPack > 0 {
				t.Errorf("a submodule was asked for: %+v", n)
			}

			for name, want := range map[string]string{
				"vendor/base/base.yaml":       "kind: Base\n",
				"vendor/base/inner.yaml":      "kind: File\n",
				"vendor/base/deep/deep.yaml":  "kind: Deep\n",
				"vendor/base/dir/nested.yaml": "kind: Deep\n",
				"vendor/deep/deep.yaml":       "kind: Deep\n",
				"into.yaml":                   "kind: Base\n",
				"base/dir/file.yaml":          "kind: File\n",
				"vendor/through.yaml":         "kind: Deep\n",
			} {
				if got := read(t, fsys, name); got != want {
					t.Errorf("%s = %q, want %q", name, got, want)
				}
			}
			if n := s.Counts("libs/base.git"); n.UploadPack != 1 {
				t.Errorf("a submodule was fetched %d times", n.UploadPack)
			}
			for name, rev := range map[string]string{"vendor/base/base.yaml": f.baseAt + ":base.yaml", "vendor/base/dir/file.yaml": f.baseAt + ":dir/file.yaml"} {
				if got, err := fsys.(hasher).Hash(name); err != nil || got != f.base.Git("rev-parse", rev) {
					t.Errorf("hash of %s = %s, %v", name, got, err)
				}
			}
			if err := fstest.TestFS(fsys, "own.yaml", "vendor/base/base.yaml", "vendor/base/deep/deep.yaml", "vendor/deep/deep.yaml", "vendor/through.yaml"); err != nil {
				t.Error(err)
			}
			for _, name := range []string{"vendor/base/none", "vendor/base/base.yaml/x", "vendor/base/deep/none"} {
				if _, err := fs.Stat(fsys, name); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("stat %s: %v", name, err)
				}
			}

			// Without the word for it, all as ever.
			plain := pull(t, store, repos.Remote{URL: f.ship.URL}, main).FS()
			_, err = fs.ReadFile(plain, "vendor/base/base.yaml")
			wantKind(t, err, repos.KindContent, `"base" is a submodule at commit `+f.baseAt, "spec.source.recurseSubmodules")
		})
	}
}

// The credentials of the source open its submodules, and an address as SSH has it is understood.
func TestPrivateSubmodules(t *testing.T) {
	t.Parallel()
	const password = "s3cret-password"
	basic := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, Username: "ship", Password: password})
	ssh := gitserver.SSH(t, gitserver.SSHOptions{})
	for name, c := range map[string]struct {
		server *gitserver.Server
		auth   repos.Auth
	}{
		"https": {basic, auth(t, map[string]string{"ca.crt": string(basic.CA()), "username": "ship", "password": password})},
		"ssh":   {ssh, sshAuth(t, ssh)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, c.server, false)
			for _, repo := range []*gitserver.TestRepo{f.base, f.deep} {
				repo.Config("uploadpack.allowReachableSHA1InWant", "true")
			}
			store, _ := open(t, repos.Options{})
			fsys := pull(t, store, recursive(f.ship, c.auth), main).FS()
			if got := read(t, fsys, "vendor/base/deep/deep.yaml"); got != "kind: Deep\n" {
				t.Errorf("it is %q", got)
			}
		})
	}
}

// What a folder with submodules renders to is found again by whoever has the same credentials for the same source alone.
func TestSubmoduleHashes(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true})
	f := newFleet(t, s, false)
	store, _ := open(t, repos.Options{})
	hash := func(user string, recurse bool) string {
		t.Helper()
		remote := recursive(f.ship, auth(t, map[string]string{"ca.crt": string(s.CA()), "username": user, "password": "x"}))
		remote.RecurseSubmodules = recurse
		id, err := pull(t, store, remote, main).FS().(hasher).Hash("vendor")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	jane, again, rosa, tree := hash("jane", true), hash("jane", true), hash("rosa", true), hash("jane", false)
	if jane != again || jane == rosa || jane == tree {
		t.Errorf("jane %s, again %s, rosa %s, without submodules %s", jane, again, rosa, tree)
	}
	f.ship.Commit(gitserver.Change{Submodules: map[string]string{"vendor/deep": f.baseAt}})
	if moved := hash("jane", true); moved == jane {
		t.Error("a submodule at another commit has left the hash as it was")
	}
}

// Every way in which a submodule cannot be had is told with its path, its address, and what to do.
func TestSubmodulesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	other := gitserver.HTTP(t, gitserver.HTTPOptions{Root: s.Root})
	base := s.Repo(t, "base.git", map[string]string{"f.yaml": "x"})
	at := base.Resolve("main")
	ship := s.Repo(t, "ship.git", nil)
	store, _ := open(t, repos.Options{})
	long := strings.Repeat("# nothing\n", 20_000)
	const elsewhere = "the source's own server"
	for _, c := range []struct {
		name    string
		modules string // .gitmodules
		commit  string
		kind    repos.Kind
		says    []string
	}{
		{"another port", entryFor("sub", other.RepoURL("base.git")), at, repos.KindContent, []string{other.Addr(), "another server", elsewhere}},
		{"another scheme", entryFor("sub", "https://"+s.Addr()+"/base.git"), at, repos.KindContent, []string{"another server", elsewhere}},
		{"another host", entryFor("sub", "http://localhost/base.git"), at, repos.KindContent, []string{"localhost", "another server"}},
		{"a file", entryFor("sub", "file://"+base.Dir), at, repos.KindContent, []string{"path on this machine", elsewhere}},
		{"a path", entryFor("sub", base.Dir), at, repos.KindContent, []string{"path on this machine"}},
		{"a program", entryFor("sub", "ext::sh -c touch% /tmp/never"), at, repos.KindContent, []string{"not fetched from"}},
		{"an option", entryFor("sub", "--upload-pack=touch"), at, repos.KindContent, []string{"dash"}},
		{"a password", entryFor("sub", "https://jane:hidden@"+s.Addr()+"/base.git"), at, repos.KindContent, []string{"holds credentials"}},
		{"too far up", entryFor("sub", "../../../base.git"), at, repos.KindContent, []string{"leads out of the server"}},
		{"up in the middle", entryFor("sub", "../x/../base.git"), at, repos.KindContent, []string{`".."`}},
		{"a query", entryFor("sub", "../base.git?x=y"), at, repos.KindContent, []string{"query"}},
		{"no entry", entryFor("other", "../base.git"), at, repos.KindContent, []string{".gitmodules has no url for it", "git submodule add"}},
		{"no file", "", at, repos.KindContent, []string{".gitmodules has no url for it"}},
		{"no url", "[submodule \"sub\"]\n\tpath = sub\n", at, repos.KindContent, []string{"has no url"}},
		{"a name that leads out", "[submodule \"../../x\"]\n\tpath = sub\n\turl = ../base.git\n", at, repos.KindContent, []string{"has no url"}},
		{"two entries", entryFor("sub", "../base.git") + strings.Replace(entryFor("sub", "../other.git"), `"sub"`, `"again"`, 1), at, repos.KindContent, []string{"two entries"}},
		{"no syntax", "[submodule \"sub\"\npath", at, repos.KindContent, []string{"does not parse"}},
		{"too long", entryFor("sub", "../base.git") + long, at, repos.KindLimit, []string{"128 KiB"}},
		{"no such repository", entryFor("sub", "../none.git"), at, repos.KindNotFound, []string{s.RepoURL("none.git")}},
		{"no such commit", entryFor("sub", "../base.git"), someID, repos.KindCommitNotFound, []string{base.URL, someID, "push it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ship.Commit(gitserver.Change{
				Replace: true, Files: map[string]string{".gitmodules": c.modules, "f.yaml": "beside"}, Submodules: map[string]string{"sub": c.commit},
			})
			if c.modules == "" {
				ship.Commit(gitserver.Change{Remove: []string{".gitmodules"}})
			}
			fsys := pull(t, store, recursive(ship, repos.Auth{}), main).FS()
			_, err := fs.ReadFile(fsys, "sub/f.yaml")
			wantKind(t, err, c.kind, append(c.says, `submodule "sub" at commit `+c.commit)...)
			if text := err.Error() + repos.HintOf(err); strings.Contains(text, "hidden") || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v; %s", err, repos.HintOf(err))
			}
			if _, again := fs.ReadDir(fsys, "sub"); repos.KindOf(again) != c.kind {
				t.Errorf("asked again, it says %v", again)
			}
			if got := read(t, fsys, "f.yaml"); got != "beside" {
				t.Errorf("what lies beside it is %q", got)
			}
		})
	}
	ship.Commit(gitserver.Change{Replace: true, Links: map[string]string{".gitmodules": "real"}, Files: map[string]string{"real": entryFor("sub", "../base.git")}, Submodules: map[string]string{"sub": at}})
	_, err := fs.ReadFile(pull(t, store, recursive(ship, repos.Auth{}), main).FS(), "sub/f.yaml")
	wantKind(t, err, repos.KindContent, ".gitmodules is no file")
}

// A link in a submodule stays in it, whoever follows the link.
func TestLinksInSubmodules(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	base := s.Repo(t, "base.git", nil)
	at := base.Commit(gitserver.Change{
		Files: map[string]string{"f.yaml": "inside", "a/b/c.yaml": "deeper"},
		Links: map[string]string{
			"out": "../secret.yaml", "a/out": "../../secret.yaml", "far": "a/b/../../../secret.yaml", "up": "..", "abs": "/etc/passwd", "round": "round",
			"b": "a/b", "around": "b/../../f.yaml", "tricky": "b/../../../secret.yaml", "fine": "a/b/../../f.yaml", "dangling": "a/none/../../../secret.yaml",
		},
	})
	ship := s.Repo(t, "ship.git", nil)
	ship.Commit(gitserver.Change{
		Files:      map[string]string{"secret.yaml": "the ship's own", ".gitmodules": entryFor("d/sub", "../base.git")},
		Links:      map[string]string{"back": "d/sub/a/../../../secret.yaml", "d/secret.yaml": "../secret.yaml"},
		Submodules: map[string]string{"d/sub": at},
	})
	store, _ := open(t, repos.Options{})
	fsys := pull(t, store, recursive(ship, repos.Auth{}), main).FS()
	for _, name := range []string{"out", "a/out", "far", "up", "abs", "tricky"} {
		_, err := fs.ReadFile(fsys, "d/sub/"+name)
		wantKind(t, err, repos.KindContent, "leads out of its repository", "d/sub/"+name)
		_, err = fs.ReadLink(fsys, "d/sub/"+name)
		wantKind(t, err, repos.KindContent, "leads out of its repository", "d/sub/"+name)
	}
	for name, want := range map[string]string{"fine": "inside", "around": "inside", "b/c.yaml": "deeper"} {
		if got := read(t, fsys, "d/sub/"+name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if target, err := fs.ReadLink(fsys, "d/sub/fine"); err != nil || target != "a/b/../../f.yaml" {
		t.Errorf("fine leads to %q, %v", target, err)
	}
	if _, err := fs.Stat(fsys, "d/sub/dangling"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("dangling: %v", err)
	}
	_, err := fs.Stat(fsys, "d/sub/round")
	wantKind(t, err, repos.KindContent, "more than 40 links")
	// The tree around it may lead through the submodule and out again: that is the author's own business.
	if got := read(t, fsys, "back"); got != "the ship's own" {
		t.Errorf("back = %q", got)
	}
}

// A repository that contains its own past, which contains its own past, is read down to a depth.
func TestSubmodulesWithoutEnd(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "self.git", map[string]string{"f.yaml": "x"})
	for range 12 {
		repo.Commit(gitserver.Change{Files: map[string]string{".gitmodules": entryFor("self", "../self.git")}, Submodules: map[string]string{"self": repo.Resolve("main")}})
	}
	store, _ := open(t, repos.Options{})
	fsys := pull(t, store, recursive(repo, repos.Auth{}), main).FS()
	read(t, fsys, strings.Repeat("self/", 8)+"f.yaml")
	_, err := fs.ReadFile(fsys, strings.Repeat("self/", 9)+"f.yaml")
	wantKind(t, err, repos.KindLimit, "more than 8 deep")
	err = fs.WalkDir(fsys, ".", func(string, fs.DirEntry, error) error { return nil })
	if err != nil {
		t.Error(err)
	}
}

func TestManySubmodules(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	base := s.Repo(t, "base.git", map[string]string{"f.yaml": "x"})
	ship := s.Repo(t, "ship.git", nil)
	modules, subs := "", map[string]string{}
	for i := range 101 {
		path := fmt.Sprintf("sub%03d", i)
		modules += entryFor(path, "../base.git")
		subs[path] = base.Resolve("main")
	}
	ship.Commit(gitserver.Change{Files: map[string]string{".gitmodules": modules}, Submodules: subs})
	store, _ := open(t, repos.Options{})
	fsys := pull(t, store, recursive(ship, repos.Auth{}), main).FS()
	for i := range 100 {
		read(t, fsys, fmt.Sprintf("sub%03d/f.yaml", i))
	}
	_, err := fs.ReadFile(fsys, "sub100/f.yaml")
	wantKind(t, err, repos.KindLimit, "more than 100 submodules")
	if n := s.Counts("base.git"); n.UploadPack != 1 {
		t.Errorf("one commit was fetched %d times", n.UploadPack)
	}
}

// A server that says nothing costs the time of one question, and is asked again by whoever comes later.
func TestSubmoduleServerStalls(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	f := newFleet(t, s, false)
	store, _ := open(t, repos.Options{Timeout: 2 * time.Second})
	snap := pull(t, store, recursive(f.ship, repos.Auth{}), main)
	if err := s.Inject(gitserver.Fault{Stall: true}); err != nil {
		t.Fatal(err)
	}
	fsys := snap.FS()
	within(t, 8*time.Second, func() {
		for range 20 {
			_, err := fs.ReadFile(fsys, "vendor/base/base.yaml")
			wantKind(t, err, repos.KindTimeout, `submodule "vendor/base"`, f.base.URL)
		}
	})
	if err := s.Heal(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, pull(t, store, recursive(f.ship, repos.Auth{}), main).FS(), "vendor/base/base.yaml"); got != "kind: Base\n" {
		t.Errorf("it is %q", got)
	}
}

// Whoever does not wait is told of one submodule after the other, and gets further each time.
func TestSubmodulesForWhoDoesNotWait(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	f := newFleet(t, s, false)
	store, _ := open(t, repos.Options{})
	snap := pull(t, store, recursive(f.ship, repos.Auth{}), main)
	absent := errors.New("absent")
	fetched := 0
	for {
		var fetch func() error
		content, err := fs.ReadFile(snap.Read(t.Context(), func(f func() error) error { fetch = f; return absent }), "vendor/base/deep/deep.yaml")
		if err == nil {
			if string(content) != "kind: Deep\n" {
				t.Errorf("it is %q", content)
			}
			break
		}
		if !errors.Is(err, absent) || fetch == nil {
			t.Fatalf("after %d fetches: %v", fetched, err)
		}
		if err := fetch(); err != nil {
			t.Fatal(err)
		}
		if fetched++; fetched > 10 {
			t.Fatal("it gets no further")
		}
	}
	if fetched < 2 {
		t.Errorf("%d fetches of two submodules", fetched)
	}
	// A reader whose time is over says nothing about the submodule.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store, _ = open(t, repos.Options{})
	snap = pull(t, store, recursive(f.ship, repos.Auth{}), main)
	direct := func(fetch func() error) error { return fetch() }
	if _, err := fs.ReadFile(snap.Read(ctx, direct), "vendor/deep/deep.yaml"); err == nil {
		t.Error("somebody without time has read it")
	}
	read(t, snap.Read(t.Context(), direct), "vendor/deep/deep.yaml")
}
