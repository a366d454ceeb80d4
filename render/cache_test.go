package render_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/mooring-dev/mooring/render"
)

// hashed is a repository that knows the hashes of its files, as a commit does, and counts how many are opened.
type hashed struct {
	fstest.MapFS
	opened *atomic.Int64
}

func commit(repo fstest.MapFS) hashed { return hashed{repo, new(atomic.Int64)} }

func (h hashed) Hash(name string) (string, error) {
	f, ok := h.MapFS[name]
	if !ok { // a folder, or nothing
		sum := sha256.New()
		for _, at := range sortedNames(h.MapFS) {
			if f := h.MapFS[at]; name == "." || strings.HasPrefix(at, name+"/") {
				fmt.Fprintf(sum, "%s %s %q\n", at, f.Mode, f.Data)
				ok = true
			}
		}
		if !ok {
			return "", fs.ErrNotExist
		}
		return fmt.Sprintf("%x", sum.Sum(nil)), nil
	}
	return fmt.Sprintf("%x", sha256.Sum256(append([]byte("blob "), f.Data...))), nil
}

func (h hashed) Open(name string) (fs.File, error) {
	h.opened.Add(1)
	return h.MapFS.Open(name)
}

// with gives the repository with other files; a text of "" takes one away.
func with(repo fstest.MapFS, pairs ...string) fstest.MapFS {
	repo = maps.Clone(repo)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			delete(repo, pairs[i])
		} else {
			repo[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		}
	}
	return repo
}

// shop is an overlay with patches over a base of 60 VirtualServices in files of their own and 60 DestinationRules in one file.
func shop() fstest.MapFS {
	repo := fstest.MapFS{"README.md": {Data: []byte("a shop")}}
	for name, f := range mesh(60, true) {
		repo["base/"+name] = f
	}
	var large strings.Builder
	for i := range 60 {
		fmt.Fprintf(&large, "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: rule-%d}\nspec: {host: service-%d}\n", i, i)
	}
	return with(repo, "base/large.yaml", large.String(), "base/kustomization.yaml", string(repo["base/kustomization.yaml"].Data)+"- large.yaml\n",
		"prod/kustomization.yaml", `resources: [../base]
labels: [{pairs: {env: prod}}]
patches:
- path: reviews.yaml
- target: {kind: DestinationRule, name: rule-1.*}
  patch: |-
    - {op: add, path: /spec/exportTo, value: ["."]}
`, "prod/reviews.yaml", "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: service-7, namespace: mesh}\nspec: {gateways: [mesh]}\n")
}

// kept is what a render must have cost.
type kept struct{ parts, undivided, sets int }

