package repos

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	// maxNamed is how many files one request names. Where more are missing the whole commit is fetched.
	maxNamed = 20_000
	// maxLarge is how many files are remembered to be too large.
	maxLarge = 10_000
	// maxFailures is how often in a row files are asked for without an answer before the whole commit is asked for: some servers break over the question.
	maxFailures = 3
	// refusedFor is how long commits are fetched whole after that.
	refusedFor = time.Hour
	// maxHalvings is how many requests are made to find out which file of many is too large.
	maxHalvings = 24
)

// byFile is what is known of a remote whose commits are here without all their files.
type byFile struct {
	refused  atomic.Int64 // when the server gave no file by its id, though it said that it would; in Unix time, 0 for never
	failures atomic.Int32
	asked    folders
	large    largeFiles
}

// canBeSparse tells whether a server can leave files out, and gives them by their ids later.
func (m *remote) canBeSparse(caps *capability.List) bool {
	refused := time.Since(time.Unix(m.filesBy.refused.Load(), 0)) < refusedFor
	return !refused && caps.Supports(capability.Filter) && caps.Supports(capability.Shallow) &&
		(m.byID || caps.Supports(capability.AllowReachableSHA1InWant))
}

// found is where files of a commit are. whole says that now all are there, but those above a limit.
type found struct {
	packs []*pack
	whole bool
	limit int64
}

// files sees to it that a file of a commit is here, unless it is too large, and at best others too. When the server gives
// no file by its id, the whole commit is fetched, and its next commits are for an hour, since the server may have been mended.
func (m *remote) files(ctx context.Context, rev Revision, first plumbing.Hash, others []plumbing.Hash) (found, error) {
	packs, because := m.bring(ctx, rev.Commit, first, others)
	if because == nil {
		m.filesBy.failures.Store(0)
	}
	if because == nil || !m.declines(because) {
		return found{packs: packs}, m.explain(ctx, because)
	}
	leave, err := m.fetching.enter(ctx)
	if err != nil {
		return found{}, m.explain(ctx, err)
	}
	defer leave()
	if k, err := m.readMark(rev.Commit); err != nil || k.Sparse { // nobody was quicker
		if err := m.fetchWhole(ctx, rev, because); err != nil {
			return found{}, m.explain(ctx, err)
		}
	}
	return m.whole(rev.Commit)
}

// fetchWhole is what is done when files are not given by their ids. That is remembered, unless the commit is not given
// either; then it is gone from the server.
func (m *remote) fetchWhole(ctx context.Context, rev Revision, because error) error {
	err := m.fetch(ctx, rev, true)
	if err == nil && !errors.Is(because, errTooMany) {
		m.filesBy.refused.Store(time.Now().Unix())
	}
	return err
}

// declines is true for a server that does not give what it was asked for by its id, or stumbles over the question time and
// again; and for too many files to name.
func (m *remote) declines(err error) bool {
	switch KindOf(err) {
	case KindProtocol, KindCommitNotFound:
		return true
	case KindUnavailable:
		return m.filesBy.failures.Add(1) >= maxFailures
	}
	return errors.Is(err, errTooMany)
}

var errTooMany = errors.New("too many files are missing to be named")

// whole opens a commit that was fetched as a whole.
func (m *remote) whole(c Commit) (found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, err := m.readMark(c)
	if err != nil {
		return found{}, storeTrouble(err)
	}
	all, err := m.openAll(k.Packs)
	if err != nil {
		return found{}, storeTrouble(err)
	}
	return found{packs: all.packs, whole: !k.Sparse, limit: k.BlobLimit}, nil
}

// bring asks for the files that are nowhere in the store, in one conversation at best, and adds the packs to the commit's.
// One conversation at a time: whoever waited for another one finds what that has brought.
func (m *remote) bring(ctx context.Context, c Commit, first plumbing.Hash, others []plumbing.Hash) ([]*pack, error) {
	leave, err := m.reading.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	wanted := others
	if !first.IsZero() {
		wanted = append([]plumbing.Hash{first}, others...)
	}
	packs, missing := m.around(wanted)
	if len(missing) > maxNamed {
		return nil, errTooMany
	}
	if len(missing) > 0 && (first.IsZero() || missing[0] == first) {
		received, err := m.receive(ctx, first, missing)
		packs = append(packs, received...)
		if err != nil {
			return packs, err
		}
	}
	m.extend(c, packs)
	return packs, nil
}

// receive asks for files, and once more for the first one alone when it was not found out which of them are too large.
func (m *remote) receive(ctx context.Context, first plumbing.Hash, missing []plumbing.Hash) ([]*pack, error) {
	if err := m.withRoom(m.makeFolders); err != nil {
		return nil, storeTrouble(err)
	}
	left := maxHalvings
	packs, err := m.halve(ctx, missing, &left)
	known := func() bool { return objects{packs: packs}.has(first) || m.filesBy.large.has(first) }
	if err != nil || first.IsZero() || known() {
		return packs, err
	}
	more, err := m.halve(ctx, []plumbing.Hash{first}, &left)
	packs = append(packs, more...)
	if err == nil && !known() {
		err = failf(KindProtocol, "", "the server left file %s out", first)
	}
	return packs, err
}

