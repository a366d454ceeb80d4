package repos_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

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
	const commits, pairs = 60, 10
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
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
				seen := map[repos.Relation]int{}
				for range pairs {
					from, to := ids[random.IntN(commits)], ids[random.IntN(commits)]
					got, err := store.Relate(t.Context(), repos.Remote{URL: repo.URL, Auth: auth}, from, to)
					want := truth(t, repo, from, to)
					if err != nil || got != want {
						t.Errorf("%s to %s: %s, %v; want %s", from, to, got, err, want)
					}
					seen[want]++
				}
				if seen[repos.Ahead] == 0 || seen[repos.Behind] == 0 || seen[repos.Diverged] == 0 {
					t.Errorf("too few of a sort to tell: %v", seen)
				}
				if left := partial(t, dir); len(left) > 0 {
					t.Errorf("the store holds %q, want nothing", left)
				}
			})
		}
	})
}
