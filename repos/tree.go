package repos

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// What a commit, a tree object and a link's target may have in bytes, and how deep folders may lie in each other.
const (
	maxCommitBytes = 4 << 20
	maxTreeBytes   = 16 << 20
	maxLinkBytes   = 4 << 10
	maxTreeDepth   = 256
)

// mode is the sort of a tree's entry.
type mode uint8

const (
	modeFile mode = iota
	modeExec
	modeDir
	modeLink
	modeSubmodule
)

// entry is one name in a tree.
type entry struct {
	name string
	mode mode
	hash plumbing.Hash
}

// parseTree decodes a tree object and sorts it by name. Names that no honest tree has are refused: they would mean
// something else to whoever puts paths together.
func parseTree(content []byte) ([]entry, error) {
	var entries []entry
	for len(content) > 0 {
		rawMode, rest, ok := bytes.Cut(content, []byte{' '})
		name, rest, ok2 := bytes.Cut(rest, []byte{0})
		if !ok || !ok2 || len(rest) < len(plumbing.ZeroHash) {
			return nil, fmt.Errorf("tree is cut off after %d entries", len(entries))
		}
		e := entry{name: string(name), hash: plumbing.Hash(rest[:len(plumbing.ZeroHash)])}
		content = rest[len(plumbing.ZeroHash):]
		switch string(rawMode) {
		case "40000", "040000":
			e.mode = modeDir
		case "100644", "100664", "100600", "100444":
			e.mode = modeFile
		case "100755", "100775", "100700":
			e.mode = modeExec
		case "120000":
			e.mode = modeLink
		case "160000":
			e.mode = modeSubmodule
		default:
			return nil, fmt.Errorf("tree has an entry of mode %q", clean(string(rawMode)))
		}
		if e.name == "" || e.name == "." || e.name == ".." || strings.ContainsRune(e.name, '/') || strings.EqualFold(e.name, ".git") {
			return nil, fmt.Errorf("tree has an entry named %q", clean(e.name))
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for i := range entries[min(1, len(entries)):] {
		if entries[i].name == entries[i+1].name {
			return nil, fmt.Errorf("tree has two entries named %q", clean(entries[i].name))
		}
	}
	return entries, nil
}

// readTree reads and decodes one tree.
func (o objects) readTree(h plumbing.Hash) ([]entry, error) {
	content, err := o.read(h, plumbing.TreeObject, maxTreeBytes)
	if err != nil {
		return nil, err
	}
	return parseTree(content)
}

// counted are folders that are known to be complete in the packs of a commit, with how many entries are below them: so a
// commit that builds on it costs what it changes.
type counted struct {
	commit Commit
	trees  map[plumbing.Hash]int
}

// maxCounted bounds what is remembered of folders; at about 60 bytes each.
const maxCounted = 50_000

// walker goes through a tree to see that everything is there, and counts.
type walker struct {
	objects  objects
	limit    int
	filtered bool // large files are missing on purpose
	counts   map[plumbing.Hash]int
}

// count entries below a tree, as a file system would show them: a folder that occurs a thousand times counts a
// thousand times, though it is read once.
func (w *walker) count(tree plumbing.Hash, depth int) (int, error) {
	if n, ok := w.counts[tree]; ok {
		return n, nil
	}
	if depth > maxTreeDepth {
		return 0, failf(KindLimit, "nest them less deeply", "folders lie in each other more than %d deep", maxTreeDepth)
	}
	entries, err := w.objects.readTree(tree)
	if err != nil {
		return 0, fmt.Errorf("tree %s: %w", tree, err)
	}
	total := 0
	for _, e := range entries {
		total++
		switch {
		case e.mode == modeDir:
			n, err := w.count(e.hash, depth+1)
			if err != nil {
				return 0, err
			}
			total += n
		case e.mode != modeSubmodule && !w.filtered && !w.objects.has(e.hash):
			return 0, fmt.Errorf("file %q: %w", clean(e.name), plumbing.ErrObjectNotFound)
		}
		if total > w.limit {
			return 0, failf(KindLimit, entriesHint, "the commit has more than %d files and folders", w.limit)
		}
	}
	w.counts[tree] = total
	return total, nil
}
