package render

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
)

const (
	// maxLinks is how many symbolic links one path may lead through: what Linux allows.
	maxLinks = 40
	// maxName is how long one name in a path may be: what Linux and Git servers allow. kustomize takes whole documents for
	// paths when it is in doubt.
	maxName = 255
)

var (
	errOutside = errors.New("leads out of the repository")
	errCircle  = errors.New("leads through symbolic links in a circle")
)

// hasher is what a file system that knows the blob ids of its files implements. The hash of a folder, where it gives one, is one of all that is in the
// folder at any depth, names and kinds included, as the id of a tree is in Git.
type hasher interface {
	Hash(name string) (string, error)
}

// tree is the repository as one render sees it: it follows symbolic links within the repository, holds the limits, and keeps an
// account of everything that was read and of every name that was looked for and not found. Together these decide what the
// render gives, so they are what a later render has to compare in order to know that it would give the same.
//
// Its paths are those of fs.FS: relative to the repository's root, "." for the root itself. It is used by one goroutine at a time.
type tree struct {
	fsys   fs.FS
	links  fs.ReadLinkFS // nil when the file system has no symbolic links
	limits Limits
	// stop says why reading has to end, or nil.
	stop func() error

	files   map[string]*file
	folders map[string][]string // listed folders and the names in them
	misses  map[string]struct{}
	real    map[string]string      // resolved paths
	infos   map[string]fs.FileInfo // of names that were looked at and are no symbolic links
	targets map[string]string      // of symbolic links that were looked at

	cache  *Cache // nil when nothing is kept
	sizes  sizes
	bytes  int64
	hollow []string // see Set.Hollow
	broken error    // the first error that is not about the user's files: from then on nothing is read
}

// file is one file that was read.
type file struct {
	path    string
	content []byte
	hash    string
	docs    *documents // parsed once, see parse
}

func newTree(fsys fs.FS, limits Limits, stop func() error) *tree {
	links, _ := fsys.(fs.ReadLinkFS)
	return &tree{
		fsys: fsys, links: links, limits: limits, stop: stop,
		files: map[string]*file{}, folders: map[string][]string{}, misses: map[string]struct{}{}, real: map[string]string{},
		infos: map[string]fs.FileInfo{}, targets: map[string]string{},
	}
}

// trouble remembers an error of the file system itself, because kustomize takes any error for "is not there".
func (t *tree) trouble(err error) error {
	if t.broken == nil {
		t.broken = err
	}
	return err
}

// missing notes a name that is not there and returns the error for it.
func (t *tree) missing(name string, err error) error {
	if errors.Is(err, syscall.ENOTDIR) {
		err = fs.ErrNotExist // a file is used as a folder
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
		return t.trouble(fmt.Errorf("read %s: %w", name, cause(err)))
	}
	t.misses[name] = struct{}{}
	return err
}

