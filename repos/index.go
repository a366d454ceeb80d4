package repos

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// What indexing a pack may hold in memory. A single object that takes part in a delta may have maxDeltaObject bytes,
// and the objects of one chain of deltas maxDeltaChain together. Objects that are stored whole are only streamed.
const (
	maxDeltaObject = 64 << 20
	maxDeltaChain  = 256 << 20
	maxDeltaDepth  = 4095 // as in Git itself
)

// indexPack writes a pack into a file while it comes in, checks every object and the checksum, and returns the index.
// Unlike the library's parser it streams whole objects instead of holding them, stays within limits and can be
// cancelled. A pack with deltas on objects that are not in it but among older is made to stand alone.
func indexPack(ctx context.Context, f *os.File, r io.Reader, older objects, limits packLimits) (*idxfile.MemoryIndex, error) {
	wire := &wireReader{r: r, to: bufio.NewWriterSize(f, 64<<10), left: limits.TotalBytes, limit: limits.TotalBytes}
	x := &indexer{
		limits:   limits,
		thin:     thinPack{older: older, tail: packTail{file: f}},
		scan:     packfile.NewScanner(wire),
		byOffset: map[int64][]int{},
		byHash:   map[plumbing.Hash][]int{},
	}
	file := &lockless{File: f}
	checksum, err := x.scanAll(ctx)
	if err == nil {
		err = wire.ends(f, checksum)
	}
	if wire.err != nil { // or it would look like a damaged pack
		err = wire.err
	}
	if err == nil {
		x.scan = packfile.NewScanner(file)
		err = x.resolveAll(ctx)
	}
	if err == nil {
		err = x.complete(ctx)
	}
	if err == nil && x.thin.tail.added > 0 {
		checksum, err = x.thin.tail.seal(uint32(len(x.objects) + x.thin.tail.added))
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case KindOf(err) != "":
		return nil, err
	case passes(file.trouble): // in what was written a moment ago
		return nil, storeTrouble(file.trouble)
	default:
		return nil, failf(KindProtocol, "", "the pack is damaged: %w", err)
	}
	if err := x.out.OnFooter(checksum); err != nil {
		return nil, fmt.Errorf("index pack: %w", err)
	}
	return x.out.Index()
}

// packLimits are Limits, and what a single file may have in bytes for the pack to be taken at all; 0 is anything.
type packLimits struct {
	Limits
	file int64
}

// errLargeFile is a pack with a file that is larger than it may be. It is noticed before the file has come.
var errLargeFile = errors.New("a file is too large")

// wireReader writes what it reads into a file, up to a limit, and remembers what went wrong.
type wireReader struct {
	r           io.Reader
	to          *bufio.Writer
	left, limit int64
	err         error
}

