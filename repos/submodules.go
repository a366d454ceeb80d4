package repos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// What submodules may cost that are read through one file system. That a repository contains itself, at an older commit that contains it again, ends at maxModuleDepth.
const (
	maxModuleDepth = 8
	maxModules     = 100
)

// submoduleFault is a submodule on the way to what is read, where submodules are not followed.
type submoduleFault struct {
	name   string
	commit plumbing.Hash
}

func (e *submoduleFault) Error() string {
	return fmt.Sprintf("%q is a submodule at commit %s, and those are not fetched", e.name, e.commit)
}

func submoduleError(e entry) error {
	return fail(KindContent, &submoduleFault{name: e.name, commit: e.hash},
		"set spec.source.recurseSubmodules: true if it is on the source's own server; or copy the files into this repository, or give the other one a Mooring of its own")
}

// contents is what a file system of a commit offers.
type contents interface {
	fs.ReadFileFS
	fs.ReadDirFS
	fs.StatFS
	fs.ReadLinkFS
	Hash(name string) (string, error)
}

// modules are a snapshot and its submodules, as far as somebody has looked into them.
type modules struct {
	store *Store
	with  Remote // of the root
	salt  string
	time  time.Time
	root  *module

	mu    sync.Mutex
	count int // of submodules that were asked for
}

// module is one repository in the whole: the root, or a submodule.
type module struct {
	path   string // from the root of the whole
	depth  int    // how many modules are around it
	parent *module
	name   string // its path in parent
	commit Commit

	mu       sync.Mutex
	snap     *Snapshot // nil before it is fetched
	at       endpoint
	err      error // why it cannot be had
	counted  bool
	urls     map[string]string // of .gitmodules; nil before it is read
	children map[string]*module
}

func modulesOf(s *Store, with Remote, snap *Snapshot) *modules {
	at, _ := parseURL(with.URL, s.opts.AllowFile) // the snapshot has come from there
	return &modules{
		store: s, with: with, salt: storeKey(at, with.Auth, with.Proxy), time: snap.Time,
		root: &module{path: ".", snap: snap, at: at, commit: snap.Revision.Commit},
	}
}

// see gives the whole to somebody who reads it; tree is what he sees of the root.
func (ms *modules) see(ctx context.Context, wait func(fetch func() error) error, tree contents) *moduleFS {
	return &moduleFS{modules: ms, ctx: ctx, wait: wait, tree: tree, trees: map[*module]contents{ms.root: tree}}
}

// moduleFS is a tree with those of its submodules in their places. A submodule is fetched when something in it is asked for.
//
// A link in a submodule leads to what is in that submodule, nested ones included, and nowhere else: what it would find above, in another repository, is none of its
// business. Links of the tree around it may lead into it.
type moduleFS struct {
	*modules
	ctx  context.Context
	wait func(fetch func() error) error
	tree contents // of the root

	seeing sync.Mutex
	trees  map[*module]contents
}

var _ contents = (*moduleFS)(nil)

// open gives the tree of a module, which may have to be fetched: for the sake of what is below a folder, most of all.
func (w *moduleFS) open(m *module, folder string) (contents, error) {
	w.seeing.Lock()
	tree := w.trees[m]
	w.seeing.Unlock()
	if tree != nil {
		return tree, nil
	}
	snap, err := m.had()
	if snap == nil && err == nil {
		var fetch func() error
		if fetch, err = w.fetcher(m, folder); err != nil {
			return nil, err
		}
		if err := w.wait(fetch); err != nil {
			return nil, err
		}
		snap, err = m.had()
	}
	if err != nil {
		return nil, err
	}
	tree, ok := snap.Read(w.ctx, w.wait).(contents)
	if !ok {
		return nil, m.fault(failf(KindStore, "", "it cannot be read"))
	}
	w.seeing.Lock()
	defer w.seeing.Unlock()
	w.trees[m] = tree
	return tree, nil
}

// had is the submodule as it was fetched, or why it cannot be; nothing where nobody has tried.
func (m *module) had() (*Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snap, m.err
}

// fetcher gives what fetches a submodule, whose parent is open.
func (w *moduleFS) fetcher(m *module, folder string) (func() error, error) {
	url, err := w.locate(m)
	if _, unread := errors.AsType[*fs.PathError](err); unread { // the parent's file, which has to be fetched first
		return nil, err
	}
	at, parseErr := parseURL(url, w.store.opts.AllowFile)
	if err = cmp.Or(err, parseErr); err != nil {
		return nil, m.fault(err)
	}
	remote := w.with
	remote.URL, remote.RecurseSubmodules = url, false
	return func() error {
		snap, err := w.store.Snapshot(w.ctx, remote, Revision{Commit: m.commit})
		if err == nil {
			err = snap.Want(w.ctx, folder)
		}
		if err != nil {
			err = m.fault(err)
		}
		if err == nil || w.ctx.Err() == nil { // a reader who had no time left says nothing
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.err = err; err == nil {
				m.snap, m.at = snap, at
			}
		}
		return err
	}, nil
}

