package repos

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Trouble with our own disk is of three sorts. A full disk may have room once the stores of all remotes have been rid of what nobody needs, so what failed is done
// once more after that. A store that is damaged is emptied and filled anew. Everything else, such as too many open files, passes, or is mended by somebody else:
// it is an error of this fetch, and what is in the store stays there.

// storeTrouble is an error of our own disk.
func storeTrouble(err error) error {
	return failf(KindStore, "check that the store's folder can be read, can be written and has room", "%w", inFolder(err))
}

// inFolder names the folder of the remote in place of the file in it: files that are being written have another name at each try, and an error shall say the same at
// each. On a full disk it is a matter of luck, too, what is done when it is.
func inFolder(err error) error {
	var found fs.PathError
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		found = *e
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		found = fs.PathError{Op: e.Op, Path: e.New, Err: e.Err}
	} else {
		return err
	}
	dir := found.Path
	for !isStoreKey(filepath.Base(dir)) {
		up := filepath.Dir(dir)
		if up == dir { // none of ours
			return err
		}
		dir = up
	}
	found.Path = dir
	if isFull(found.Err) {
		found.Op = "write to"
	}
	return &found
}

// isFull says whether there is no room, or no more for us.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// passes says whether an error is of the system's, and tells nothing of what is in the files. Files that are not there, and folders in their place, are damage.
func passes(err error) bool {
	errno, ok := errors.AsType[syscall.Errno](err)
	return ok && errno != syscall.ENOENT && errno != syscall.ENOTDIR && errno != syscall.EISDIR
}

// withRoom does something that writes to disk, and once more if the disk is full and has become less so.
func (m *remote) withRoom(do func() error) error {
	began := time.Now()
	err := do()
	if isFull(err) && m.makeRoom(began) {
		return do()
	}
	return err
}

// makeRoom removes from all remotes what nobody needs, and says whether somebody has removed anything since then. Whoever finds the disk full at the same time waits.
func (s *Store) makeRoom(since time.Time) bool {
	s.room.Lock()
	defer s.room.Unlock()
	s.mu.Lock()
	open := maps.Clone(s.remotes)
	s.mu.Unlock()
	removed := s.sweep("")
	folders, _ := os.ReadDir(s.dir) // what cannot be listed is not pruned
	for _, folder := range folders {
		if !folder.IsDir() || !isStoreKey(folder.Name()) {
			continue
		}
		m := open[folder.Name()]
		if m == nil { // nobody has asked for it since we started
			m = &remote{dir: filepath.Join(s.dir, folder.Name()), opts: s.opts}
		}
		m.mu.Lock()
		removed = m.prune() || removed
		m.mu.Unlock()
	}
	if removed {
		s.roomier = time.Now()
	}
	return s.roomier.After(since)
}
