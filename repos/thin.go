package repos

import (
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// A server that knows what we have sends a thin pack: deltas on objects that are not in it. Packs of the store stand
// alone, so these objects are added at the end, as git index-pack --fix-thin does.
type thinPack struct {
	older objects // where the missing bases are
	tail  packTail
}

// packTail writes objects at the end of a pack.
type packTail struct {
	file  *os.File
	end   int64 // where the next object goes
	added int
	z     *zlib.Writer // which needs more memory than most objects, so there is one
}

// complete adds the bases that are missing and resolves the deltas on them.
func (x *indexer) complete(ctx context.Context) error {
	for len(x.byHash) > 0 {
		progress := false
		for _, h := range slices.SortedFunc(maps.Keys(x.byHash), compareHashes) {
			kind, content, err := x.thin.older.readAny(h, maxDeltaObject)
			if err != nil {
				continue // may be the result of another delta
			}
			if err := x.thin.tail.open(); err != nil {
				return err
			}
			o, err := x.thin.tail.add(kind, content)
			if err != nil {
				return err
			}
			o.hash, progress = h, true
			x.out.Add(h, uint64(o.offset), o.crc)
			if err := x.resolve(ctx, o, kind, content, 0); err != nil {
				return err
			}
		}
		if !progress {
			break
		}
	}
	if x.deltas != 0 {
		return fmt.Errorf("%d deltas without their base", x.deltas)
	}
	return nil
}

func compareHashes(a, b plumbing.Hash) int { return slices.Compare(a[:], b[:]) }

// open finds where the objects of a pack end: the first one that is added goes over the pack's checksum.
func (t *packTail) open() (err error) {
	if t.end > 0 {
		return nil
	}
	if t.end, err = t.file.Seek(-sha1.Size, io.SeekEnd); err != nil {
		return storeTrouble(err)
	}
	return nil
}

// add writes an object whole.
func (t *packTail) add(kind plumbing.ObjectType, content []byte) (packed, error) {
	crc := crc32.NewIEEE()
	at := io.NewOffsetWriter(t.file, t.end)
	w := io.MultiWriter(at, crc)
	if t.z == nil {
		t.z = zlib.NewWriter(w)
	}
	z := t.z
	z.Reset(w)
	_, err := w.Write(objectHeader(kind, len(content)))
	if err == nil {
		_, err = z.Write(content)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return packed{}, storeTrouble(err)
	}
	o := packed{offset: t.end, length: int64(len(content)), kind: kind, crc: crc.Sum32()}
	written, err := at.Seek(0, io.SeekCurrent)
	if err != nil {
		return packed{}, storeTrouble(err)
	}
	t.end += written
	t.added++
	return o, nil
}

// objectHeader is the type and size before an object, as gitformat-pack(5) has it: three bits of type and four of size
// in the first byte, seven more of size in each that follows.
func objectHeader(kind plumbing.ObjectType, n int) []byte {
	header := []byte{byte(kind)<<4 | byte(n&0xf)}
	for n >>= 4; n > 0; n >>= 7 {
		header[len(header)-1] |= 0x80
		header = append(header, byte(n&0x7f))
	}
	return header
}

// seal writes the new number of objects and the checksum over all.
func (t *packTail) seal(count uint32) (plumbing.Hash, error) {
	var sum plumbing.Hash
	if _, err := t.file.WriteAt(binary.BigEndian.AppendUint32(nil, count), 8); err != nil {
		return sum, storeTrouble(err)
	}
	h := sha1.New() // the format's own checksum
	if _, err := io.Copy(h, io.NewSectionReader(t.file, 0, t.end)); err != nil {
		return sum, storeTrouble(err)
	}
	h.Sum(sum[:0])
	if _, err := t.file.WriteAt(sum[:], t.end); err != nil {
		return sum, storeTrouble(err)
	}
	if err := t.file.Truncate(t.end + sha1.Size); err != nil {
		return sum, storeTrouble(err)
	}
	return sum, nil
}
