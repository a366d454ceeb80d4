package repos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// Each commit, and each look at files that were not here, brings a pack. Where everything is fetched, a chain that has become too long ends with a commit that is
// fetched anew; where files come one by one, that would be many questions for what is here already, so what the commit reaches and is here is written into one pack. The
// old packs go when no commit needs them.

// tidy writes one pack of a commit's, if they are too many. What goes wrong with it costs nothing but room.
func (m *remote) tidy(c Commit) {
	m.mu.Lock()
	k, err := m.readMark(c)
	var all objects
	if err == nil && k.Sparse && len(k.Packs) >= maxChain {
		all, err = m.openAll(k.Packs)
	}
	m.mu.Unlock()
	if err != nil || len(all.packs) == 0 {
		return
	}
	p, err := makePack(m.packDir(), func(f *os.File) (*idxfile.MemoryIndex, error) { return copyPack(f, all, c, m.opts.Limits) })
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shelve(p)
	now, err := m.readMark(c)
	if err != nil || !now.Sparse {
		return // it is a stray pack now, and goes as such
	}
	added := slices.DeleteFunc(now.Packs, func(name string) bool { return slices.Contains(k.Packs, name) }) // by another process
	now.Packs = append([]string{p.name}, added...)
	if m.writeMark(c, now) == nil {
		m.counted = counted{} // of folders that the new pack may not have
		m.prune()
	}
}

// copyPack writes what a commit reaches and is here, each object whole.
func copyPack(f *os.File, all objects, c Commit, limits Limits) (*idxfile.MemoryIndex, error) {
	if _, err := f.Write(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), 0)); err != nil {
		return nil, storeTrouble(err)
	}
	w := &copier{all: all, tail: packTail{file: f, end: 12}, seen: map[plumbing.Hash]bool{}, limits: limits}
	info, err := readCommit(all, c)
	if err != nil {
		return nil, err
	}
	if err := w.add(c.hash(), maxCommitBytes); err != nil {
		return nil, err
	}
	if err := w.folder(info.tree, 0); err != nil {
		return nil, err
	}
	checksum, err := w.tail.seal(uint32(w.tail.added))
	if err != nil {
		return nil, err
	}
	if err := w.out.OnFooter(checksum); err != nil {
		return nil, fmt.Errorf("index pack: %w", err)
	}
	return w.out.Index()
}

// copier copies objects into a pack.
type copier struct {
	all    objects
	tail   packTail
	out    idxfile.Writer
	seen   map[plumbing.Hash]bool
	limits Limits
}

func (w *copier) folder(tree plumbing.Hash, depth int) error {
	if w.seen[tree] {
		return nil
	}
	if depth > maxTreeDepth {
		return failf(KindLimit, "", "folders lie in each other more than %d deep", maxTreeDepth)
	}
	entries, err := w.all.readTree(tree)
	if err != nil {
		return err
	}
	if err := w.add(tree, maxTreeBytes); err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case e.mode == modeDir:
			err = w.folder(e.hash, depth+1)
		case e.mode != modeSubmodule && w.all.has(e.hash):
			if err = w.add(e.hash, w.limits.BlobBytes); errors.As(err, new(*tooLargeError)) { // it was fetched under another limit
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *copier) add(h plumbing.Hash, limit int64) error {
	if w.seen[h] {
		return nil
	}
	w.seen[h] = true
	kind, content, err := w.all.readAny(h, limit)
	if err != nil {
		return fmt.Errorf("copy object %s: %w", h, err)
	}
	o, err := w.tail.add(kind, content)
	if err != nil {
		return err
	}
	w.out.Add(h, uint64(o.offset), o.crc)
	return nil
}
