package repos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxLinks is how many links one path may lead through, as on Linux.
const maxLinks = 40

// treeFS shows the tree of a commit as a file system, to one who waits for files that are not here in his own way.
type treeFS struct {
	*commitTree
	ctx  context.Context //nolint:containedctx // package fs has no place for it
	wait func(fetch func() error) error
}

var (
	_ fs.ReadFileFS = (*treeFS)(nil)
	_ fs.ReadDirFS  = (*treeFS)(nil)
	_ fs.StatFS     = (*treeFS)(nil)
	_ fs.ReadLinkFS = (*treeFS)(nil)
)

// Open opens a file or folder for reading.
func (t *treeFS) Open(name string) (fs.File, error) {
	const op = "open"
	e, err := t.find(op, name, true)
	if err != nil {
		return nil, err
	}
	if e.mode == modeDir {
		entries, err := t.dirEntries(e)
		if err != nil {
			return nil, pathError(op, name, err)
		}
		return &openDir{info: t.info(path.Base(name), e.entry), entries: entries}, nil
	}
	content, err := t.content(e)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	info := t.info(path.Base(name), e.entry)
	info.size = int64(len(content))
	return &openFile{Reader: bytes.NewReader(content), info: info}, nil
}

// ReadFile reads a whole file.
func (t *treeFS) ReadFile(name string) ([]byte, error) {
	const op = "read"
	e, err := t.find(op, name, true)
	if err != nil {
		return nil, err
	}
	if e.mode == modeDir {
		return nil, pathError(op, name, errIsFolder)
	}
	content, err := t.content(e)
	return content, pathError(op, name, err)
}

// ReadDir lists a folder by name.
func (t *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	const op = "readdir"
	e, err := t.find(op, name, true)
	if err != nil {
		return nil, err
	}
	if e.mode != modeDir {
		return nil, pathError(op, name, errNoFolder)
	}
	entries, err := t.dirEntries(e)
	return entries, pathError(op, name, err)
}

// Stat describes what a path leads to.
func (t *treeFS) Stat(name string) (fs.FileInfo, error) {
	return t.stat("stat", name, true)
}

// Lstat describes a path without following it if it is a link.
func (t *treeFS) Lstat(name string) (fs.FileInfo, error) {
	return t.stat("lstat", name, false)
}

func (t *treeFS) stat(op, name string, follow bool) (fs.FileInfo, error) {
	e, err := t.find(op, name, follow)
	if err != nil {
		return nil, err
	}
	info, err := t.fullInfo(path.Base(name), e)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return info, nil
}

// ReadLink gives what a link says, without judging it.
func (t *treeFS) ReadLink(name string) (string, error) {
	const op = "readlink"
	e, err := t.find(op, name, false)
	if err != nil {
		return "", err
	}
	if e.mode != modeLink {
		return "", pathError(op, name, fs.ErrInvalid)
	}
	target, err := t.target(e)
	return target, pathError(op, name, err)
}

// Hash gives Git's id of the file or folder that a path leads to.
func (t *treeFS) Hash(name string) (string, error) {
	e, err := t.find("hash", name, true)
	if err != nil {
		return "", err
	}
	return e.hash.String(), nil
}

var (
	errIsFolder = errors.New("is a folder")
	errNoFolder = errors.New("is not a folder")
)

func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// find goes down a path. Links on the way are followed, and the last one where follow says so, as long as they stay in
// the tree.
func (t *treeFS) find(op, name string, follow bool) (located, error) {
	if !fs.ValidPath(name) {
		return located{}, pathError(op, name, fs.ErrInvalid)
	}
	e, err := t.walk(name, follow)
	return e, pathError(op, name, err)
}

func (t *treeFS) walk(name string, follow bool) (located, error) {
	todo := strings.Split(name, "/")
	at := []located{{entry: t.root}} // from the root down to where we are
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		here := at[len(at)-1]
		switch {
		case here.mode == modeSubmodule:
			return located{}, submoduleError(here.entry)
		case here.mode != modeDir && part != "":
			return located{}, fs.ErrNotExist // below a file there is nothing
		case part == "" || part == ".":
			continue
		case part == "..": // only links have it
			if len(at) == 1 {
				return located{}, failf(KindContent, "let links point at files of the same repository", "a link leads out of the repository")
			}
			at = at[:len(at)-1]
			continue
		}
		found, err := t.lookup(here.entry, part)
		if err != nil {
			return located{}, err
		}
		e := located{found, here.path()}
		if e.mode != modeLink || (len(todo) == 0 && !follow) {
			at = append(at, e)
			continue
		}
		if links++; links > maxLinks {
			return located{}, failf(KindContent, "remove the link that leads back to itself", "the path leads through more than %d links", maxLinks)
		}
		target, err := t.target(e)
		if err != nil {
			return located{}, err
		}
		if target == "" {
			return located{}, fs.ErrNotExist
		}
		if strings.HasPrefix(target, "/") {
			return located{}, failf(KindContent, "let links point at files of the same repository, with a relative path", "the link %q has an absolute target", e.name)
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	last := at[len(at)-1]
	if last.mode == modeSubmodule && follow {
		return located{}, submoduleError(last.entry)
	}
	return last, nil
}

// lookup finds a name in a folder.
func (t *treeFS) lookup(dir entry, name string) (entry, error) {
	entries, err := t.tree(dir.hash)
	if err != nil {
		return entry{}, err
	}
	i, ok := slices.BinarySearchFunc(entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return entry{}, fs.ErrNotExist
	}
	return entries[i], nil
}

// content reads a file.
func (t *treeFS) content(e located) ([]byte, error) {
	const tooLargeHint = "remove it from the path, keep it elsewhere, or raise --" + FlagBlobBytes
	if err := t.bring(e); err != nil {
		return nil, err
	}
	o, _, left := t.here()
	content, err := o.read(e.hash, plumbing.BlobObject, t.m.opts.Limits.BlobBytes)
	if _, tooLarge := errors.AsType[*tooLargeError](err); tooLarge {
		return nil, fail(KindLimit, err, tooLargeHint)
	}
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound) && left > 0:
		return nil, failf(KindLimit, tooLargeHint, "it has more than %s and was not fetched", size(left))
	case err != nil:
		return nil, t.unreadable(err)
	case isLFS(content):
		return nil, failf(KindContent, "commit the file itself: git lfs migrate export", "it is a Git LFS pointer, and what it points at is not fetched")
	}
	return content, nil
}

