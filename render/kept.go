package render

import (
	"container/list"
	"context"
	"errors"
	"io/fs"
	"path"
	"reflect"
	"slices"
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
	folders   map[string][]string
	types     map[string]fs.FileMode // of what was looked at and is no symbolic link
	links     map[string]string
	// contents are hashes of folders with all that is in them, where the repository knows them. What is in such a folder need not be looked at one by one.
	contents map[string]string
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
		if _, ok := c.entries[kept]; ok { // it may have gone meanwhile
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
		key: key, expanders: slices.Clone(expanders), set: set, misses: sortedKeys(t.misses), folders: t.folders, links: t.targets,
		types: make(map[string]fs.FileMode, len(t.infos)),
	}
	bytes := 1000 + t.bytes // objects know the text that they were written in
	for name, info := range t.infos {
		kept.types[name] = info.Mode().Type()
		bytes += int64(100 + len(name))
	}
	for _, name := range kept.misses {
		bytes += int64(100 + len(name))
	}
	for _, names := range t.folders {
		for _, name := range names {
			bytes += int64(100 + len(name))
		}
	}
	for _, o := range set.Objects {
		bytes += 200 + inMemory*o.weight()
	}
	for _, f := range set.Files {
		bytes += int64(100 + len(f.Path) + len(f.Hash))
	}
	kept.contents = contents(t.fsys, kept)
	for name, hash := range kept.contents {
		bytes += int64(100 + len(name) + len(hash))
	}
	c.keep(kept, kept, bytes)
}

// contents asks for the hashes of all folders with something that decided a Set.
func contents(fsys fs.FS, k *keptSet) map[string]string {
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
	for name := range k.types {
		ask(path.Dir(name))
	}
	for _, name := range k.misses {
		ask(path.Dir(name))
	}
	for name := range k.folders {
		ask(name)
	}
	return all
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
		hash := k.contents[dir]
		return hash != "" && now.hash(dir) == hash
	}
	for _, f := range k.set.Files {
		if same(path.Dir(f.Path)) {
			continue
		}
		if hash := now.hash(f.Path); hash == "" || hash != f.Hash {
			return false
		}
	}
	for name, target := range k.links {
		if same(path.Dir(name)) {
			continue
		}
		if now.links == nil {
			return false
		}
		if to, err := now.links.ReadLink(name); err != nil || to != target {
			return false
		}
	}
	for name, typ := range k.types {
		if name != "." && same(path.Dir(name)) {
			continue
		}
		if info, err := now.look(name); err != nil || info.Mode().Type() != typ {
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
	for name, names := range k.folders {
		if same(name) {
			continue
		}
		entries, err := fs.ReadDir(now.fsys, name)
		if err != nil || !slices.EqualFunc(entries, names, func(e fs.DirEntry, name string) bool { return e.Name() == name }) {
			return false
		}
	}
	return true
}
