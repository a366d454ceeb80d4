package repos

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"weak"
)

// Options of a Store. The zero value is what an agent wants.
type Options struct {
	// Limits on what is fetched and read; fields that are zero take their value from DefaultLimits.
	Limits Limits
	// Timeout bounds each call, waiting included; 60 seconds when zero.
	Timeout time.Duration
	// AllowFile lets file:// through, for tests alone: it runs Git's programs on this machine.
	AllowFile bool

	keep keeping
}

// Limits keep one large repository from taking memory, disk and time of everybody.
type Limits struct {
	// TreeEntries is how many files and folders a commit may have.
	TreeEntries int
	// BlobBytes is how large a single file may be that is read. Larger ones may be there; servers that can are asked
	// not to send them.
	BlobBytes int64
	// TotalBytes is how much one fetch may bring: bytes on the wire, and bytes of all objects unpacked.
	TotalBytes int64
}

// The names of the flags by which a program lets people set Limits and Options.Timeout. Hints name them.
const (
	FlagTreeEntries = "git-max-entries"
	FlagBlobBytes   = "git-max-file-size"
	FlagTotalBytes  = "git-max-fetch-size"
	FlagTimeout     = "fetch-timeout"
)

// DefaultLimits are 200,000 files and folders, 10 MiB for a file and 512 MiB for a fetch.
func DefaultLimits() Limits {
	return Limits{TreeEntries: 200_000, BlobBytes: 10 << 20, TotalBytes: 512 << 20}
}

const defaultTimeout = time.Minute

// How long a remote that nobody asks for stays on disk, and how often that is looked at. A new password means a new
// folder, so a token that changes every hour would fill the disk otherwise.
const (
	keepUnused = 24 * time.Hour
	sweepEvery = time.Hour
)

// Store holds the objects of many remotes on disk. Its methods may be called from any goroutine.
type Store struct {
	dir  string
	opts Options

	mu      sync.Mutex
	remotes map[string]*remote
	apps    map[[sha256.Size]byte]weak.Pointer[githubApp] // those that a remote uses, by their Secrets
	swept   time.Time

	room    sync.Mutex // held while room is made on a full disk
	roomier time.Time  // when that last removed anything
}