func TestCache(t *testing.T) {
	before := shop()
	text := func(name string) string { return string(before[name].Data) }
	all := func() int {
		c := render.NewCache(1 << 28)
		full(t, small(c), commit(before), "prod")
		return c.Counts().Parts
	}()
	if all < 8 {
		t.Fatalf("only %d parts", all)
	}
	base := text("base/kustomization.yaml")
	tests := map[string]struct {
		after fstest.MapFS
		want  kept
	}{
		"the same":            {before, kept{sets: 1}},
		"an unrelated file":   {with(before, "README.md", "a larger shop"), kept{sets: 1}},
		"a new file nearby":   {with(before, "base/unused.yaml", configMap), kept{sets: 1}},
		"one file":            {with(before, "base/vs00030.yaml", strings.Replace(text("base/vs00030.yaml"), "weight: 90", "weight: 89", 1)), kept{parts: 1}},
		"one document":        {with(before, "base/large.yaml", strings.Replace(text("base/large.yaml"), "host: service-49}", "host: other}", 1)), kept{parts: 1}},
		"one document longer": {with(before, "base/large.yaml", strings.Replace(text("base/large.yaml"), "host: service-49}", "host: service-49, exportTo: ['*']}", 1)), kept{parts: 1}},
		"a comment before":    {with(before, "base/large.yaml", "# large\n"+text("base/large.yaml")), kept{}},
		"a patch":             {with(before, "prod/reviews.yaml", text("prod/reviews.yaml")+"# changed\n"), kept{parts: 1}},
		"a label":             {with(before, "prod/kustomization.yaml", strings.Replace(text("prod/kustomization.yaml"), "env: prod", "env: live", 1)), kept{parts: all}},
		"a file less":         {with(before, "base/vs00030.yaml", "", "base/kustomization.yaml", strings.Replace(base, "- vs00030.yaml\n", "", 1)), kept{parts: 2}},
		"a name prefix":       {with(before, "prod/kustomization.yaml", text("prod/kustomization.yaml")+"namePrefix: p-\n"), kept{undivided: 1}},
		"nothing at all":      {with(before, "prod/kustomization.yaml", "resources: []\n"), kept{undivided: 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := render.NewCache(1 << 28)
			r := small(c)
			full(t, r, commit(before), "prod")
			c.Counts()
			repo := commit(test.after)
			got := full(t, r, repo, "prod")
			n := c.Counts()
			if diff := cmp.Diff(test.want, kept{n.Parts, n.Undivided, n.Sets}, cmp.AllowUnexported(kept{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if opened := repo.opened.Load(); test.want.sets > 0 && opened > 0 {
				t.Errorf("%d files were opened", opened)
			}
			if diff := cmp.Diff(full(t, undivided(), commit(test.after), "prod"), got); diff != "" {
				t.Errorf("-fresh +with a cache:\n%s", diff)
			}
			// The other branch is still kept.
			full(t, r, commit(before), "prod")
			if n := c.Counts(); n.Sets != 1 || n.Parts+n.Undivided > 0 {
				t.Errorf("back again: %+v", n)
			}
		})
	}
}

// TestCacheLooksAgain: what was not there, where links lead and what a folder lists decide as much as files do. None of these changes a file that was read.
func TestCacheLooksAgain(t *testing.T) {
	plain := files("p/a.yaml", configMap, "p/sub/b.yaml", strings.Replace(configMap, "name: ", "name: b-", 1))
	other := strings.Replace(configMap, "name: ", "name: other-", 1)
	linked := files("o/kustomization.yaml", "resources: [l/a.yaml]\n", "o/x/a.yaml", configMap, "o/y/a.yaml", other)
	linked["o/l"] = &fstest.MapFile{Data: []byte("x"), Mode: fs.ModeSymlink | 0o777}
	turned := maps.Clone(linked)
	turned["o/l"] = &fstest.MapFile{Data: []byte("y"), Mode: fs.ModeSymlink | 0o777}
	file := files("o/kustomization.yaml", "resources: [x]\n", "o/x/kustomization.yaml", "resources: [a.yaml]\n", "o/x/a.yaml", configMap)
	behind := with(file, "o/x/kustomization.yaml", "", "o/x/a.yaml", "", "z/kustomization.yaml", "resources: [a.yaml]\n", "z/a.yaml", configMap)
	behind["o/x"] = &fstest.MapFile{Data: []byte("../z"), Mode: fs.ModeSymlink | 0o777}
	tests := map[string]struct {
		before, after fstest.MapFS
		dir           string
	}{
		"another kustomization": {shop(), with(shop(), "base/kustomization.yml", "resources: []\n"), "prod"},
		"a kustomization":       {plain, with(plain, "p/Kustomization", "resources: [a.yaml]\n"), "p"},
		"a kustomization below": {plain, with(plain, "p/sub/Kustomization", "resources: [b.yaml]\n"), "p"},
		"a file":                {plain, with(plain, "p/c.yaml", other), "p"},
		"a file less":           {plain, with(plain, "p/sub/b.yaml", ""), "p"},
		"a link":                {linked, turned, "o"},
		"a link for a folder":   {file, behind, "o"},
	}
	for name, test := range tests {
		for _, hashes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/hashes=%t", name, hashes), func(t *testing.T) {
				of := func(repo fstest.MapFS) fs.FS {
					if hashes {
						return commit(repo)
					}
					return repo
				}
				r := &render.Renderer{Cache: render.NewCache(1 << 28)}
				first := full(t, r, of(test.before), test.dir)
				if again := full(t, r, of(test.before), test.dir); again != first || r.Cache.Counts().Sets != 1 {
					t.Error("it was not kept")
				}
				want := full(t, new(render.Renderer), of(test.after), test.dir)
				if want == first {
					t.Fatal("it makes no difference")
				}
				if diff := cmp.Diff(want, full(t, r, of(test.after), test.dir)); diff != "" {
					t.Errorf("-fresh +with a cache:\n%s", diff)
				}
			})
		}
	}
}

