package repos

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// commitTree is the tree of a commit with what is here of its files, for all who read one Snapshot. Its folders are always all here.
type commitTree struct {
	m    *remote
	rev  Revision
	root entry
	time time.Time

	mu      sync.Mutex
	objects objects // more of them when files are fetched
	sparse  bool    // files are missing on purpose, and come when they are read
	left    int64   // files above this many bytes were not fetched; 0 when all were
	trees   map[plumbing.Hash][]entry
}

func newCommitTree(m *remote, rev Revision, o objects, k mark, info commitInfo) *commitTree {
	return &commitTree{
		m: m, rev: rev, root: entry{name: ".", mode: modeDir, hash: info.tree}, time: info.time,
		objects: o, sparse: k.Sparse, left: k.BlobLimit, trees: map[plumbing.Hash][]entry{},
	}
}

// openTree opens the tree of a commit that is marked. The caller holds the lock.
func (m *remote) openTree(rev Revision, k mark) (*commitTree, error) {
	all, err := m.openAll(k.Packs)
	if err != nil {
		return nil, err
	}
	info, err := readCommit(all, rev.Commit)
	if err != nil {
		return nil, err
	}
	return newCommitTree(m, rev, all, k, info), nil
}

// here is what there is now: the objects, whether files are missing on purpose, and above which size they are in any case.
func (t *commitTree) here() (o objects, sparse bool, left int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	left = t.left
	if t.sparse {
		left = t.m.opts.Limits.BlobBytes
	}
	return t.objects, t.sparse, left
}

// tree decodes a folder once.
func (t *commitTree) tree(h plumbing.Hash) ([]entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if entries, ok := t.trees[h]; ok {
		return entries, nil
	}
	entries, err := t.objects.readTree(h)
	if err != nil {
		return nil, t.unreadable(err)
	}
	t.trees[h] = entries
	return entries, nil
}

// unreadable is trouble with what had been checked when it was fetched: the disk has changed it since, or cannot read it now.
func (t *commitTree) unreadable(err error) error {
	if passes(err) {
		t.m.doubtful.Store(true)
		return storeTrouble(err)
	}
	t.m.damaged.Store(true)
	return failf(KindStore, "the store is damaged and is fetched anew the next time; if it happens again, check the disk", "read object: %w", err)
}

// absent tells whether a file is not here but may be had.
func (t *commitTree) absent(h plumbing.Hash) bool {
	o, sparse, _ := t.here()
	return sparse && !o.has(h) && !t.m.filesBy.large.has(h)
}

// fetch brings a file of a folder, and with it what is likely to be read next.
func (t *commitTree) fetch(ctx context.Context, dir string, e entry) error {
	others, err := t.missingBelow(t.m.filesBy.asked.note(dir, e.name), nil, maxNamed)
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(h plumbing.Hash) bool { return h == e.hash })
	if err := t.get(ctx, e.hash, others); err != nil {
		return err
	}
	if t.absent(e.hash) {
		return locate("fetch", t.m.url, failf(KindProtocol, "", "the server left file %q out", path.Join(dir, e.name)))
	}
	return nil
}

// get asks the remote for files, of which the first must come.
func (t *commitTree) get(ctx context.Context, first plumbing.Hash, others []plumbing.Hash) error {
	m := t.m
	ctx, cancel := context.WithTimeout(ctx, m.opts.Timeout)
	defer cancel()
	got, err := m.files(ctx, t.rev, first, others)
	if e, ok := errors.AsType[*Error](err); ok {
		told := *e
		told.Err = noAbsence(e.Err)
		err = &told
	}
	err = within(ctx, "fetch", m.url, m.opts.Timeout, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if got.whole {
		t.objects, t.sparse, t.left = objects{packs: got.packs}, false, got.limit
		return err
	}
	packs := slices.Clone(t.objects.packs) // others are reading
	for _, p := range got.packs {
		if !slices.Contains(packs, p) {
			packs = append(packs, p)
		}
	}
	t.objects.packs = packs
	return err
}

// missingBelow adds those files of a folder to some that are likely to be read and are not here, and stops when there are
// more than limit. A folder that does not exist has none.
func (t *commitTree) missingBelow(f folder, some []plumbing.Hash, limit int) ([]plumbing.Hash, error) {
	at := t.root
	for _, name := range names(f.path) {
		entries, err := t.tree(at.hash)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(entries, func(e entry) bool { return e.name == name })
		if i < 0 || entries[i].mode != modeDir {
			return some, nil
		}
		at = entries[i]
	}
	s := search{commitTree: t, folder: f, limit: limit, files: some, seen: map[plumbing.Hash]bool{}}
	for _, h := range some {
		s.seen[h] = true
	}
	s.objects, _, _ = t.here()
	err := s.look(at.hash, 0)
	return s.files, err
}

// search is one for files that are missing.
type search struct {
	*commitTree
	folder  folder
	objects objects
	limit   int
	files   []plumbing.Hash
	seen    map[plumbing.Hash]bool // folders, too
}

func (s *search) look(folder plumbing.Hash, depth int) error {
	if s.seen[folder] || depth > maxTreeDepth {
		return nil
	}
	s.seen[folder] = true
	entries, err := s.tree(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case len(s.files) > s.limit:
			return nil
		case e.mode == modeDir && s.folder.deep:
			if err := s.look(e.hash, depth+1); err != nil {
				return err
			}
		case s.folder.has(e, depth > 0) && !s.seen[e.hash] && !s.objects.has(e.hash) && !s.m.filesBy.large.has(e.hash):
			s.seen[e.hash] = true
			s.files = append(s.files, e.hash)
		}
	}
	return nil
}

// names of a path, from the root down.
func names(name string) []string {
	var all []string
	for dir := name; dir != "." && dir != ""; dir = path.Dir(dir) {
		all = append(all, path.Base(dir))
	}
	slices.Reverse(all)
	return all
}

// want brings what is likely to be read below folders. What is wrong with one of them is told to whoever reads it.
func (t *commitTree) want(ctx context.Context, folders []string) error {
	if _, sparse, _ := t.here(); !sparse {
		return nil
	}
	view := &treeFS{commitTree: t, ctx: ctx, wait: func(fetch func() error) error { return fetch() }}
	var files []plumbing.Hash
	for _, name := range folders {
		name = path.Clean(name)
		if !fs.ValidPath(name) {
			continue
		}
		at, err := view.walk(name, true)
		switch KindOf(err) {
		case "", KindContent, KindLimit, KindStore:
			if err != nil {
				continue
			}
		default: // a link on the way could not be fetched
			return err
		}
		dir, file := at.path(), ""
		if at.mode != modeDir {
			dir, file = path.Dir(dir), at.name
			if t.absent(at.hash) {
				files = append(files, at.hash)
			}
		}
		if files, err = t.missingBelow(t.m.filesBy.asked.note(dir, file), files, maxNamed); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		return nil
	}
	return t.get(ctx, plumbing.ZeroHash, files)
}

// bring has a file fetched that is not here, by whoever waits for it.
func (t *treeFS) bring(at located) error {
	if !t.absent(at.hash) {
		return nil
	}
	return t.wait(func() error { return t.fetch(t.ctx, at.dir, at.entry) })
}

// located is an entry, and the real path of the folder that it is in: one without links.
type located struct {
	entry
	dir string // "" for the root itself
}

func (l located) path() string {
	if l.dir == "" {
		return "."
	}
	return path.Join(l.dir, l.name)
}
