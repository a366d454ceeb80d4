package render_test

import (
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
)

// address is what kustomize writes of its own memory in one of its errors.
var address = regexp.MustCompile(`0x[0-9a-f]{6,}`)

// full is everything that a render gives, as text: objects, files, and where each object comes from. Without lines, where a line of the undivided build is
// only near enough: it takes the first of several objects with one name in one file, and none for one with another name, such as a Namespace.
func full(t testing.TB, r *render.Renderer, repo fs.FS, dir string) string {
	set, err := r.Render(t.Context(), repo, dir)
	if err != nil {
		return "error: " + address.ReplaceAllString(err.Error(), "0x…")
	}
	type inFile struct{ file, kind, name string }
	often := map[inFile]int{}
	for _, o := range set.Objects {
		often[inFile{o.Origin.File, o.GetKind(), o.GetName()}]++
	}
	var b strings.Builder
	for _, o := range set.Objects {
		at := o.Origin
		if often[inFile{at.File, o.GetKind(), o.GetName()}] > 1 || o.GetKind() == "Namespace" {
			at.Line = 0
		}
		fmt.Fprintln(&b, o.ID(), at, o.From)
	}
	fmt.Fprintln(&b, set.Files, set.Warnings)
	if err := set.YAML(&b); err != nil {
		t.Error(err)
	}
	return b.String()
}

func undivided() *render.Renderer { return new(render.Renderer).Divide(0, 0, 0) }

// small divides even the smallest builds, into parts of a few objects.
func small(c *render.Cache) *render.Renderer { return (&render.Renderer{Cache: c}).Divide(1, 2, 5) }

// sameDivided renders a random repository divided, and again with what was kept, and compares with kustomize over the whole. It says whether it was really divided.
func sameDivided(t *testing.T, seed uint64) (divided bool) {
	r := newRandom(seed)
	r.tree()
	want := full(t, undivided(), r.repo, "top")
	c := render.NewCache(1 << 24)
	got := full(t, small(c), r.repo, "top")
	counts := c.Counts()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seed %d: -undivided +divided (%+v):\n%s\n%s", seed, counts, diff, archive(r.repo))
	}
	if diff := cmp.Diff(want, full(t, small(c), r.repo, "top")); diff != "" {
		t.Errorf("seed %d: -undivided +kept:\n%s", seed, diff)
	}
	return counts.Parts > 1 && counts.Undivided == 0
}

// archive shows a repository.
func archive(repo fstest.MapFS) string {
	var b strings.Builder
	for _, name := range sortedNames(repo) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, repo[name].Data)
	}
	return b.String()
}

// TestDivided: a divided build gives what the undivided one gives, to the last byte and the last error.
func TestDivided(t *testing.T) {
	divided := 0
	const seeds = 60
	for seed := range uint64(seeds) {
		if sameDivided(t, seed) {
			divided++
		}
		if t.Failed() {
			return
		}
	}
	if divided < seeds/3 {
		t.Errorf("only %d of %d were divided", divided, seeds)
	}
	t.Logf("%d of %d were divided", divided, seeds)
}

// FuzzDivided does the same with any seed.
func FuzzDivided(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { sameDivided(t, seed) })
}

// sameAfterEdits changes a random repository again and again, and renders it with one cache.
func sameAfterEdits(t *testing.T, seed uint64, edits int, c *render.Cache) {
	r := newRandom(seed)
	r.tree()
	var before []fstest.MapFS
	for i := range edits {
		repo := r.repo
		of := func() fs.FS { return repo }
		if seed%2 == 0 {
			of = func() fs.FS { return commit(repo) }
		}
		if i > 0 && r.one(5) {
			repo = before[r.IntN(len(before))] // a branch of before
		}
		want := full(t, undivided(), of(), "top")
		if diff := cmp.Diff(want, full(t, small(c), of(), "top")); diff != "" {
			t.Fatalf("seed %d, edit %d: -fresh +with a cache:\n%s\n%s", seed, i, diff, archive(repo))
		}
		before = append(before, repo)
		r.repo = maps.Clone(repo)
		r.edit()
	}
}

// TestEdits: what is kept is never stale. All sequences of edits share one cache, and one with hardly any room.
func TestEdits(t *testing.T) {
	c, tiny := render.NewCache(1<<24), render.NewCache(20_000)
	for seed := range uint64(6) {
		sameAfterEdits(t, seed, 10, c)
		sameAfterEdits(t, seed+100, 3, tiny)
	}
	if n := c.Counts(); n.Sets == 0 || n.PartHits == 0 || n.FileHits == 0 {
		t.Errorf("nothing was kept: %+v", n)
	}
	if bytes, entries := tiny.Size(); bytes > 20_000 || entries == 0 {
		t.Errorf("the small one holds %d bytes in %d entries", bytes, entries)
	}
}

// FuzzEdits does the same with any seed.
func FuzzEdits(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { sameAfterEdits(t, seed, 8, render.NewCache(1<<22)) })
}
