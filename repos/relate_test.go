package repos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// graph makes commits out of lines "mark parent…", each with the tree of main, and leaves a branch at each of the tips.
func graph(t *testing.T, repo *gitserver.TestRepo, parents [][]int, when func(i int) int64, message func(i int) string) []repos.Commit {
	t.Helper()
	var in strings.Builder
	for i, ps := range parents {
		text := message(i)
		fmt.Fprintf(&in, "commit refs/heads/c%d\nmark :%d\ncommitter a <a@example.com> %d +0000\ndata %d\n%s\n", i, i+1, when(i), len(text), text)
		for j, p := range ps {
			word := "from"
			if j > 0 {
				word = "merge"
			}
			fmt.Fprintf(&in, "%s :%d\n", word, p+1)
		}
		fmt.Fprintf(&in, "M 100644 inline f\ndata %d\n%s\n\n", len(text), text)
	}
	repo.GitInput(in.String(), "fast-import", "--quiet", "--force", "--export-marks=marks")
	ids := make([]repos.Commit, len(parents))
	for line := range strings.Lines(repo.Git("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/c*")) {
		var i int
		var id string
		if _, err := fmt.Sscanf(line, "refs/heads/c%d %s", &i, &id); err != nil {
			t.Fatal(err)
		}
		ids[i] = repos.Commit(id)
	}
	var refs strings.Builder
	inner := map[int]bool{}
	for _, ps := range parents {
		for _, p := range ps {
			inner[p] = true
		}
	}
	for i := range inner {
		fmt.Fprintf(&refs, "delete refs/heads/c%d\n", i)
	}
	repo.GitInput(refs.String(), "update-ref", "--stdin")
	return ids
}

// truth is what git says of two commits.
func truth(t *testing.T, repo *gitserver.TestRepo, from, to repos.Commit) repos.Relation {
	t.Helper()
	counts := strings.Fields(repo.Git("rev-list", "--count", "--left-right", string(from)+"..."+string(to)))
	switch {
	case counts[0] == "0" && counts[1] == "0":
		return repos.Same
	case counts[0] == "0":
		return repos.Ahead
	case counts[1] == "0":
		return repos.Behind
	}
	return repos.Diverged
}

// In graphs of all shapes, with merges, several roots and clocks that are wrong, the answer is the one that git gives
// who has everything; from servers that can leave trees out and that cannot, that give commits by their id and do not.
func TestRelateInRandomGraphs(t *testing.T) {
	t.Parallel()
	const commits = 60
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		seen := map[repos.Relation]int{}
		pairs := 40
		if len(s.HostKeys()) > 0 {
			pairs = 6 // sessions of ssh take their time
		}
		for i, c := range []struct{ filter, anyID, clock string }{
			{"true", "true", "right"}, {"false", "true", "right"}, {"true", "false", "right"}, {"false", "false", "wrong"}, {"true", "true", "wrong"},
		} {
			t.Run(fmt.Sprintf("filter %s, any id %s, clock %s", c.filter, c.anyID, c.clock), func(t *testing.T) {
				random := rand.New(rand.NewPCG(uint64(i), 7))
				repo := s.Repo(t, fmt.Sprintf("graph%d.git", i), nil)
				repo.Config("uploadpack.allowFilter", c.filter)
				repo.Config("uploadpack.allowReachableSHA1InWant", c.anyID)
				parents := make([][]int, commits)
				for j := range parents {
					if j < 2 || random.IntN(20) == 0 {
						continue // a root
					}
					recent := func() int { return max(0, j-1-random.IntN(6)) }
					parents[j] = []int{recent()}
					if p := recent(); random.IntN(3) == 0 && p != parents[j][0] {
						parents[j] = append(parents[j], p)
					}
				}
				ids := graph(t, repo, parents, func(j int) int64 {
					if c.clock == "wrong" {
						return 1_700_000_000 + int64(random.IntN(1_000_000))
					}
					return 1_700_000_000 + int64(j)
				}, func(j int) string { return fmt.Sprint("change ", j) })
				store, dir := open(t, repos.Options{})
				for range pairs {
					from, to := ids[random.IntN(commits)], ids[random.IntN(commits)]
					got, err := store.Relate(t.Context(), repos.Remote{URL: repo.URL, Auth: auth}, from, to)
					want := truth(t, repo, from, to)
					if err != nil || got != want {
						t.Errorf("%s to %s: %s, %v; want %s", from, to, got, err, want)
					}
					seen[want]++
				}
				if left := partial(t, dir); len(left) > 0 {
					t.Errorf("the store holds %q, want nothing", left)
				}
			})
		}
		if seen[repos.Ahead] < 3 || seen[repos.Behind] < 3 || seen[repos.Diverged] < 3 {
			t.Errorf("too few of a sort to tell: %v", seen)
		}
	})
}

