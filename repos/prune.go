package repos

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// drop removes a pack that was received in vain, unless a commit needs it nevertheless. Where that cannot be told it is left to prune.
func (m *remote) drop(p *pack) {
	m.mu.Lock()
	defer m.mu.Unlock()
	commits, err := m.commitsByUse()
	for _, c := range commits {
		k, unread := m.readMark(c.commit)
		if passes(unread) || slices.Contains(k.Packs, p.name) {
			return
		}
	}
	if err != nil {
		return
	}
	delete(m.packs, p.name)
	delete(m.checked, p.name)
	for _, suffix := range []string{".pack", ".idx"} { // an index without its pack is nothing
		_ = os.Remove(filepath.Join(m.packDir(), p.name+suffix))
	}
}

// discard empties the store. Snapshots that are open keep their files. The caller holds the lock.
func (m *remote) discard() {
	clear(m.packs)
	clear(m.checked)
	m.counted = counted{}
	for _, dir := range []string{m.commitDir(), m.packDir()} { // marks first, so that none outlives its packs
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// commitsByUse lists the commits that are marked, the most recently used first.
func (m *remote) commitsByUse() ([]usedCommit, error) {
	entries, err := os.ReadDir(m.commitDir())
	if err != nil {
		return nil, err
	}
	var commits []usedCommit
	for _, e := range entries {
		c := Commit(e.Name())
		if !c.valid() {
			continue
		}
		info, err := e.Info()
		switch {
		case err == nil:
			commits = append(commits, usedCommit{c, info.ModTime()})
		case !errors.Is(err, fs.ErrNotExist): // removed meanwhile
			return nil, err
		}
	}
	slices.SortFunc(commits, func(a, b usedCommit) int { return b.at.Compare(a.at) })
	return commits, nil
}

type usedCommit struct {
	commit Commit
	at     time.Time
}

// prune forgets commits that nobody asked for lately and removes the packs that no commit needs any more. It says whether
// anything was removed. Errors are left for the next time, and what cannot be read now is kept. The caller holds the lock.
func (m *remote) prune() (removed bool) {
	needed, keep := map[string]bool{}, m.opts.keep
	commits, err := m.commitsByUse()
	if err != nil {
		return false
	}
	for i, c := range commits {
		if i >= keep.commits && time.Since(c.at) > keep.lately {
			removed = os.Remove(m.markFile(c.commit)) == nil || removed
			continue
		}
		k, err := m.readMark(c.commit)
		if passes(err) {
			return removed // its packs are needed, whichever they are
		}
		if err != nil {
			continue // found when it is asked for
		}
		for _, name := range k.Packs {
			needed[name] = true
		}
	}
	for _, dir := range []string{m.packDir(), m.commitDir(), m.dir} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".pack"), ".idx")
			stray := strings.HasPrefix(name, "incoming-") || (strings.HasPrefix(name, "pack-") && !needed[name])
			info, err := e.Info()
			// Another process may be about to mark what it has just written, hence the wait.
			if stray && err == nil && time.Since(info.ModTime()) > keep.stray {
				removed = os.Remove(filepath.Join(dir, e.Name())) == nil || removed
				delete(m.packs, name)
				delete(m.checked, name)
			}
		}
	}
	return removed
}
