package repos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"weak"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// usedFile is touched whenever a remote is asked for.
const usedFile = "used"

// keeping is what is kept of what is no longer asked for.
type keeping struct {
	commits int           // the last few, in any case
	lately  time.Duration // and those that were asked for in this time
	stray   time.Duration // files that belong to no commit, or not yet
}

func defaultKeeping() keeping { return keeping{commits: 8, lately: time.Hour, stray: 10 * time.Minute} }

// remote is one repository with one set of credentials: its folder, its connection and the work in progress.
type remote struct {
	dir       string
	url       string
	auth      Auth
	by        Proxy
	opts      Options
	transport transport

	// byID is true where a server gives everything by its id that a ref reaches, whatever it says of that.
	byID     bool
	heard    atomic.Pointer[heard]
	listings flights[string, *packp.AdvRefs]
	listing  gate
	fetches  flights[Commit, struct{}]
	fetching gate
	reading  gate // of single files
	filesBy  byFile
	relating flights[[2]Commit, Relation]
	related  relations
	tags     tags
	damaged  atomic.Bool // the store was seen to be damaged while it was read
	doubtful atomic.Bool // the disk could not read all of it
	makeRoom func(since time.Time) bool

	mu    sync.Mutex // guards the folder and packs; never held while waiting for a server
	packs map[string]weak.Pointer[pack]
	// checked are the packs whose every byte this process has seen to be right.
	checked map[string]stamp
	counted counted
}

func newRemote(dir string, at endpoint, auth Auth, by Proxy, opts Options) *remote {
	m := &remote{
		dir: dir, url: at.String(), auth: auth, by: by, opts: opts,
		listing: newGate(), fetching: newGate(), reading: newGate(), packs: map[string]weak.Pointer[pack]{}, checked: map[string]stamp{},
	}
	switch at.scheme {
	case "ssh":
		m.transport = &sshTransport{at: at, auth: auth, by: by}
	case "file":
		m.transport = &localTransport{path: at.path}
	default:
		m.transport, m.byID = newHTTPTransport(at, auth, by, opts.Timeout), true
	}
	return m
}

func (m *remote) packDir() string   { return filepath.Join(m.dir, "objects", "pack") }
func (m *remote) commitDir() string { return filepath.Join(m.dir, "commits") }

