package repos

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// seek does something where a path leads. Most paths lead through no submodule, and then it is the root's tree that finds the way. For the root of a
// submodule, which is known to be a folder, self answers where it is not nil, and nothing is fetched.
func seek[T any](w *moduleFS, op, name string, follow bool, do func(t contents, name string) (T, error), self func(*module) T) (T, error) {
	var none T
	found, err := do(w.tree, name)
	if _, inside := errors.AsType[*submoduleFault](err); !inside {
		return found, err
	}
	at, err := w.find(name, follow)
	if err != nil {
		return none, pathError(op, name, err)
	}
	if at.name == "." && self != nil {
		return self(at.in), nil
	}
	tree, err := w.open(at.in, at.name)
	if err != nil {
		return none, pathError(op, name, err)
	}
	if found, err = do(tree, at.name); err != nil {
		return none, pathError(op, name, cause(err))
	}
	return found, nil
}

// folder describes the root of a submodule.
func (w *moduleFS) folder(name string) fileInfo {
	return fileInfo{name: path.Base(name), mode: fileMode(modeDir), time: w.time}
}

// Open opens a file or folder for reading.
func (w *moduleFS) Open(name string) (fs.File, error) {
	const op = "open"
	f, err := seek(w, op, name, true, func(t contents, at string) (fs.File, error) { return t.Open(at) }, nil)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, pathError(op, name, err)
	}
	if !info.IsDir() {
		return renamedFile{f, renamed{info, path.Base(name)}}, nil
	}
	entries, err := w.ReadDir(name)
	if err != nil {
		return nil, err
	}
	if info, err = w.Stat(name); err != nil { // for the root of a submodule, which is as old as what surrounds it wherever it is looked at
		return nil, err
	}
	folder := w.folder(name)
	folder.time = info.ModTime()
	return &openDir{info: folder, entries: entries}, nil
}

// ReadFile reads a whole file.
func (w *moduleFS) ReadFile(name string) ([]byte, error) {
	return seek(w, "read", name, true, contents.ReadFile, nil)
}

// ReadDir lists a folder by name.
func (w *moduleFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := seek(w, "readdir", name, true, contents.ReadDir, nil)
	for i, e := range entries {
		if e.Type() == fs.ModeIrregular {
			entries = slices.Clone(entries)
			entries[i] = fs.FileInfoToDirEntry(w.folder(e.Name()))
		}
	}
	return entries, err
}

// Stat describes what a path leads to.
func (w *moduleFS) Stat(name string) (fs.FileInfo, error) {
	return w.stat("stat", name, true, contents.Stat)
}

// Lstat describes a path without following it if it is a link.
func (w *moduleFS) Lstat(name string) (fs.FileInfo, error) {
	return w.stat("lstat", name, false, contents.Lstat)
}

func (w *moduleFS) stat(op, name string, follow bool, do func(contents, string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	info, err := seek(w, op, name, follow, do, func(*module) fs.FileInfo { return w.folder(name) })
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Type() == fs.ModeIrregular:
		return w.folder(name), nil
	}
	return renamed{info, path.Base(name)}, nil
}

// ReadLink gives what a link says. One in a submodule that leads out of it is an error instead, since whoever follows it by himself cannot know where the submodule
// begins.
func (w *moduleFS) ReadLink(name string) (string, error) {
	const op = "readlink"
	target, err := seek(w, op, name, false, contents.ReadLink, nil)
	if err != nil {
		return "", err
	}
	at, err := w.find(name, false)
	if err == nil && at.in != w.root {
		if _, err = w.find(name, true); errors.Is(err, errLeaves) {
			return "", pathError(op, name, err)
		}
	}
	return target, nil
}

// Hash gives the id of the file that a path leads to, and of a folder one for all that is in it. The id of the tree settles what is in its submodules, but not who may have
// that: what somebody rendered with his credentials would be found by others, who know the same id. So the credentials are part of it, and the root's
// .gitmodules, which says whether a submodule can be had at all.
func (w *moduleFS) Hash(name string) (string, error) {
	info, err := w.Stat(name)
	if err != nil {
		return "", err
	}
	id, err := seek(w, "hash", name, true, contents.Hash, func(m *module) string { return string(m.commit) })
	if err != nil || !info.IsDir() {
		return id, err
	}
	list, err := w.tree.Hash(gitmodules)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"submodules", w.salt, list, id}, "\x00")))
	return hex.EncodeToString(sum[:20]), nil
}

// renamed is a fileInfo under the name that was asked for, where a link leads to another.
type renamed struct {
	fs.FileInfo
	name string
}

// Name is the name that was asked for.
func (r renamed) Name() string { return r.name }

// String writes it as package fs does.
func (r renamed) String() string { return fs.FormatFileInfo(r) }

// renamedFile is an open file that was found through a link.
type renamedFile struct {
	fs.File
	info renamed
}

// Stat describes the file.
func (f renamedFile) Stat() (fs.FileInfo, error) { return f.info, nil }