// resolve follows the symbolic links in a path, which may hold "..", and gives the path without any. A path that does not exist
// gives fs.ErrNotExist, one that leaves the repository errOutside.
func (t *tree) resolve(name string) (string, error) {
	if err := t.check(); err != nil {
		return "", err
	}
	if real, ok := t.real[name]; ok {
		return real, nil
	}
	at, hops := ".", 0
	for rest := split(name); len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == ".." {
			if at == "." {
				return "", errOutside
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		target, isLink, err := t.readLink(next)
		if err != nil {
			return "", t.missing(next, err)
		}
		if !isLink {
			at = next
			continue
		}
		if hops++; hops > maxLinks {
			return "", errCircle
		}
		if path.IsAbs(target) {
			return "", errOutside
		}
		rest = append(split(target), rest...)
	}
	t.real[name] = at
	return at, nil
}

// readLink gives the target when name is a symbolic link.
func (t *tree) readLink(name string) (string, bool, error) {
	if !fs.ValidPath(name) || len(path.Base(name)) > maxName {
		return "", false, fs.ErrNotExist
	}
	if t.links == nil {
		return "", false, nil
	}
	if t.infos[name] != nil {
		return "", false, nil
	}
	if target, ok := t.targets[name]; ok {
		return target, true, nil
	}
	info, err := t.links.Lstat(name)
	if err != nil {
		return "", false, err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		t.infos[name] = info
		return "", false, nil
	}
	target, err := t.links.ReadLink(name)
	if err == nil {
		t.targets[name] = target
	}
	return target, true, err
}

// stat is fs.Stat for a resolved path.
func (t *tree) stat(real string) (fs.FileInfo, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if info := t.infos[real]; info != nil {
		return info, nil
	}
	info, err := fs.Stat(t.fsys, real)
	if err != nil {
		return nil, t.missing(real, err)
	}
	t.infos[real] = info
	return info, nil
}

// irregular says whether there is something that cannot be read: in a Git repository that is a submodule.
func irregular(info fs.FileInfo) bool {
	return !info.IsDir() && !info.Mode().IsRegular()
}

var errIrregular = errors.New("is neither a file nor a folder: a submodule is not fetched")

const irregularHint = "copy its files here, or set spec.source.recurseSubmodules: true if it is a submodule on the source's own server"

// list gives the names in a folder, sorted.
func (t *tree) list(real string) ([]fs.DirEntry, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(t.fsys, real)
	if err != nil {
		return nil, t.missing(real, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	t.folders[real] = names
	return entries, nil
}

// read gives a file by its resolved path.
func (t *tree) read(real string) (*file, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	if f, ok := t.files[real]; ok {
		return f, nil
	}
	if len(t.files) >= t.limits.Files {
		return nil, t.trouble(fault(real, 0, "use fewer or larger files, or split the path in two",
			"more than %d files are read", t.limits.Files))
	}
	content, err := t.load(real)
	if err != nil {
		return nil, err
	}
	if t.bytes += int64(len(content)); t.bytes > t.limits.Bytes {
		return nil, t.trouble(fault(real, 0, "split the path in two",
			"the files that are read have more than %s together", size(t.limits.Bytes)))
	}
	f := &file{path: real, content: content}
	if h, ok := t.fsys.(hasher); ok {
		if f.hash, err = h.Hash(real); err != nil {
			return nil, t.trouble(fmt.Errorf("hash %s: %w", real, err))
		}
	} else {
		f.hash = hashOfContent(content)
	}
	t.files[real] = f
	return f, nil
}

// hashOf gives the hash of a file, as read notes it. A file system that does not know it has to be read.
func hashOf(fsys fs.FS, name string, limits Limits) (string, error) {
	if h, ok := fsys.(hasher); ok {
		return h.Hash(name)
	}
	t := newTree(fsys, limits, func() error { return nil })
	content, err := t.load(name)
	return hashOfContent(content), err
}

func hashOfContent(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// load reads a file's content, and no more of it than the limit.
func (t *tree) load(real string) ([]byte, error) {
	tooLarge := func() error {
		return t.trouble(fault(real, 0, "split it, or keep large data out of the repository",
			"the file has more than %s", size(t.limits.FileBytes)))
	}
	info, err := t.stat(real)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &fs.PathError{Op: "read", Path: real, Err: fs.ErrInvalid}
	case irregular(info): // opening a pipe would wait for ever
		return nil, t.trouble(fault(real, 0, irregularHint, "it %w", errIrregular))
	case info.Size() > t.limits.FileBytes:
		return nil, tooLarge()
	}
	f, err := t.fsys.Open(real)
	if err != nil {
		return nil, t.missing(real, err)
	}
	defer func() { _ = f.Close() }() // it was opened for reading only
	content, err := io.ReadAll(io.LimitReader(f, t.limits.FileBytes+1))
	if err != nil {
		return nil, t.trouble(fmt.Errorf("read %s: %w", real, cause(err)))
	}
	if int64(len(content)) > t.limits.FileBytes {
		return nil, tooLarge()
	}
	return content, nil
}

// check says why nothing more may be read.
func (t *tree) check() error {
	if t.broken != nil {
		return t.broken
	}
	if err := t.stop(); err != nil {
		return t.trouble(err)
	}
	return nil
}

// used lists the files that were read, sorted by path.
func (t *tree) used() []File {
	out := make([]File, 0, len(t.files))
	for _, name := range sortedKeys(t.files) {
		out = append(out, File{Path: name, Hash: t.files[name].hash})
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// split takes a path apart, leaving out what means nothing.
func split(name string) []string {
	return slices.DeleteFunc(strings.Split(name, "/"), func(s string) bool { return s == "" || s == "." })
}

// cause takes off what a file system says of the path, which we say ourselves.
func cause(err error) error {
	if p, ok := err.(*fs.PathError); ok { //nolint:errorlint // only the outermost
		return p.Err
	}
	return err
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
