package render

import (
	"container/list"
	"context"
	"errors"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strings"
	"syscall"
)

// setKey is what a caller asks for, apart from the repository and the expanders.
type setKey struct {
	dir    string
	limits Limits
}

// keptSet is a Set with all that decided it. Two branches of a repository, and two repositories, have one each for the same folder.
type keptSet struct {
	key       setKey
	expanders []Expander
	set       *Set
	misses    []string
	folders   []listing
	types     []looked // of what was looked at and is no symbolic link
	links     []pair   // where they lead
	// contents are hashes of folders with all that is in them, where the repository knows them. What is in such a folder need not be looked at one by one.
	contents []pair
}

// listing, looked and pair are what was seen under a name. A Set is kept for days with all of them, in lists that are sorted by name: maps take twice as much.
type (
	listing struct {
		name  string
		names []string
	}
	looked struct {
		name string
		typ  fs.FileMode
	}
	pair struct{ name, is string }
)

func pairs(m map[string]string) []pair {
	all := make([]pair, 0, len(m))
	for _, name := range sortedKeys(m) {
		all = append(all, pair{name, m[name]})
	}
	return all
}

// gather moves the texts of what decided the Set together.
func (k *keptSet) gather() {
	var texts []*string
	for i := range k.misses {
		texts = append(texts, &k.misses[i])
	}
	for i := range k.folders {
		f := &k.folders[i]
		texts = append(texts, &f.name)
		f.names = slices.Clone(f.names)
		for n := range f.names {
			texts = append(texts, &f.names[n])
		}
	}
	for i := range k.types {
		texts = append(texts, &k.types[i].name)
	}
	for _, all := range [][]pair{k.links, k.contents} {
		for i := range all {
			texts = append(texts, &all[i].name, &all[i].is)
		}
	}
	Gather(texts)
}

// mostSets is how many Sets are tried for one folder.
const mostSets = 32