// prepare makes the folder, in the form of a bare repository, so that git --git-dir can look into it, and notes that it
// is in use.
func (m *remote) prepare() error {
	now := time.Now()
	// On a disk that became read-only, what is here can be read.
	if err := os.Chtimes(filepath.Join(m.dir, usedFile), now, now); err == nil || errors.Is(err, syscall.EROFS) {
		return nil
	}
	if err := m.makeFolders(); err != nil {
		return err
	}
	for _, f := range [][2]string{
		{"HEAD", "ref: refs/heads/none\n"},
		{"config", "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"},
		{"url", m.url + "\n"},
		{usedFile, ""},
	} {
		if err := writeFile(filepath.Join(m.dir, f[0]), func(w io.Writer) error {
			_, err := io.WriteString(w, f[1])
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func (m *remote) makeFolders() error {
	for _, dir := range []string{m.packDir(), m.commitDir(), filepath.Join(m.dir, "refs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// list asks for the refs. Whoever comes while a listing is running waits for the next one, because what they ask about
// may have changed after it began; all who wait share that next one.
func (m *remote) list(ctx context.Context) (*packp.AdvRefs, error) {
	return m.listings.do(ctx, "refs", m.opts.Timeout, func(ctx context.Context, sealed func()) (*packp.AdvRefs, error) {
		leave, err := m.listing.enter(ctx)
		if err != nil {
			return nil, m.explain(ctx, err)
		}
		defer leave()
		sealed()
		s, err := m.transport.open(ctx, toFetch)
		if err != nil {
			return nil, m.explain(ctx, err)
		}
		defer s.close()
		adv, err := m.hear(ctx, s)
		return adv, m.explain(ctx, err)
	})
}

// explain puts the deadline of shared work, which its callers do not see, in place of what broke because of it.
func (m *remote) explain(ctx context.Context, err error) error {
	if err != nil && late(ctx, err) {
		return ended(context.DeadlineExceeded, m.opts.Timeout)
	}
	return err
}

// late says whether something broke because the deadline was over. A connection that was given the same deadline can notice that a moment before the context does.
func late(ctx context.Context, err error) bool {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return true
	}
	deadline, bounded := ctx.Deadline()
	return bounded && errors.Is(err, os.ErrDeadlineExceeded) && !time.Now().Before(deadline)
}

// snapshot opens a commit, fetching it if need be. A store that turns out to be damaged is thrown away, once. What the disk cannot read may be one bad block, and is
// written to another place when it is fetched; until that is done, nothing is thrown away.
func (m *remote) snapshot(ctx context.Context, rev Revision) (*Snapshot, error) {
	for attempt := 0; ; attempt++ {
		snap, notHere := m.local(rev)
		unreadable := attempt == 0 && errors.Is(notHere, syscall.EIO)
		if notHere == nil || (!unreadable && !errors.Is(notHere, errNotHere)) {
			return snap, notHere
		}
		if attempt == 2 {
			return nil, failf(KindStore, "check the disk; or does something else write to the store's folder?", "what was fetched is gone again: %w", inFolder(notHere))
		}
		_, err := m.fetches.do(ctx, rev.Commit, m.opts.Timeout, func(ctx context.Context, _ func()) (struct{}, error) {
			leave, err := m.fetching.enter(ctx)
			if err != nil {
				return struct{}{}, m.explain(ctx, err)
			}
			defer leave()
			if _, err := m.readMark(rev.Commit); err == nil && !unreadable { // somebody fetched it between our look and our turn
				return struct{}{}, nil
			}
			return struct{}{}, m.explain(ctx, m.fetch(ctx, rev, false))
		})
		if err != nil && unreadable {
			return nil, notHere
		}
		if err != nil {
			return nil, err
		}
	}
}

// errNotHere is a commit that is not complete on disk.
var errNotHere = errors.New("commit is not in the store")

// mark says that a commit is complete, and in which packs. It is written last, so that a crash before leaves no more
// than files without meaning.
type mark struct {
	Packs []string `json:"packs"`
	// Entries of the tree, files and folders.
	Entries int `json:"entries"`
	// BlobLimit above which files were left out; 0 when none were.
	BlobLimit int64 `json:"blobLimit,omitempty"`
	// Sparse says that only those files are here that were asked for. Folders always are.
	Sparse bool `json:"sparse,omitempty"`
}

func (m *remote) markFile(c Commit) string { return filepath.Join(m.commitDir(), string(c)) }

func (m *remote) readMark(c Commit) (mark, error) {
	var k mark
	content, err := os.ReadFile(m.markFile(c))
	if err != nil {
		return k, err
	}
	if err := json.Unmarshal(content, &k); err != nil {
		return k, fmt.Errorf("mark of %s: %w", c, err)
	}
	return k, nil
}

// local opens a commit that is on disk.
func (m *remote) local(rev Revision) (*Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.damaged.Swap(false) {
		m.discard()
		return nil, errNotHere
	}
	if m.doubtful.Swap(false) {
		clear(m.checked) // so that packs are read to the end before anything is promised, or built on them
	}
	k, err := m.readMark(rev.Commit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotHere
	}
	var objects objects
	if err == nil {
		objects, err = m.openAll(k.Packs)
	}
	var snap *Snapshot
	if err == nil {
		snap, err = newSnapshot(m, rev, objects, k)
	}
	if KindOf(err) == KindLimit {
		return nil, err
	}
	if passes(err) {
		clear(m.checked) // or what is fetched in place of it is built on it
		return nil, storeTrouble(err)
	}
	if err != nil {
		m.discard()
		return nil, fmt.Errorf("%w: %w", errNotHere, err)
	}
	if k.BlobLimit != 0 && k.BlobLimit < m.opts.Limits.BlobBytes { // the limit was raised since
		_ = os.Remove(m.markFile(rev.Commit))
		return nil, errNotHere
	}
	if k.Entries > m.opts.Limits.TreeEntries {
		return nil, failf(KindLimit, entriesHint, "the commit has %d files and folders, more than %d", k.Entries, m.opts.Limits.TreeEntries)
	}
	now := time.Now()
	_ = os.Chtimes(m.markFile(rev.Commit), now, now) // at worst it is fetched again
	return snap, nil
}

// openAll opens packs, or takes those that are open. The caller holds the lock.
func (m *remote) openAll(names []string) (objects, error) {
	var o objects
	if len(names) == 0 {
		return o, errors.New("no packs")
	}
	for _, name := range names {
		if name != filepath.Base(name) || !strings.HasPrefix(name, "pack-") {
			return o, fmt.Errorf("%q is no name of a pack", name)
		}
		now, err := stampOf(filepath.Join(m.packDir(), name+".pack"))
		if err != nil {
			return o, err
		}
		p, checked := m.packs[name].Value(), m.checked[name] == now
		if p == nil || !checked {
			if p, err = openPack(m.packDir(), name, checked); err != nil {
				return o, err
			}
			m.packs[name], m.checked[name] = weak.Make(p), now
		}
		o.packs = append(o.packs, p)
	}
	return o, nil
}

// shelve takes a new pack up among those that are open. The caller holds the lock.
func (m *remote) shelve(p *pack) {
	if at, err := stampOf(filepath.Join(m.packDir(), p.name+".pack")); err == nil {
		m.packs[p.name], m.checked[p.name] = weak.Make(p), at
	}
}