// Two thousand commits lie between, many of them stored as deltas on others; with and without the trees.
func TestRelateFarApart(t *testing.T) {
	t.Parallel()
	const commits = 2000
	long := gitserver.NewRepo(t, nil)
	parents := make([][]int, commits)
	for i := 1; i < commits; i++ {
		parents[i] = []int{i - 1}
		if i%100 == 0 {
			parents[i] = append(parents[i], i-50)
		}
	}
	parents[2] = nil // two roots
	ids := graph(t, long, parents, func(i int) int64 { return int64(1_700_000_000 + i) }, func(i int) string {
		return fmt.Sprintf("change %d\n\n%s", i, strings.Repeat("a message that hardly changes from one to the next\n", 30))
	})
	long.Git("repack", "-adfq", "--depth=50", "--window=50")
	deltas := 0
	for line := range strings.Lines(long.Git("verify-pack", "-v", files(t, long.Dir, ".idx")[0])) {
		if f := strings.Fields(line); len(f) == 7 && f[1] == "commit" {
			deltas++
		}
	}
	if deltas < commits/4 {
		t.Fatalf("only %d commits are deltas; the test has no point", deltas)
	}
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		if err := os.CopyFS(filepath.Join(s.Root, "long.git"), os.DirFS(long.Dir)); err != nil {
			t.Fatal(err)
		}
		repo := s.Repo(t, "long.git", nil)
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		first, last := ids[2], ids[commits-1]
		for _, filter := range []string{"true", "false"} {
			repo.Config("uploadpack.allowFilter", filter)
			store, _ := open(t, repos.Options{})
			for _, c := range []struct {
				from, to repos.Commit
				want     repos.Relation
			}{{first, last, repos.Ahead}, {last, first, repos.Behind}, {ids[0], last, repos.Diverged}, {ids[commits-2], last, repos.Ahead}} {
				start := time.Now()
				got, err := store.Relate(t.Context(), remote, c.from, c.to)
				if err != nil || got != c.want {
					t.Errorf("filter %s: %s, %v; want %s", filter, got, err, c.want)
				}
				t.Logf("filter %s, %s: %s", filter, got, time.Since(start).Round(time.Millisecond))
			}
		}
	})
}

// A commit that only the past of a branch had is named, whether the server still has it lying about or not.
func TestRelateAfterRewriting(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := s.Repo(t, "shop.git", map[string]string{"v": "1"})
		root := repos.Commit(repo.Resolve("main"))
		lost := repos.Commit(repo.Commit(gitserver.Change{Files: map[string]string{"v": "2"}}))
		now := repos.Commit(repo.Commit(gitserver.Change{Amend: true, Files: map[string]string{"v": "3"}}))
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		for _, step := range []string{"dangling", "gone"} {
			for _, pair := range [][2]repos.Commit{{lost, now}, {now, lost}, {root, lost}, {someID, lost}} {
				store, _ := open(t, repos.Options{})
				_, err := store.Relate(t.Context(), remote, pair[0], pair[1])
				wantKind(t, err, repos.KindCommitNotFound, string(lost), "rewritten or deleted", "relate "+repo.URL)
			}
			store, _ := open(t, repos.Options{})
			if got, err := store.Relate(t.Context(), remote, root, now); err != nil || got != repos.Ahead {
				t.Errorf("%s: %s, %v; want Ahead", step, got, err)
			}
			repo.Git("reflog", "expire", "--expire=now", "--all")
			repo.Git("gc", "--quiet", "--prune=now")
		}
		// A commit that a tag keeps is known.
		repo.Git("tag", "-f", "of-the-past", string(root))
		repo.Commit(gitserver.Change{Branch: "orphan", Files: map[string]string{"x": "1"}})
		repo.SetBranch("main", "orphan")
		repo.Tag("kept", string(now), "annotated")
		store, _ := open(t, repos.Options{})
		if got, err := store.Relate(t.Context(), remote, root, now); err != nil || got != repos.Ahead {
			t.Errorf("kept by a tag: %s, %v; want Ahead", got, err)
		}
	})
}