// set gives a Set that serves for a repository as it is now, or nil.
func (c *Cache) set(ctx context.Context, fsys fs.FS, key setKey, expanders []Expander) *Set {
	if c == nil || ctx.Err() != nil {
		return nil
	}
	c.mu.Lock()
	candidates := slices.Clone(c.sets[key])
	c.mu.Unlock()
	now := probe{fsys: fsys, limits: key.limits, hashes: map[string]string{}}
	now.links, _ = fsys.(fs.ReadLinkFS)
	for _, at := range candidates[:min(len(candidates), mostSets)] {
		kept := at.Value.(*entry).value.(*keptSet)
		if !slices.EqualFunc(kept.expanders, expanders, sameExpander) || !kept.serves(&now) {
			continue
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.counts.Sets++
		if at, ok := c.entries[kept]; ok { // it may have gone meanwhile
			c.order.MoveToFront(at)
			c.forget(key, at)
			c.sets[key] = append([]*list.Element{at}, c.sets[key]...)
		}
		return kept.set
	}
	return nil
}

// keepSet keeps a Set that a render over a tree has made. Expanders that cannot be compared cannot be recognised either, so nothing is kept for them.
func (c *Cache) keepSet(key setKey, expanders []Expander, t *tree, set *Set) {
	if c == nil {
		return
	}
	if !slices.EqualFunc(expanders, expanders, sameExpander) {
		return
	}
	kept := &keptSet{
		key: key, expanders: slices.Clone(expanders), set: set, misses: sortedKeys(t.misses), links: pairs(t.targets),
		folders: make([]listing, 0, len(t.folders)), types: make([]looked, 0, len(t.infos)),
	}
	bytes := 1000 + t.bytes // objects know the text that they were written in
	for _, name := range sortedKeys(t.infos) {
		kept.types = append(kept.types, looked{name, t.infos[name].Mode().Type()})
		bytes += int64(50 + len(name))
	}
	for _, name := range kept.misses {
		bytes += int64(50 + len(name))
	}
	for _, dir := range sortedKeys(t.folders) {
		kept.folders = append(kept.folders, listing{dir, t.folders[dir]})
		for _, name := range t.folders[dir] {
			bytes += int64(50 + len(name))
		}
	}
	for _, o := range set.Objects {
		bytes += 200 + inMemory*o.weight()
	}
	for _, f := range set.Files {
		bytes += int64(100 + len(f.Path) + len(f.Hash))
	}
	kept.contents = contents(t.fsys, kept)
	for _, folder := range kept.contents {
		bytes += int64(50 + len(folder.name) + len(folder.is))
	}
	kept.gather()
	c.keep(kept, kept, bytes)
}

// contents asks for the hashes of all folders with something that decided a Set.
func contents(fsys fs.FS, k *keptSet) []pair {
	h, ok := fsys.(hasher)
	if !ok {
		return nil
	}
	all := map[string]string{}
	ask := func(dir string) {
		if _, asked := all[dir]; asked {
			return
		}
		hash, err := h.Hash(dir)
		if err != nil {
			hash = ""
		}
		all[dir] = hash
	}
	for _, seen := range k.types {
		ask(path.Dir(seen.name))
	}
	for _, name := range k.misses {
		ask(path.Dir(name))
	}
	for _, folder := range k.folders {
		ask(folder.name)
	}
	return pairs(all)
}

// sameExpander says whether two are certainly the same; one that cannot be compared is not even the same as itself.
func sameExpander(a, b Expander) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// forget takes a Set out of the list of its folder.
func (c *Cache) forget(key setKey, at *list.Element) {
	rest := slices.DeleteFunc(c.sets[key], func(e *list.Element) bool { return e == at })
	if c.sets[key] = rest; len(rest) == 0 {
		delete(c.sets, key)
	}
}

// probe looks at a repository as it is now. It asks for each hash once, as the Sets of one folder have nearly all files in common.
type probe struct {
	fsys   fs.FS
	links  fs.ReadLinkFS // nil when the file system has no symbolic links
	limits Limits
	hashes map[string]string // "" where there is none
}

func (p *probe) hash(name string) string {
	hash, ok := p.hashes[name]
	if !ok {
		if now, err := hashOf(p.fsys, name, p.limits); err == nil {
			hash = now
		}
		p.hashes[name] = hash
	}
	return hash
}

func (p *probe) look(name string) (fs.FileInfo, error) {
	if p.links != nil {
		return p.links.Lstat(name)
	}
	return fs.Stat(p.fsys, name)
}

// serves says whether everything that decided the Set is in a repository as it was. Any error is a no: the render that follows will meet it.
func (k *keptSet) serves(now *probe) bool {
	same := func(dir string) bool {
		at, ok := slices.BinarySearchFunc(k.contents, dir, func(p pair, dir string) int { return strings.Compare(p.name, dir) })
		return ok && k.contents[at].is != "" && now.hash(dir) == k.contents[at].is
	}
	for _, f := range k.set.Files {
		if same(path.Dir(f.Path)) {
			continue
		}
		if hash := now.hash(f.Path); hash == "" || hash != f.Hash {
			return false
		}
	}
	for _, link := range k.links {
		if same(path.Dir(link.name)) {
			continue
		}
		if now.links == nil {
			return false
		}
		if to, err := now.links.ReadLink(link.name); err != nil || to != link.is {
			return false
		}
	}
	for _, seen := range k.types {
		if seen.name != "." && same(path.Dir(seen.name)) {
			continue
		}
		if info, err := now.look(seen.name); err != nil || info.Mode().Type() != seen.typ {
			return false
		}
	}
	for _, name := range k.misses {
		if !fs.ValidPath(name) || same(path.Dir(name)) {
			continue
		}
		if _, err := now.look(name); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return false
		}
	}
	for _, folder := range k.folders {
		if same(folder.name) {
			continue
		}
		entries, err := fs.ReadDir(now.fsys, folder.name)
		if err != nil || !slices.EqualFunc(entries, folder.names, func(e fs.DirEntry, name string) bool { return e.Name() == name }) {
			return false
		}
	}
	return true
}