// isLFS knows a pointer by its first line, as the LFS specification has it; pointers are shorter than 1024 bytes.
func isLFS(content []byte) bool {
	return len(content) < 1024 && bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/"))
}

// target reads a link.
func (t *treeFS) target(e located) (string, error) {
	if err := t.bring(e); err != nil {
		return "", err
	}
	o, _, _ := t.here()
	content, err := o.read(e.hash, plumbing.BlobObject, maxLinkBytes)
	if _, tooLarge := errors.AsType[*tooLargeError](err); tooLarge {
		return "", failf(KindContent, "", "the link %q is longer than %d bytes", e.name, maxLinkBytes)
	}
	if err != nil {
		return "", t.unreadable(err)
	}
	return string(content), nil
}

func (t *treeFS) dirEntries(dir located) ([]fs.DirEntry, error) {
	entries, err := t.tree(dir.hash)
	if err != nil {
		return nil, err
	}
	list := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		list[i] = dirEntry{t, located{e, dir.path()}}
	}
	return list, nil
}

// dirEntry is one name in a listing. Its size is found when it is asked for.
type dirEntry struct {
	t *treeFS
	e located
}

func (d dirEntry) Name() string               { return d.e.name }
func (d dirEntry) IsDir() bool                { return d.e.mode == modeDir }
func (d dirEntry) Type() fs.FileMode          { return fileMode(d.e.mode).Type() }
func (d dirEntry) Info() (fs.FileInfo, error) { return d.t.fullInfo(d.e.name, d.e) }
func (d dirEntry) String() string             { return fs.FormatDirEntry(d) }

// fileMode shows a submodule as something irregular, which nobody goes into or opens by accident.
func fileMode(m mode) fs.FileMode {
	switch m {
	case modeDir:
		return fs.ModeDir | 0o555
	case modeLink:
		return fs.ModeSymlink | 0o777
	case modeExec:
		return 0o555
	case modeSubmodule:
		return fs.ModeIrregular
	}
	return 0o444
}

// fileInfo describes a file; every file is as old as its commit.
type fileInfo struct {
	name string
	mode fs.FileMode
	size int64
	time time.Time
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) ModTime() time.Time { return i.time }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) String() string     { return fs.FormatFileInfo(i) }

func (t *treeFS) info(name string, e entry) fileInfo {
	return fileInfo{name: name, mode: fileMode(e.mode), time: t.time}
}

func (t *treeFS) fullInfo(name string, e located) (fileInfo, error) {
	info := t.info(name, e.entry)
	if e.mode == modeDir || e.mode == modeSubmodule {
		return info, nil
	}
	if err := t.bring(e); err != nil { // its size is told with it, and not before
		return info, err
	}
	o, _, left := t.here()
	n, err := o.size(e.hash)
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound) && left > 0:
		n = left + 1 // what is known of it: reading it will fail for its size
	case err != nil:
		return info, t.unreadable(err)
	}
	info.size = n
	return info, nil
}

// openFile is an open file: its whole content.
type openFile struct {
	*bytes.Reader
	info fileInfo
}

func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *openFile) Close() error               { return nil }

// openDir is an open folder.
type openDir struct {
	info    fileInfo
	entries []fs.DirEntry
}

func (d *openDir) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDir) Close() error               { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, pathError("read", d.info.name, errIsFolder)
}

// ReadDir gives the next n entries, or all that are left when n is not positive.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		rest := d.entries
		d.entries = nil
		return rest, nil
	}
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	next := d.entries[:n]
	d.entries = d.entries[n:]
	return next, nil
}

// String names the file system for messages.
func (t *treeFS) String() string { return fmt.Sprintf("git tree %s", t.root.hash) }