// locate finds where a submodule is to be had, if it may be.
func (w *moduleFS) locate(m *module) (string, error) {
	m.mu.Lock()
	counted := m.counted
	m.counted = true
	m.mu.Unlock()
	w.mu.Lock()
	if !counted {
		w.count++
	}
	many := w.count > maxModules
	w.mu.Unlock()
	switch {
	case m.depth > maxModuleDepth:
		return "", failf(KindLimit, "name what is needed in the repository itself", "submodules lie in each other more than %d deep", maxModuleDepth)
	case many:
		return "", failf(KindLimit, smallerHint, "more than %d submodules are read", maxModules)
	}
	tree, err := w.open(m.parent, ".")
	if err != nil {
		return "", err
	}
	return m.parent.urlOf(tree, m.name, w.store.opts.AllowFile)
}

// fault says which submodule an error is about.
func (m *module) fault(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = fail(KindStore, err, "")
	}
	told := *e
	if told.Kind == KindCommitNotFound {
		told.Hint = "push it to that repository; or is it another one that " + gitmodules + " should name?"
	}
	told.Err = noAbsence(fmt.Errorf("submodule %q at commit %s: %w", m.path, m.commit, e.Err))
	return &told
}

// noAbsence is trouble on the way to a file, which must not look as if the file were not there.
func noAbsence(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return errors.New(err.Error())
	}
	return err
}

// urlOf finds where a submodule of this module is to be had; tree is what is seen of this one.
func (m *module) urlOf(tree contents, name string, allowFile bool) (string, error) {
	m.mu.Lock()
	urls := m.urls
	m.mu.Unlock()
	if urls == nil {
		var err error
		if urls, err = readModules(tree); err != nil {
			return "", err
		}
		m.mu.Lock()
		m.urls = urls
		m.mu.Unlock()
	}
	raw := urls[name]
	if raw == "" {
		return "", failf(KindContent, "commit the "+gitmodules+" that git submodule add writes, or copy the files here", "%s has no url for it", gitmodules)
	}
	return submoduleURL(m.at, raw, allowFile)
}

// child is the submodule at a path of this module, which is not fetched for that.
func (m *module) child(name string, commit plumbing.Hash) *module {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.children[name]; c != nil {
		return c
	}
	c := &module{path: path.Join(m.path, name), depth: m.depth + 1, parent: m, name: name, commit: Commit(commit.String())}
	if m.children == nil {
		m.children = map[string]*module{}
	}
	m.children[name] = c
	return c
}

// place is where a path leads: a module, and a name in it that leads through no link.
type place struct {
	in   *module
	name string
}

// step is one name of a path that is still to go. floor is how many names of the path before it ".." may not take away.
type step struct {
	name  string
	floor int
}

func stepsOf(name string, floor int, then []step) []step {
	var steps []step
	for part := range strings.SplitSeq(name, "/") {
		steps = append(steps, step{part, floor})
	}
	return append(steps, then...)
}

// ahead is what the steps that are left lead to, as far as no ".." comes between.
func ahead(next step, then []step) string {
	names := []string{next.name}
	for _, s := range then {
		if s.name == ".." {
			break
		}
		names = append(names, s.name)
	}
	return path.Join(names...)
}

// errLeaves is a link that leads out of its own repository.
var errLeaves = errors.New("leads out of its repository")

// find goes down a path through all modules on the way.
func (w *moduleFS) find(name string, follow bool) (place, error) {
	type mount struct {
		*module
		depth int // names before it
	}
	var at []string
	mounts := []mount{{w.root, 0}}
	links := 0
	for todo := stepsOf(name, 0, nil); len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		here := mounts[len(mounts)-1]
		switch next.name {
		case "", ".":
			continue
		case "..": // only links have it
			if len(at) <= next.floor {
				return place{}, failf(KindContent, "let links point at files of the same repository", "a link %w", errLeaves)
			}
			if at = at[:len(at)-1]; len(at) < here.depth {
				mounts = mounts[:len(mounts)-1]
			}
			continue
		}
		tree, err := w.open(here.module, ahead(next, todo))
		if err != nil {
			return place{}, err
		}
		inside := path.Join(append(slices.Clone(at[here.depth:]), next.name)...)
		info, err := tree.Lstat(inside)
		if err != nil {
			return place{}, cause(err)
		}
		switch kind := info.Mode().Type(); {
		case kind == fs.ModeSymlink && (follow || len(todo) > 0):
			if links++; links > maxLinks {
				return place{}, failf(KindContent, "remove the link that leads back to itself", "the path leads through more than %d links", maxLinks)
			}
			target, err := tree.ReadLink(inside)
			if err != nil {
				return place{}, cause(err)
			}
			if strings.HasPrefix(target, "/") {
				return place{}, failf(KindContent, "let links point at files of the same repository, with a relative path", "the link %q %w: its target is absolute", next.name, errLeaves)
			}
			todo = stepsOf(target, here.depth, todo)
			continue
		case kind == fs.ModeIrregular:
			commit, err := commitAt(tree, inside)
			if err != nil {
				return place{}, err
			}
			at = append(at, next.name)
			mounts = append(mounts, mount{here.child(inside, commit), len(at)})
			continue
		}
		at = append(at, next.name)
	}
	here := mounts[len(mounts)-1]
	return place{here.module, path.Join(append([]string{"."}, at[here.depth:]...)...)}, nil
}

// commitAt is the commit that a tree names for a submodule.
func commitAt(tree contents, name string) (plumbing.Hash, error) {
	_, err := tree.Stat(name)
	if e, ok := errors.AsType[*submoduleFault](err); ok {
		return e.commit, nil
	}
	return plumbing.ZeroHash, fmt.Errorf("find out the commit of submodule %q: %w", name, err)
}

// cause takes off what a file system says of the path.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
