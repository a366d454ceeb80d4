package repos_test

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// BenchmarkFetch measures a repository of 50,000 small files: the first fetch, the fetch of one commit more, a commit
// that is here already and was used before, and the first opening in a new process.
func BenchmarkFetch(b *testing.B) {
	tree := map[string]string{}
	for i := range 50_000 {
		tree[fmt.Sprintf("d%d/e%d/f%d.yaml", i%50, i%500, i)] = fmt.Sprintf(
			"apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: vs-%d, namespace: ns-%d}\nspec: {hosts: [h%x.example.com]}\n", i, i%97, i*2654435761)
	}
	s := gitserver.HTTP(b, gitserver.HTTPOptions{})
	repo := s.Repo(b, "large.git", tree)
	repo.Git("repack", "-adfq")
	remote := repos.Remote{URL: repo.URL}

	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			store, dir := open(b, repos.Options{})
			pull(b, store, remote, main)
			b.ReportMetric(float64(sizes(b, dir))/(1<<20), "MiB-on-disk")
		}
	})
	store, dir := open(b, repos.Options{})
	rev := pull(b, store, remote, main).Revision
	b.Run("next", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			repo.Commit(gitserver.Change{Files: map[string]string{"d1/e1/f1.yaml": fmt.Sprint("changed: ", i)}})
			b.StartTimer()
			pull(b, store, remote, main)
		}
	})
	b.Run("here", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Snapshot(b.Context(), remote, rev); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reopened", func(b *testing.B) {
		for b.Loop() {
			if _, err := reopen(b, dir, repos.Options{}).Snapshot(b.Context(), remote, rev); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read-all", func(b *testing.B) {
		for b.Loop() {
			snap, err := store.Snapshot(b.Context(), remote, rev)
			if err != nil {
				b.Fatal(err)
			}
			if err := fs.WalkDir(snap.FS(), ".", func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					_, err = fs.ReadFile(snap.FS(), name)
				}
				return err
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
