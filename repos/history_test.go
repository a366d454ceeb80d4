package repos_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// servers are the two ways to real Git servers.
func servers(t *testing.T, test func(t *testing.T, s *gitserver.Server, auth repos.Auth)) {
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		test(t, gitserver.HTTP(t, gitserver.HTTPOptions{}), repos.Auth{})
	})
	t.Run("ssh", func(t *testing.T) {
		t.Parallel()
		s := gitserver.SSH(t, gitserver.SSHOptions{})
		test(t, s, sshAuth(t, s))
	})
}

func TestRefs(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := s.Repo(t, "shop.git", map[string]string{"v": "1"})
		first := repo.Resolve("main")
		repo.Tag("v1", "main", "")
		second := repo.Commit(gitserver.Change{Files: map[string]string{"v": "2"}})
		repo.Tag("v2", "main", "annotated")
		third := repo.Commit(gitserver.Change{Branch: "env/prod@eu", From: "main", Files: map[string]string{"v": "3"}, Author: "Mesh <mesh@example.com>", Message: "third\n\nat last\n"})
		pull7 := repo.Commit(gitserver.Change{Branch: "tmp", From: "main", Files: map[string]string{"v": "pull"}})
		repo.SetRef("refs/pull/7/head", pull7)
		repo.Delete("refs/heads/tmp")
		store, _ := open(t, repos.Options{})
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		for _, c := range []struct {
			ref             repos.Ref
			commit, content string
			revision        string
		}{
			{main, second, "2", "main@sha1:" + second},
			{repos.Ref{Branch: "env/prod@eu"}, third, "3", "env/prod@eu@sha1:" + third},
			{repos.Ref{Tag: "v1"}, first, "1", "v1@sha1:" + first},
			{repos.Ref{Tag: "v2"}, second, "2", "v2@sha1:" + second},
			{repos.Ref{Name: "refs/pull/7/head"}, pull7, "pull", "refs/pull/7/head@sha1:" + pull7},
			{repos.Ref{Name: "refs/tags/v2"}, second, "2", "refs/tags/v2@sha1:" + second},
			{repos.Ref{Name: "HEAD"}, second, "2", "HEAD@sha1:" + second},
			{repos.Ref{Commit: first}, first, "1", "sha1:" + first},
		} {
			t.Run(c.ref.String(), func(t *testing.T) {
				snap := pull(t, store, remote, c.ref)
				if got := snap.Revision.String(); got != c.revision {
					t.Errorf("revision = %s, want %s", got, c.revision)
				}
				if got := read(t, snap.FS(), "v"); got != c.content {
					t.Errorf("content = %q, want %q", got, c.content)
				}
				again, err := repos.ParseRevision(snap.Revision.String())
				if err != nil || again != snap.Revision {
					t.Errorf("parsed again = %v, %v; want %v", again, err, snap.Revision)
				}
			})
		}
		snap := pull(t, store, remote, repos.Ref{Branch: "env/prod@eu"})
		if snap.Author != "Mesh <mesh@example.com>" || snap.Message != "third\n\nat last" || snap.Time.IsZero() {
			t.Errorf("author %q, message %q, time %v", snap.Author, snap.Message, snap.Time)
		}
	})
}

func TestMissingRefs(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	for _, branch := range []string{"env/dev", "env/staging", "env/prod", "feature/one", "feature/two", "feature/three"} {
		repo.SetBranch(branch, "main")
	}
	repo.Tag("v1.0.0", "main", "")
	store, _ := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL}

	_, err := store.Resolve(t.Context(), remote, repos.Ref{Branch: "env/prd"})
	wantKind(t, err, repos.KindRefNotFound, `branch "env/prd" does not exist`, "env/prod", "its 7 branches")
	missing, ok := errors.AsType[*repos.RefNotFoundError](err)
	if !ok || !errors.Is(err, repos.ErrRefNotFound) {
		t.Fatalf("%v is not a RefNotFoundError and ErrRefNotFound", err)
	}
	if len(missing.Exist) != 5 || missing.Exist[0] != "env/prod" || missing.Total != 7 {
		t.Errorf("%d exist, like %q; want 7, the most similar being env/prod", missing.Total, missing.Exist)
	}

	_, err = store.Resolve(t.Context(), remote, repos.Ref{Branch: "v1.0.0"})
	wantKind(t, err, repos.KindRefNotFound, `there is a tag "v1.0.0"`)
	_, err = store.Resolve(t.Context(), remote, repos.Ref{Name: "refs/pull/1/head"})
	wantKind(t, err, repos.KindRefNotFound, `ref "refs/pull/1/head" does not exist`)

	empty := s.Repo(t, "empty.git", nil)
	_, err = store.Resolve(t.Context(), repos.Remote{URL: empty.URL}, main)
	wantKind(t, err, repos.KindRefNotFound, "the repository has no branches")
}

