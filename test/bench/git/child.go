package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/mooring-dev/mooring/repos"
)

// childWord, as the first argument, makes this command the process that is measured.
const childWord = "child"

// order is one line that the child reads: how often to ask where the branch is, and what to read of the commit that it found last.
type order struct {
	Polls int    `json:"polls,omitempty"`
	Read  string `json:"read,omitempty"`
}

// answer is one line that it writes.
type answer struct {
	Took   []time.Duration `json:"took"` // of each poll, or of fetching and reading together
	Commit string          `json:"commit"`
	Files  int             `json:"files,omitempty"`
	Bytes  int64           `json:"bytes,omitempty"`
	Err    string          `json:"err,omitempty"`
}

// child does as it is told on standard input, with a store in a folder and the repository at a URL.
func child(ctx context.Context, folder, url string) error {
	store, err := repos.Open(folder, repos.Options{Timeout: 10 * time.Minute})
	if err != nil {
		return err
	}
	remote := repos.Remote{URL: url}
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return err
		}
		a, err := obey(ctx, store, remote, o)
		if err != nil {
			a.Err = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return in.Err()
}

func obey(ctx context.Context, store *repos.Store, remote repos.Remote, o order) (answer, error) {
	var a answer
	for range o.Polls {
		began := time.Now()
		rev, err := store.Resolve(ctx, remote, repos.Ref{Branch: branch})
		if err != nil {
			return a, err
		}
		a.Took, a.Commit = append(a.Took, time.Since(began)), string(rev.Commit)
	}
	if o.Read == "" {
		return a, nil
	}
	began := time.Now()
	rev, err := store.Resolve(ctx, remote, repos.Ref{Branch: branch})
	if err != nil {
		return a, err
	}
	snapshot, err := store.Snapshot(ctx, remote, rev)
	if err != nil {
		return a, err
	}
	if err := snapshot.Want(ctx, o.Read); err != nil {
		return a, err
	}
	err = fs.WalkDir(snapshot.FS(), o.Read, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(snapshot.FS(), name)
		a.Files, a.Bytes = a.Files+1, a.Bytes+int64(len(content))
		return err
	})
	a.Took, a.Commit = append(a.Took, time.Since(began)), string(rev.Commit)
	if err == nil && a.Files == 0 {
		err = fmt.Errorf("there is no file below %s", o.Read)
	}
	return a, err
}