// TestFailuresAreNotKept: the same fault is found again, and told in full.
func TestFailuresAreNotKept(t *testing.T) {
	repo := shop()
	repo["prod/reviews.yaml"] = &fstest.MapFile{Data: []byte(strings.Replace(string(repo["prod/reviews.yaml"].Data), "service-7,", "service-7000,", 1))}
	c := render.NewCache(1 << 28)
	want := full(t, undivided(), repo, "prod")
	if !strings.Contains(want, "there is no object VirtualService") {
		t.Fatal(want)
	}
	for range 2 {
		if got := full(t, small(c), commit(repo), "prod"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if n := c.Counts(); n.Sets > 0 || n.Undivided == 0 {
			t.Errorf("%+v", n)
		}
	}
}

// marking is an expander; each of its pointers is one of its own.
type marking struct{ mark string }

func (m *marking) Expand(_ context.Context, objects []render.Object) ([]render.Object, []render.Warning, error) {
	return objects, []render.Warning{{Text: m.mark}}, nil
}

// changeable cannot be compared.
type changeable struct{ marks []string }

func (c changeable) Expand(_ context.Context, objects []render.Object) ([]render.Object, []render.Warning, error) {
	return objects, []render.Warning{{Text: c.marks[0]}}, nil
}

// TestCacheKnowsExpanders: what one set of expanders has made is not given for another.
func TestCacheKnowsExpanders(t *testing.T) {
	c, repo := render.NewCache(1<<28), commit(files("a.yaml", configMap))
	a, b, list := &marking{"a"}, &marking{"b"}, changeable{[]string{"list"}}
	for _, test := range []struct {
		expanders []render.Expander
		want      string
		sets      int
	}{{nil, "", 0}, {[]render.Expander{a}, "a", 0}, {[]render.Expander{b}, "b", 0}, {[]render.Expander{a}, "a", 1}, {[]render.Expander{list}, "list", 0}, {[]render.Expander{list}, "list", 0}, {nil, "", 1}} {
		set, err := (&render.Renderer{Cache: c, Expanders: test.expanders}).Render(t.Context(), repo, ".")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range set.Warnings {
			got += w.Text
		}
		if n := c.Counts(); got != test.want || n.Sets != test.sets {
			t.Errorf("%v: got %q, %+v", test, got, n)
		}
		c.Rest(false)
	}
}

// TestCacheKnowsLimits: what is within one unit's limits may be over another's.
func TestCacheKnowsLimits(t *testing.T) {
	c, repo := render.NewCache(1<<28), commit(files("a.yaml", documents(5, "ConfigMap")))
	if _, err := (&render.Renderer{Cache: c}).Render(t.Context(), repo, "."); err != nil {
		t.Fatal(err)
	}
	if _, err := (&render.Renderer{Cache: c, Limits: render.Limits{Objects: 4}}).Render(t.Context(), repo, "."); err == nil {
		t.Error("the limit does not hold")
	}
}

// TestCacheIsBounded: it holds no more than it may, also of what is larger than all of it, and goes on to be right.
func TestCacheIsBounded(t *testing.T) {
	sizes := []int64{0, 1000, 100_000}
	var caches []*render.Cache
	for _, most := range sizes {
		caches = append(caches, render.NewCache(most))
	}
	for i := range 2 {
		repo := commit(with(shop(), "base/vs00001.yaml", strings.Replace(string(mesh(2, false)["vs00001.yaml"].Data), "weight: 90", fmt.Sprintf("weight: %d", i), 1)))
		want := full(t, undivided(), repo, "prod")
		for _, c := range caches {
			if got := full(t, small(c), repo, "prod"); got != want {
				t.Error("it is another render")
			}
			c.Rest(false)
		}
	}
	for i, most := range sizes {
		if bytes, entries := caches[i].Size(); bytes > most || entries == 0 && i > 1 {
			t.Errorf("it holds %d bytes of %d in %d entries", bytes, most, entries)
		}
	}
}

// TestUnitsShareACache: 16 units side by side, some with the same repository, some with others, some of whose commits change all the time. What is kept is put to rest
// meanwhile.
func TestUnitsShareACache(t *testing.T) {
	c := render.NewCache(1 << 24)
	var repos []fstest.MapFS
	var want []string
	for seed := range uint64(5) {
		r := newRandom(seed)
		r.tree()
		for range 3 {
			repos = append(repos, maps.Clone(r.repo))
			want = append(want, full(t, undivided(), r.repo, "top"))
			r.edit()
		}
	}
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for j := range 2 * len(repos) {
				n := (i*7 + j) % len(repos)
				if got := full(t, small(c), commit(repos[n]), "top"); stripped(got) != stripped(want[n]) {
					t.Errorf("repository %d: -alone +with others:\n%s", n, cmp.Diff(want[n], got))
				}
				if j%3 == 0 {
					c.Rest(false)
				}
			}
		})
	}
	group.Wait()
}

// stripped takes out the line with the files, whose hashes are of another kind.
func stripped(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "[{") {
			b.WriteString(line)
		}
	}
	return b.String()
}