// History that was rewritten is a new tree at the next poll, whichever way it went.
func TestRewrittenHistory(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := s.Repo(t, "shop.git", map[string]string{"v": "1", "same": "same"})
		store, dir := open(t, repos.Options{})
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		ids := []string{repo.Resolve("main")}
		want := func(step, content string) {
			t.Helper()
			snap := pull(t, store, remote, main)
			if got := read(t, snap.FS(), "v"); got != content {
				t.Errorf("%s: content = %q, want %q", step, got, content)
			}
			if got := read(t, snap.FS(), "same"); got != "same" {
				t.Errorf("%s: what did not change = %q", step, got)
			}
		}
		want("first", "1")
		for i := 2; i <= 4; i++ {
			ids = append(ids, repo.Commit(gitserver.Change{Files: map[string]string{"v": fmt.Sprint(i)}}))
			want("commit", fmt.Sprint(i))
		}
		repo.SetBranch("main", ids[1])
		want("forced back", "2")
		repo.Commit(gitserver.Change{Amend: true, Files: map[string]string{"v": "amended"}})
		want("amended", "amended")
		repo.Commit(gitserver.Change{Branch: "orphan", Files: map[string]string{"v": "orphan", "same": "same"}})
		repo.SetBranch("main", "orphan")
		want("replaced by an unrelated history", "orphan")
		repo.Git("reflog", "expire", "--expire=now", "--all")
		repo.Git("gc", "--quiet", "--prune=now")
		repo.Commit(gitserver.Change{Files: map[string]string{"v": "gc"}})
		want("after the server forgot everything that we have", "gc")

		repo.Delete("refs/heads/main")
		_, err := tryPull(t.Context(), store, remote, main)
		wantKind(t, err, repos.KindRefNotFound, "orphan")
		if len(files(t, dir, ".pack")) == 0 {
			t.Error("the store is empty after a branch was deleted")
		}
		repo.SetBranch("main", "orphan")
		want("back again", "orphan")
	})
}

// What a fetch brings is what changed, not everything again.
func TestFetchesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		tree := map[string]string{}
		for i := range 300 {
			tree[fmt.Sprintf("dir%d/file%d.yaml", i%10, i)] = strings.Repeat(fmt.Sprintf("%d: %x\n", i, i*7919), 20)
		}
		repo := s.Repo(t, "shop.git", tree)
		store, dir := open(t, repos.Options{})
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		pull(t, store, remote, main)
		whole := sizes(t, dir)
		repo.Commit(gitserver.Change{Files: map[string]string{"dir1/new": "new"}})
		snap := pull(t, store, remote, main)
		if grown := sizes(t, dir) - whole; grown <= 0 || grown > whole/10 {
			t.Errorf("one more file made packs of %d bytes grow by %d, want less than a tenth", whole, grown)
		}
		checkTree(t, snap.FS(), repo, "main")
		if diff := cmp.Diff(2, len(files(t, dir, ".pack"))); diff != "" {
			t.Errorf("packs (-want +got):\n%s", diff)
		}
	})
}