// What was answered once is not asked again, and those who ask at the same time share the answer.
func TestRelateRemembers(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"v": "1"})
	from := repos.Commit(repo.Resolve("main"))
	to := repos.Commit(repo.Commit(gitserver.Change{Files: map[string]string{"v": "2"}}))
	store, _ := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL}
	ask := func(from, to repos.Commit, want repos.Relation) {
		if got, err := store.Relate(t.Context(), remote, from, to); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { ask(from, to, repos.Ahead) })
	}
	wg.Wait()
	ask(from, to, repos.Ahead)
	ask(from, from, repos.Same)
	if got := s.Counts("").UploadPack; got != 1 {
		t.Errorf("%d questions to the server, want 1", got)
	}
	ask(to, from, repos.Behind)
	ask(to, from, repos.Behind)
	if got := s.Counts("").UploadPack; got != 2 {
		t.Errorf("%d questions to the server, want 2", got)
	}
}

// Servers that leave out files but no trees, or nothing, are asked again without.
func TestRelateWithoutFilters(t *testing.T) {
	t.Parallel()
	for _, allowed := range []string{"blob:none", "nothing"} {
		s := gitserver.HTTP(t, gitserver.HTTPOptions{})
		repo := s.Repo(t, "shop.git", map[string]string{"v": "1"})
		repo.Config("uploadpack.allowFilter", "true")
		repo.Config("uploadpackfilter.allow", "false")
		repo.Config("uploadpackfilter."+allowed+".allow", "true")
		from := repos.Commit(repo.Resolve("main"))
		to := repos.Commit(repo.Commit(gitserver.Change{Files: map[string]string{"v": "2"}}))
		store, _ := open(t, repos.Options{})
		if got, err := store.Relate(t.Context(), repos.Remote{URL: repo.URL}, from, to); err != nil || got != repos.Ahead {
			t.Errorf("%s: %s, %v; want Ahead", allowed, got, err)
		}
		if got, want := s.Counts("").UploadPack, map[string]int{"blob:none": 2, "nothing": 3}[allowed]; got != want {
			t.Errorf("%s allowed: %d requests, want %d", allowed, got, want)
		}
	}
}

// Limits hold, and say what would help.
func TestRelateLimits(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"v": "1"})
	from := repos.Commit(repo.Resolve("main"))
	noise := make([]byte, 300_000)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	to := repos.Commit(repo.Commit(gitserver.Change{Files: map[string]string{"large": string(noise)}}))
	limits := repos.Limits{TotalBytes: 200_000}
	store, dir := open(t, repos.Options{Limits: limits})
	_, err := store.Relate(t.Context(), repos.Remote{URL: repo.URL}, from, to)
	wantKind(t, err, repos.KindLimit, "allowFilter")
	repo.Config("uploadpack.allowFilter", "true")
	if got, err := store.Relate(t.Context(), repos.Remote{URL: repo.URL}, from, to); err != nil || got != repos.Ahead {
		t.Errorf("with a filter: %s, %v; want Ahead", got, err)
	}
	if left := partial(t, dir); len(left) > 0 {
		t.Errorf("the store holds %q, want nothing", left)
	}
}