// halve asks for files. Their sizes are not known before, so an answer is cut short where a file begins that is too large;
// then halves of the files are asked for, until it is known which one that is.
func (m *remote) halve(ctx context.Context, files []plumbing.Hash, left *int) ([]*pack, error) {
	*left--
	p, err := m.askFiles(ctx, files)
	switch {
	case err == nil:
		return []*pack{p}, nil
	case !errors.Is(err, errLargeFile):
		return nil, err
	case len(files) == 1:
		m.filesBy.large.add(files[0])
		return nil, nil
	case *left <= 0: // there are many: each is asked for when it is read
		return nil, nil
	}
	var packs []*pack
	for _, half := range [][]plumbing.Hash{files[:len(files)/2], files[len(files)/2:]} {
		more, err := m.halve(ctx, half, left)
		packs = append(packs, more...)
		if err != nil {
			return packs, err
		}
	}
	return packs, nil
}

// askFiles holds one conversation, or two, if room had to be made.
func (m *remote) askFiles(ctx context.Context, files []plumbing.Hash) (p *pack, err error) {
	err = m.withRoom(func() error {
		p, err = m.askFilesOnce(ctx, files)
		return err
	})
	return p, err
}

func (m *remote) askFilesOnce(ctx context.Context, files []plumbing.Hash) (*pack, error) {
	answer, err := m.askAgain(ctx, func(*packp.AdvRefs) (want, error) { return want{objects: files}, nil })
	if err != nil {
		return nil, err
	}
	defer answer.close()
	p, err := receivePack(ctx, m.packDir(), answer, objects{}, packLimits{Limits: m.opts.Limits, file: m.opts.Limits.BlobBytes})
	if err != nil {
		return nil, err
	}
	answer.drain()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shelve(p)
	return p, nil
}

// around looks for files in the packs of the commits that were used last, and lists those that are missing, without the
// ones that are known to be too large.
func (m *remote) around(files []plumbing.Hash) (packs []*pack, missing []plumbing.Hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all objects
	commits, _ := m.commitsByUse() // at worst they are asked for again
	for _, c := range commits[:min(len(commits), m.opts.keep.commits)] {
		k, err := m.readMark(c.commit)
		if err != nil {
			continue
		}
		if more, err := m.openAll(k.Packs); err == nil {
			for _, p := range more.packs {
				if !slices.Contains(all.packs, p) {
					all.packs = append(all.packs, p)
				}
			}
		}
	}
	for _, h := range files {
		p, _ := all.find(h)
		switch {
		case p == nil && !m.filesBy.large.has(h):
			missing = append(missing, h)
		case p != nil && !slices.Contains(packs, p):
			packs = append(packs, p)
		}
	}
	return packs, missing
}

// extend adds packs to those of a commit, if it is still marked. What cannot be written down is asked for again.
func (m *remote) extend(c Commit, packs []*pack) {
	m.mu.Lock()
	k, err := m.readMark(c)
	before := len(k.Packs)
	for _, p := range packs {
		if !slices.Contains(k.Packs, p.name) {
			k.Packs = append(k.Packs, p.name)
		}
	}
	more := err == nil && len(k.Packs) > before
	if more {
		err = m.writeMark(c, k)
	}
	m.mu.Unlock()
	if more && err == nil {
		m.tidy(c)
	}
}

// prefetch brings the files of a new commit that are likely to be read: those in the folders where files were asked for
// lately. What goes wrong with it is told to whoever reads them; but where the server gives no files the commit is fetched
// as a whole. The caller has the turn to fetch.
func (m *remote) prefetch(ctx context.Context, rev Revision) error {
	m.mu.Lock()
	var t *commitTree
	k, err := m.readMark(rev.Commit)
	if err == nil && k.Sparse {
		t, err = m.openTree(rev, k)
	}
	m.mu.Unlock()
	if err != nil || t == nil {
		return nil // found when it is read
	}
	var files []plumbing.Hash
	for _, f := range m.filesBy.asked.lately() {
		if files, err = t.missingBelow(f, files, maxNamed); err != nil {
			return nil
		}
	}
	if len(files) > 0 {
		_, err = m.bring(ctx, rev.Commit, plumbing.ZeroHash, files)
	}
	if errors.Is(err, errNotOurs) {
		return m.fetchWhole(ctx, rev, err)
	}
	m.tidy(rev.Commit)
	return nil
}

// largeFiles are the last ones that were found to be too large, so that not every reader asks for them again.
type largeFiles struct {
	mu    sync.Mutex
	files map[plumbing.Hash]struct{}
}

func (l *largeFiles) has(h plumbing.Hash) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.files[h]
	return ok
}

func (l *largeFiles) add(h plumbing.Hash) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil || len(l.files) >= maxLarge {
		l.files = map[plumbing.Hash]struct{}{}
	}
	l.files[h] = struct{}{}
}