// Many commits do not pile up: now and then everything is fetched into one pack.
func TestChainOfPacksIsBounded(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"v": "0", "same": "same"})
	store, dir := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL}
	most := 0
	for i := range 30 {
		repo.Commit(gitserver.Change{Files: map[string]string{"v": fmt.Sprint(i)}})
		snap := pull(t, store, remote, main)
		checkTree(t, snap.FS(), repo, "main")
		most = max(most, packsOf(t, dir, snap.Revision.Commit))
	}
	if most > 20 || most < 10 {
		t.Errorf("a commit is spread over up to %d packs, want more than 10 and at most 20", most)
	}
}

// An older commit is had by its id, from servers that give such and from those that do not.
func TestOlderCommits(t *testing.T) {
	t.Parallel()
	for _, anyID := range []string{"true", "false"} {
		t.Run("any id "+anyID, func(t *testing.T) {
			t.Parallel()
			servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
				repo := s.Repo(t, "shop.git", nil)
				repo.Config("uploadpack.allowReachableSHA1InWant", anyID)
				const commits = 71
				parents := make([][]int, commits)
				for i := 1; i < commits; i++ {
					parents[i] = []int{i - 1}
				}
				ids := graph(t, repo, parents, func(i int) int64 { return int64(1_700_000_000 + i) }, func(i int) string { return fmt.Sprint(i) })
				repo.SetBranch("main", string(ids[commits-1]))
				repo.Delete(fmt.Sprint("refs/heads/c", commits-1))
				remote := repos.Remote{URL: repo.URL, Auth: auth}
				for _, i := range []int{69, 40, 3, 0} {
					for _, ref := range []string{"main", ""} {
						store, _ := open(t, repos.Options{})
						snap, err := store.Snapshot(t.Context(), remote, repos.Revision{Ref: ref, Commit: ids[i]})
						if err != nil {
							t.Fatalf("commit %d of %q, any id %s: %v", i, ref, anyID, err)
						}
						if got := read(t, snap.FS(), "f"); got != fmt.Sprint(i) {
							t.Errorf("commit %d: content = %q", i, got)
						}
					}
				}
				store, _ := open(t, repos.Options{})
				none := repos.Revision{Ref: "main", Commit: repos.Commit(strings.Repeat("0123", 10))}
				_, err := store.Snapshot(t.Context(), remote, none)
				wantKind(t, err, repos.KindCommitNotFound, string(none.Commit))
			})
		})
	}
}

// Commits that only a tag or another ref holds can be had from servers that hand out nothing else.
func TestCommitOfATag(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := s.Repo(t, "shop.git", map[string]string{"v": "0"})
		tagged := repo.Commit(gitserver.Change{Branch: "tmp", From: "main", Files: map[string]string{"v": "tagged"}})
		repo.Tag("v1", tagged, "annotated")
		repo.Delete("refs/heads/tmp")
		store, _ := open(t, repos.Options{})
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		snap := pull(t, store, remote, repos.Ref{Tag: "v1"})
		if got := read(t, snap.FS(), "v"); got != "tagged" {
			t.Errorf("content = %q, want that of the tag", got)
		}

		tree := repo.Git("rev-parse", "main^{tree}")
		repo.Git("tag", "of-a-tree", tree)
		_, err := tryPull(t.Context(), store, remote, repos.Ref{Tag: "of-a-tree"})
		wantKind(t, err, repos.KindContent, "is a tree, not a commit")
	})
}

// checkTree compares a file system with what git says of the commit, file by file.
func checkTree(t *testing.T, fsys fs.FS, repo *gitserver.TestRepo, commit string) {
	t.Helper()
	want := map[string]string{}
	for line := range strings.SplitSeq(repo.Git("-c", "core.quotePath=false", "ls-tree", "-r", commit), "\n") {
		about, name, _ := strings.Cut(line, "\t")
		if strings.HasPrefix(about, "100") { // links and submodules have tests of their own
			want[name] = strings.Fields(about)[2]
		}
	}
	got := map[string]string{}
	err := fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		read(t, fsys, path)
		got[path], err = fsys.(interface{ Hash(string) (string, error) }).Hash(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree of %s (-want +got):\n%s", commit, diff)
	}
}