// Read reads what goes into the file.
func (w *wireReader) Read(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.r.Read(b)
	if w.left -= int64(n); w.left < 0 {
		w.err = failf(KindLimit, fetchHint, "the server sends more than %s", size(w.limit))
		return 0, w.err
	}
	if _, err := w.to.Write(b[:n]); err != nil {
		w.err = storeTrouble(err)
		return 0, w.err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// ends sees to it that nothing comes after the pack, and that all of it is in the file.
func (w *wireReader) ends(f *os.File, checksum plumbing.Hash) error {
	if _, err := io.Copy(io.Discard, w); err != nil {
		return err
	}
	if err := w.to.Flush(); err != nil {
		return storeTrouble(err)
	}
	if _, err := f.Seek(-sha1.Size, io.SeekEnd); err != nil {
		return storeTrouble(err)
	}
	var last plumbing.Hash
	if _, err := io.ReadFull(f, last[:]); err != nil {
		return storeTrouble(err)
	}
	if last != checksum {
		return errors.New("there is more after its end")
	}
	return nil
}

type indexer struct {
	limits   packLimits
	thin     thinPack
	scan     *packfile.Scanner
	out      idxfile.Writer
	objects  []packed
	byOffset map[int64][]int         // deltas by where their base is
	byHash   map[plumbing.Hash][]int // deltas by the id of their base
	deltas   int                     // not yet resolved
	bytes    int64                   // of all objects, unpacked
	held     int64                   // in memory, on the way down one chain
}

// packed is one entry of the pack, as much as is needed later.
type packed struct {
	offset int64
	length int64
	crc    uint32
	kind   plumbing.ObjectType
	hash   plumbing.Hash // zero for a delta
}

// scanAll goes through the pack once, in order.
func (x *indexer) scanAll(ctx context.Context) (plumbing.Hash, error) {
	_, count, err := x.scan.Header()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	// Each file is a blob and every folder a tree, so a commit has few more objects than entries. History, which comes
	// along from servers that give no commit by its id, has more.
	if limit := 8*int64(x.limits.TreeEntries) + 1000; int64(count) > limit {
		return plumbing.ZeroHash, failf(KindLimit, entriesHint, "the pack has %d objects, more than %d", count, limit)
	}
	for range count {
		if err := x.scanObject(ctx); err != nil {
			return plumbing.ZeroHash, err
		}
	}
	return x.scan.Checksum()
}

func (x *indexer) scanObject(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	h, err := x.scan.NextObjectHeader()
	if err != nil {
		return err
	}
	if err := x.count(h.Length); err != nil {
		return err
	}
	o := packed{offset: h.Offset, length: h.Length, kind: h.Type}
	var n int64
	if h.Type == plumbing.BlobObject && x.limits.file > 0 && h.Length > x.limits.file {
		return fail(KindLimit, errLargeFile, "")
	}
	switch h.Type {
	case plumbing.CommitObject, plumbing.TreeObject, plumbing.BlobObject, plumbing.TagObject:
		hasher := plumbing.NewHasher(h.Type, h.Length)
		n, o.crc, err = x.scan.NextObject(hasher)
		o.hash = hasher.Sum()
		x.out.Add(o.hash, uint64(o.offset), o.crc)
	case plumbing.OFSDeltaObject, plumbing.REFDeltaObject:
		if h.Length > maxDeltaObject {
			return failf(KindLimit, smallerHint, "the pack has a delta of %d bytes", h.Length)
		}
		if h.Type == plumbing.OFSDeltaObject {
			x.byOffset[h.OffsetReference] = append(x.byOffset[h.OffsetReference], len(x.objects))
		} else {
			x.byHash[h.Reference] = append(x.byHash[h.Reference], len(x.objects))
		}
		x.deltas++
		n, o.crc, err = x.scan.NextObject(io.Discard)
	default:
		return fmt.Errorf("object of unknown type %d", h.Type)
	}
	if err == nil && n != h.Length {
		err = fmt.Errorf("object of %d bytes, announced as %d", n, h.Length)
	}
	x.objects = append(x.objects, o)
	return err
}

// count adds to the bytes unpacked so far.
func (x *indexer) count(n int64) error {
	if n < 0 || n > x.limits.TotalBytes-x.bytes {
		return failf(KindLimit, fetchHint, "the pack unpacks to more than %s", size(x.limits.TotalBytes))
	}
	x.bytes += n
	return nil
}

// resolveAll finds the ids of the deltas, chain by chain.
func (x *indexer) resolveAll(ctx context.Context) error {
	for i := range x.objects {
		o := x.objects[i]
		if o.hash.IsZero() || (len(x.byOffset[o.offset]) == 0 && len(x.byHash[o.hash]) == 0) {
			continue
		}
		if o.length > maxDeltaObject {
			return failf(KindLimit, smallerHint, "the pack has a delta on an object of %d bytes", o.length)
		}
		content, err := x.read(o)
		if err != nil {
			return err
		}
		if err := x.resolve(ctx, o, o.kind, content, 0); err != nil {
			return err
		}
	}
	return nil
}

// resolve goes down from an object, whose id is known, to all that are deltas on it.
func (x *indexer) resolve(ctx context.Context, base packed, kind plumbing.ObjectType, content []byte, depth int) error {
	if depth > maxDeltaDepth {
		return failf(KindLimit, smallerHint, "the pack has a chain of more than %d deltas", maxDeltaDepth)
	}
	x.held += int64(len(content))
	defer func() { x.held -= int64(len(content)) }()
	if x.held > maxDeltaChain {
		return failf(KindLimit, smallerHint, "the pack has a chain of deltas over %s", size(maxDeltaChain))
	}
	children := x.byOffset[base.offset]
	delete(x.byOffset, base.offset)
	children = append(children, x.byHash[base.hash]...)
	delete(x.byHash, base.hash) // an object that is there twice resolves its deltas once
	for _, i := range children {
		if err := ctx.Err(); err != nil {
			return err
		}
		o := x.objects[i]
		delta, err := x.read(o)
		if err != nil {
			return err
		}
		target, err := x.patch(content, delta)
		if err != nil {
			return err
		}
		o.hash = plumbing.ComputeHash(kind, target)
		x.out.Add(o.hash, uint64(o.offset), o.crc)
		x.deltas--
		if err := x.resolve(ctx, o, kind, target, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// patch applies a delta, after a look at how large the result will be.
func (x *indexer) patch(base, delta []byte) ([]byte, error) {
	target, err := deltaTarget(delta, maxDeltaObject)
	if err != nil {
		return nil, err
	}
	if err := x.count(target); err != nil {
		return nil, err
	}
	if len(base) == 0 {
		return nil, errors.New("delta on an empty object")
	}
	return packfile.PatchDelta(base, delta)
}

// deltaTarget is how large the object is that a delta makes.
func deltaTarget(delta []byte, limit uint64) (int64, error) {
	_, n := binary.Uvarint(delta) // the base's size, then the target's, in the form that varints have too
	if n <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	target, m := binary.Uvarint(delta[n:])
	if m <= 0 {
		return 0, packfile.ErrInvalidDelta
	}
	if target > limit {
		return 0, failf(KindLimit, smallerHint, "the pack has a delta that makes %d bytes", target)
	}
	return int64(target), nil
}

func (x *indexer) read(o packed) ([]byte, error) {
	if _, err := x.scan.SeekObjectHeader(o.offset); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(o.length, 1<<20)))
	_, _, err := x.scan.NextObject(&b)
	return b.Bytes(), err
}

// What mends a limit: where somebody can set it, its flag is named.
const (
	smallerHint = "keep the configuration in a smaller repository"
	entriesHint = "raise --" + FlagTreeEntries + ", or " + smallerHint
	fetchHint   = "raise --" + FlagTotalBytes + ", or " + smallerHint
)

// size writes bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
