package repos

import (
	"bufio"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// pack is an open pack. It keeps its file open, so that it can be read also after the store has removed it, and the
// file closes when nobody holds the pack any more.
type pack struct {
	name  string
	index *idxfile.MemoryIndex

	mu   sync.Mutex // the library reads packs by seeking
	file *packfile.Packfile
	disk *lockless
}

// lockless makes an *os.File what the library calls a file. It locks none, and remembers what the disk could not do, of which the library may pass on only the words.
type lockless struct {
	*os.File
	trouble error
}

func (*lockless) Lock() error   { return nil }
func (*lockless) Unlock() error { return nil }

// Read reads on.
func (l *lockless) Read(b []byte) (int, error) {
	n, err := l.File.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		l.trouble = err
	}
	return n, err
}

// cause gives in place of an error what the disk could not do, if that was it.
func (l *lockless) cause(err error) error {
	trouble := l.trouble
	l.trouble = nil
	if err != nil && trouble != nil {
		return trouble
	}
	return err
}

var _ billy.File = &lockless{}

// deltaCache is the memory in which one pack keeps bases of deltas.
const deltaCache = 4 * cache.MiByte

func newPack(name string, f *os.File, index *idxfile.MemoryIndex) *pack {
	p := &pack{name: name, index: index, disk: &lockless{File: f}}
	// Without a file system the library returns objects in memory, which do not open the file again by its name.
	p.file = packfile.NewPackfileWithCache(index, nil, p.disk, cache.NewObjectLRU(deltaCache), 0)
	return p
}

// stamp tells a file that was checked from one that was changed since.
type stamp struct {
	bytes int64
	at    time.Time
}

func stampOf(name string) (stamp, error) {
	info, err := os.Stat(name)
	if err != nil {
		return stamp{}, err
	}
	return stamp{info.Size(), info.ModTime()}, nil
}

// openPack opens a pack of the store and checks it and its index from end to end; not the pack itself when it was
// checked before.
func openPack(dir, name string, checked bool) (*pack, error) {
	idx, err := os.Open(filepath.Join(dir, name+".idx"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = idx.Close() }()
	index := idxfile.NewMemoryIndex()
	if err := idxfile.NewDecoder(idx).Decode(index); err != nil {
		return nil, fmt.Errorf("read index of %s: %w", name, err)
	}
	f, err := os.Open(filepath.Join(dir, name+".pack"))
	if err != nil {
		return nil, err
	}
	if !checked {
		if err := verifyChecksum(f, index.PackfileChecksum[:]); err != nil {
			return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), f.Close())
		}
	}
	return newPack(name, f, index), nil
}

// verifyChecksum compares the file's content with the checksum at its end and with what the index says.
func verifyChecksum(f *os.File, want []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := sha1.New() // the format's own checksum
	if _, err := io.Copy(h, io.LimitReader(f, info.Size()-sha1.Size)); err != nil {
		return err
	}
	end := make([]byte, sha1.Size)
	if _, err := io.ReadFull(f, end); err != nil {
		return err
	}
	if sum := h.Sum(nil); string(sum) != string(end) || string(sum) != string(want) {
		return errors.New("checksum differs")
	}
	return nil
}

// receivePack writes a pack into the folder and indexes it. It is there as a whole or not at all, under a name made of
// its checksum.
func receivePack(ctx context.Context, dir string, r io.Reader, older objects, limits packLimits) (*pack, error) {
	return makePack(dir, func(f *os.File) (*idxfile.MemoryIndex, error) { return indexPack(ctx, f, r, older, limits) })
}

// makePack lets fill write a pack into a new file of the folder, which then gets its index and its name.
func makePack(dir string, fill func(*os.File) (*idxfile.MemoryIndex, error)) (_ *pack, err error) {
	f, err := os.CreateTemp(dir, "incoming-*")
	if err != nil {
		return nil, storeTrouble(err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	index, err := fill(f)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("pack-%x", index.PackfileChecksum)
	if err := writeFile(filepath.Join(dir, name+".idx"), func(w io.Writer) error {
		_, err := idxfile.NewEncoder(w).Encode(index)
		return err
	}); err != nil {
		return nil, storeTrouble(err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name+".pack")); err != nil {
		return nil, storeTrouble(err)
	}
	return newPack(name, f, index), nil
}

// writeFile writes a file that is there as a whole or not at all.
func writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "incoming-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	b := bufio.NewWriter(f)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// objects are the packs in which everything of a commit is found.
type objects struct {
	packs []*pack
}

func (o objects) find(h plumbing.Hash) (*pack, int64) {
	for _, p := range o.packs {
		if offset, err := p.index.FindOffset(h); err == nil {
			return p, offset
		}
	}
	return nil, 0
}

func (o objects) has(h plumbing.Hash) bool {
	for _, p := range o.packs {
		if ok, err := p.index.Contains(h); ok && err == nil {
			return true
		}
	}
	return false
}

// size of an object without reading it.
func (o objects) size(h plumbing.Hash) (int64, error) {
	p, offset := o.find(h)
	if p == nil {
		return 0, plumbing.ErrObjectNotFound
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.file.GetSizeByOffset(offset)
	return n, p.disk.cause(err)
}

// read an object of one kind and at most limit bytes. The caller may change what is returned.
func (o objects) read(h plumbing.Hash, kind plumbing.ObjectType, limit int64) ([]byte, error) {
	got, content, err := o.readAny(h, limit)
	if err == nil && got != kind {
		return nil, fmt.Errorf("%s is a %s, not a %s", h, got, kind)
	}
	return content, err
}

// readAny reads an object of any kind and at most limit bytes.
func (o objects) readAny(h plumbing.Hash, limit int64) (_ plumbing.ObjectType, _ []byte, err error) {
	p, offset := o.find(h)
	if p == nil {
		return 0, nil, plumbing.ErrObjectNotFound
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { err = p.disk.cause(err) }()
	n, err := p.file.GetSizeByOffset(offset)
	if err != nil {
		return 0, nil, err
	}
	if n > limit {
		return 0, nil, &tooLargeError{n, limit}
	}
	object, err := p.file.GetByOffset(offset)
	if err != nil {
		return 0, nil, err
	}
	r, err := object.Reader()
	if err != nil {
		return 0, nil, err
	}
	content := make([]byte, n)
	_, err = io.ReadFull(r, content)
	return object.Type(), content, errors.Join(err, r.Close())
}

type tooLargeError struct{ size, limit int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("it has %s, more than the %s that are read of one file", size(e.size), size(e.limit))
}
