package repos

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Snapshot is one commit, complete. It stays readable whatever becomes of the store, and needs not be closed.
type Snapshot struct {
	// Revision that was asked for.
	Revision Revision
	// Author as "Name <mail>".
	Author string
	// Message of the commit, without the line end after it.
	Message string
	// Time of the commit, by its committer's clock.
	Time time.Time

	tree *commitTree
	// modules are its submodules; nil where they are not shown.
	modules *modules
}

// FS is the commit's tree, read from the object store as it is asked for. Nothing is written anywhere. It is also an
// fs.ReadFileFS, fs.ReadDirFS, fs.StatFS and fs.ReadLinkFS, and has a method
//
//	Hash(name string) (string, error)
//
// which gives Git's id of a file or folder; of a folder where submodules are shown, an id of our own. Links are followed within the tree. Files over Limits.BlobBytes,
// submodules that are not shown, LFS pointers and links out of the tree or in a circle are an Error, wrapped in an fs.PathError.
// It may be used from any goroutine.
func (s *Snapshot) FS() fs.FS {
	return s.Read(context.Background(), func(fetch func() error) error { return fetch() })
}

// Read is FS for a reader who is not to wait for a server in the middle of reading, or not for longer than ctx. What is
// not here yet is asked for by calling wait with the function that fetches it, from whichever goroutine reads. wait may
// give up what others could use meanwhile, call fetch, and return its error. It may also keep fetch for later and return
// an error of its own, which the reader then gets: once fetch was called and had no error, the same reads get further.
func (s *Snapshot) Read(ctx context.Context, wait func(fetch func() error) error) fs.FS {
	tree := &treeFS{commitTree: s.tree, ctx: ctx, wait: wait}
	if s.modules != nil {
		return s.modules.see(ctx, wait, tree)
	}
	return tree
}

// Want fetches what is likely to be read below folders, and is not here: with Read, in time. Folders that do not exist
// are no error, since whoever reads them is told.
func (s *Snapshot) Want(ctx context.Context, folders ...string) error {
	if s.tree == nil { // of a Snapshot that no Store has made
		return nil
	}
	return s.tree.want(ctx, folders)
}

func newSnapshot(m *remote, rev Revision, o objects, k mark) (*Snapshot, error) {
	info, err := readCommit(o, rev.Commit)
	if err != nil {
		return nil, err
	}
	if !o.has(info.tree) {
		return nil, fmt.Errorf("tree of %s: %w", rev.Commit, plumbing.ErrObjectNotFound)
	}
	return &Snapshot{
		Revision: rev,
		Author:   info.author,
		Message:  info.message,
		Time:     info.time,
		tree:     newCommitTree(m, rev, o, k, info),
	}, nil
}

// commitInfo is what is read of a commit object.
type commitInfo struct {
	tree    plumbing.Hash
	author  string
	message string
	time    time.Time
}

// readCommit reads and decodes a commit object.
func readCommit(o objects, c Commit) (commitInfo, error) {
	var info commitInfo
	content, err := o.read(c.hash(), plumbing.CommitObject, maxCommitBytes)
	if err != nil {
		return info, fmt.Errorf("commit %s: %w", c, err)
	}
	header, message, _ := bytes.Cut(content, []byte("\n\n"))
	info.message = strings.ToValidUTF8(strings.TrimRight(string(message), "\n"), "?")
	for line := range strings.SplitSeq(string(header), "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch key {
		case "tree":
			if !Commit(value).valid() {
				return info, fmt.Errorf("commit %s: its tree is %q", c, clean(value))
			}
			info.tree = plumbing.NewHash(value)
		case "author":
			info.author, _ = whoAndWhen(value)
		case "committer":
			_, info.time = whoAndWhen(value)
		}
	}
	if info.tree.IsZero() {
		return info, fmt.Errorf("commit %s has no tree", c)
	}
	return info, nil
}

// whoAndWhen takes "Name <mail> 1700000000 +0100" apart.
func whoAndWhen(value string) (who string, at time.Time) {
	end := strings.LastIndex(value, ">")
	who = strings.ToValidUTF8(value[:end+1], "?")
	stamp := strings.Fields(value[end+1:])
	if len(stamp) == 0 {
		return who, time.Time{}
	}
	seconds, err := strconv.ParseInt(stamp[0], 10, 64)
	if err != nil {
		return who, time.Time{}
	}
	at = time.Unix(seconds, 0).UTC()
	if len(stamp) > 1 {
		if zone, err := time.Parse("-0700", stamp[1]); err == nil {
			at = at.In(zone.Location())
		}
	}
	return who, at
}
