package repos

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// What reading a history may hold in memory beside the ids: the commits on which deltas may still build.
const maxKeptCommits = 64 << 20

// maxHistory is how many commits a history may have; at about 200 bytes each for their ids.
const maxHistory = 1_000_000

const historyHint = "set uploadpack.allowFilter on the server, so that it sends commits alone"

// history is a part of the graph of commits: for each commit its parents, which may lie outside.
type history map[plumbing.Hash][]plumbing.Hash

// reaches tells whether old is an ancestor of young, as far as this part of the graph goes. A commit does not reach
// itself.
func (h history) reaches(young, old plumbing.Hash) bool {
	seen := map[plumbing.Hash]bool{young: true}
	for next := []plumbing.Hash{young}; len(next) > 0; {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		for _, parent := range h[at] {
			if parent == old {
				return true
			}
			if _, inside := h[parent]; inside && !seen[parent] {
				seen[parent] = true
				next = append(next, parent)
			}
		}
	}
	return false
}

// readHistory takes the commits out of a pack while it comes in. Nothing is written to disk; what is no commit is
// thrown away at once.
func readHistory(ctx context.Context, r io.Reader, limits Limits) (history, error) {
	wire := &io.LimitedReader{R: r, N: limits.TotalBytes + 1}
	x := &historyReader{
		limits:  limits,
		scan:    packfile.NewScanner(wire),
		found:   history{},
		at:      map[int64]plumbing.Hash{},
		kept:    map[plumbing.Hash][]byte{},
		waiting: map[plumbing.Hash][][]byte{},
	}
	err := x.readAll(ctx)
	switch {
	case err == nil:
		return x.found, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case wire.N <= 0:
		return nil, failf(KindLimit, historyHint, "the server sends more than %s", size(limits.TotalBytes))
	case KindOf(err) != "":
		return nil, err
	}
	return nil, failf(KindProtocol, "", "the pack is damaged: %w", err)
}

type historyReader struct {
	limits Limits
	scan   *packfile.Scanner
	found  history
	// at is where the commits begin, for deltas that name their base by its place.
	at map[int64]plumbing.Hash
	// kept are the contents of commits on which deltas may build, the latest of them.
	kept      map[plumbing.Hash][]byte
	order     []plumbing.Hash // of kept
	keptBytes int
	// waiting are deltas on what has not come yet, and may be a commit.
	waiting      map[plumbing.Hash][][]byte
	waitingBytes int
	bytes        int64 // of all objects, unpacked
}

func (x *historyReader) readAll(ctx context.Context) error {
	_, count, err := x.scan.Header()
	if err != nil {
		return err
	}
	for range count {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := x.readObject(); err != nil {
			return err
		}
		if len(x.found) > maxHistory {
			return failf(KindLimit, "", "the history has more than %d commits", maxHistory)
		}
	}
	_, err = x.scan.Checksum()
	return err
}

func (x *historyReader) readObject() error {
	h, err := x.scan.NextObjectHeader()
	if err != nil {
		return err
	}
	if h.Length < 0 || h.Length > x.limits.TotalBytes-x.bytes {
		return failf(KindLimit, historyHint, "the pack unpacks to more than %s", size(x.limits.TotalBytes))
	}
	x.bytes += h.Length
	base, wanted := plumbing.ZeroHash, false
	switch h.Type {
	case plumbing.CommitObject:
		wanted = true
	case plumbing.OFSDeltaObject:
		base, wanted = x.at[h.OffsetReference], !x.at[h.OffsetReference].IsZero()
	case plumbing.REFDeltaObject:
		base, wanted = h.Reference, true
	}
	if h.Type == plumbing.CommitObject && h.Length > maxCommitBytes {
		return failf(KindLimit, "", "a commit has more than %s", size(maxCommitBytes))
	}
	if !wanted || h.Length > maxCommitBytes { // a delta of that size makes no commit
		_, _, err := x.scan.NextObject(io.Discard)
		return err
	}
	var b bytes.Buffer
	n, _, err := x.scan.NextObject(&b)
	switch {
	case err != nil:
		return err
	case n != h.Length:
		return fmt.Errorf("object of %d bytes, announced as %d", n, h.Length)
	case h.Type == plumbing.CommitObject:
		return x.add(h.Offset, b.Bytes())
	}
	return x.addDelta(h.Offset, base, b.Bytes())
}

// addDelta makes the commit that a delta stands for, or keeps the delta until its base comes.
func (x *historyReader) addDelta(offset int64, base plumbing.Hash, delta []byte) error {
	if _, isCommit := x.found[base]; !isCommit {
		if x.waitingBytes += len(delta); x.waitingBytes > maxKeptCommits {
			return failf(KindLimit, historyHint, "the pack has too many deltas before their bases")
		}
		x.waiting[base] = append(x.waiting[base], delta)
		return nil
	}
	content, ok := x.kept[base]
	if !ok {
		return failf(KindLimit, "", "the history is too long: a commit is a delta on one that lies more than %s back", size(maxKeptCommits))
	}
	length, err := deltaTarget(delta, maxCommitBytes)
	if err != nil {
		return err
	}
	if x.bytes += length; x.bytes > x.limits.TotalBytes {
		return failf(KindLimit, historyHint, "the pack unpacks to more than %s", size(x.limits.TotalBytes))
	}
	target, err := packfile.PatchDelta(content, delta)
	if err != nil {
		return err
	}
	return x.add(offset, target)
}

// add takes a commit in, and all that waited for it. Offset -1 is one whose place nobody asks for.
func (x *historyReader) add(offset int64, content []byte) error {
	id := plumbing.ComputeHash(plumbing.CommitObject, content)
	if offset >= 0 {
		x.at[offset] = id
	}
	if _, twice := x.found[id]; twice {
		return nil
	}
	parents, err := parentsOf(content)
	if err != nil {
		return fmt.Errorf("commit %s: %w", id, err)
	}
	x.found[id] = parents
	x.keep(id, content)
	deltas := x.waiting[id]
	delete(x.waiting, id)
	for _, delta := range deltas {
		x.waitingBytes -= len(delta)
		if err := x.addDelta(-1, id, delta); err != nil {
			return err
		}
	}
	return nil
}

// keep holds the content of a commit and lets the oldest go when there is too much.
func (x *historyReader) keep(id plumbing.Hash, content []byte) {
	x.kept[id] = content
	x.order = append(x.order, id)
	x.keptBytes += cap(content)
	for x.keptBytes > maxKeptCommits && len(x.order) > 1 {
		x.keptBytes -= cap(x.kept[x.order[0]])
		delete(x.kept, x.order[0])
		x.order = x.order[1:]
	}
}

// parentsOf reads the header of a commit: its tree, then one line for each parent.
func parentsOf(content []byte) ([]plumbing.Hash, error) {
	var parents []plumbing.Hash
	header, _, _ := bytes.Cut(content, []byte("\n\n"))
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		key, value, _ := bytes.Cut(line, []byte(" "))
		switch string(key) {
		case "tree":
		case "parent":
			if !Commit(value).valid() {
				return nil, fmt.Errorf("its parent is %q", clean(string(value)))
			}
			parents = append(parents, plumbing.NewHash(string(value)))
		default:
			return slices.Clip(parents), nil
		}
	}
	return parents, nil
}