// Open prepares a folder. It is kept between runs; whatever is found damaged in it is fetched anew. Two processes may
// share a folder.
func Open(dir string, opts Options) (*Store, error) {
	def := DefaultLimits()
	opts.Limits.TreeEntries = cmp.Or(opts.Limits.TreeEntries, def.TreeEntries)
	opts.Limits.BlobBytes = cmp.Or(opts.Limits.BlobBytes, def.BlobBytes)
	opts.Limits.TotalBytes = cmp.Or(opts.Limits.TotalBytes, def.TotalBytes)
	opts.Timeout = cmp.Or(opts.Timeout, defaultTimeout)
	opts.keep = cmp.Or(opts.keep, defaultKeeping())
	if opts.Limits.TreeEntries < 0 || opts.Limits.BlobBytes < 0 || opts.Limits.TotalBytes < 0 || opts.Timeout < 0 {
		return nil, fmt.Errorf("open store %s: limits and timeout must not be negative", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return &Store{dir: dir, opts: opts, remotes: map[string]*remote{}, apps: map[[sha256.Size]byte]weak.Pointer[githubApp]{}}, nil
}

// Resolve asks the remote which commit a ref points at. It is one listing of refs, and none at all for a commit. A ref
// that does not exist is an error that errors.Is finds to be ErrRefNotFound.
func (s *Store) Resolve(ctx context.Context, r Remote, ref Ref) (Revision, error) {
	const op = "resolve"
	if err := ref.Validate(); err != nil {
		return Revision{}, locate(op, redact(r.URL), err)
	}
	m, err := s.remote(r)
	if err != nil {
		return Revision{}, locate(op, redact(r.URL), err)
	}
	if ref.Commit != "" {
		return Revision{Commit: Commit(ref.Commit)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	adv, err := m.list(ctx)
	if err != nil {
		return Revision{}, within(ctx, op, m.url, s.opts.Timeout, err)
	}
	rev, err := ref.pick(adv)
	if err != nil {
		return Revision{}, locate(op, m.url, err)
	}
	return rev, nil
}

// Snapshot gives the tree of a commit: from disk when everything is there, else after a fetch. Callers that want the
// same commit at the same time share the fetch.
func (s *Store) Snapshot(ctx context.Context, r Remote, rev Revision) (*Snapshot, error) {
	const op = "fetch"
	m, err := s.remote(r)
	if err == nil && !rev.Commit.valid() {
		err = failf(KindRef, "ask Resolve for the commit first", "%q is not a commit id", clean(string(rev.Commit)))
	}
	if err != nil {
		return nil, locate(op, redact(r.URL), err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	snap, err := m.snapshot(ctx, rev)
	if err != nil {
		return nil, within(ctx, op, m.url, s.opts.Timeout, err)
	}
	if r.RecurseSubmodules {
		snap.modules = modulesOf(s, r, snap)
	}
	return snap, nil
}

// remote finds or makes what is kept in memory for a remote, after checking URL and credentials.
func (s *Store) remote(r Remote) (*remote, error) {
	at, err := parseURL(r.URL, s.opts.AllowFile)
	if err != nil {
		return nil, err
	}
	if err := r.Auth.fits(at); err != nil {
		return nil, err
	}
	key := storeKey(at, r.Auth, r.Proxy)
	s.mu.Lock()
	m, ok := s.remotes[key]
	if !ok {
		m = newRemote(filepath.Join(s.dir, key), at, s.share(r.Auth), r.Proxy, s.opts)
		m.makeRoom = s.makeRoom
		s.remotes[key] = m
	}
	due := time.Since(s.swept) > sweepEvery
	if due {
		s.swept = time.Now()
	}
	s.mu.Unlock()
	if err := m.withRoom(m.prepare); err != nil {
		return nil, storeTrouble(err)
	}
	if due {
		s.sweep(key)
	}
	return m, nil
}

// share gives all remotes with the same Secret of a GitHub App the same token. The caller holds the lock.
func (s *Store) share(a Auth) Auth {
	own := a.secrets()
	if own == nil || own.app == nil {
		return a
	}
	app := s.apps[own.digest].Value()
	if app == nil {
		s.apps[own.digest] = weak.Make(own.app)
		return a
	}
	shared := *own
	shared.app = app
	return Auth{&sealed{open: func() *secrets { return &shared }}}
}

// Token gives what the API of a remote's forge wants to see: the token of a GitHub App's installation, renewed when it
// is about to run out, else bearerToken or password. It is a secret.
func (s *Store) Token(ctx context.Context, r Remote) (string, error) {
	const op = "ask for a token"
	m, err := s.remote(r)
	if err != nil {
		return "", locate(op, redact(r.URL), err)
	}
	own := m.auth.secrets()
	switch {
	case own != nil && own.app != nil:
		ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
		client := newHTTPClient(m.auth, m.by)
		defer client.CloseIdleConnections()
		token, _, err := own.app.token(ctx, client, s.opts.Timeout)
		return token, within(ctx, op, m.url, s.opts.Timeout, err)
	case own != nil && own.bearer != "":
		return own.bearer, nil
	case own != nil && own.username != "":
		return own.password, nil
	}
	return "", locate(op, m.url, failf(KindCredentials, "add bearerToken, username and password, or a GitHub App to the Secret", "the secret holds no token"))
}

// sweep removes what nobody asked for lately, of the folders and of the memory, and says whether there was any on disk. Errors
// are left for the next time: they cost disk, nothing else.
func (s *Store) sweep(current string) (removed bool) {
	s.mu.Lock()
	maps.DeleteFunc(s.apps, func(_ [sha256.Size]byte, app weak.Pointer[githubApp]) bool { return app.Value() == nil })
	s.mu.Unlock()
	folders, err := os.ReadDir(s.dir)
	if err != nil {
		return false
	}
	for _, folder := range folders {
		name := folder.Name()
		if name == current || !folder.IsDir() {
			continue
		}
		path := filepath.Join(s.dir, name)
		if strings.HasSuffix(name, ".gone") { // left behind by a crash
			removed = os.RemoveAll(path) == nil || removed
			continue
		}
		used, err := os.Stat(filepath.Join(path, usedFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil { // no folder of ours, or one just being made
			if used, err = os.Stat(path); err != nil || !isStoreKey(name) {
				continue
			}
		}
		if time.Since(used.ModTime()) < keepUnused {
			continue
		}
		s.mu.Lock() // the renaming is quick, and whoever needs it now makes it anew
		delete(s.remotes, name)
		err = os.Rename(path, path+".gone")
		s.mu.Unlock()
		if err == nil {
			removed = os.RemoveAll(path+".gone") == nil || removed
		}
	}
	return removed
}

func isStoreKey(name string) bool {
	return len(name) == 32 && strings.Trim(name, "0123456789abcdef") == ""
}
