package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/results"
)

// row is what was measured of one unit.
type row struct {
	objects, files int
	shape          string
	// cold, one and none are the medians with an empty cache, after a commit that changes one object, and after one that changes none.
	cold, one, none time.Duration
	kustomize       time.Duration
	stopped         bool // kustomize took longer than that
}

func (r row) String() string {
	return fmt.Sprintf("%6d objects, %4d files, %-36s cold %s, one object changed %s, nothing changed %s, kustomize build %s",
		r.objects, r.files, r.shape, results.Duration(r.cold), results.Duration(r.one), results.Duration(r.none), r.kustomizeTime())
}

// unit is a repository that is rendered again and again.
type unit struct {
	shape  shape
	n      int
	repo   *gitserver.Repo
	store  *repos.Store
	remote repos.Remote
}

// measure makes a unit and renders it in all ways.
func measure(ctx context.Context, o options, kustomize string, s shape, n int) (_ row, err error) {
	dir, err := os.MkdirTemp("", "bench-render-")
	if err != nil {
		return row{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is below the folder for temporary files
	server, err := gitserver.StartHTTP(ctx, gitserver.HTTPOptions{Root: dir})
	if err != nil {
		return row{}, err
	}
	defer func() { _ = server.Close() }() // the measuring is over
	u := unit{shape: s, n: n, remote: repos.Remote{URL: server.RepoURL("unit.git")}}
	if u.repo, err = gitserver.InitRepo(ctx, filepath.Join(dir, "unit.git")); err != nil {
		return row{}, err
	}
	if u.store, err = repos.Open(filepath.Join(dir, "store"), repos.Options{}); err != nil {
		return row{}, err
	}
	r := row{objects: n, shape: s.name}
	if err := u.all(ctx, o.rounds, &r); err != nil {
		return row{}, err
	}
	out := filepath.Join(dir, "checkout")
	if err := checkout(out, s.files(n, -1, 0)); err != nil {
		return row{}, err
	}
	r.kustomize, r.stopped, err = timeKustomize(ctx, kustomize, filepath.Join(out, s.dir), n, o.limit)
	return r, err
}

// all measures our own renders.
func (u *unit) all(ctx context.Context, rounds int, r *row) error {
	var cold, one, none []time.Duration
	before, err := u.commit(ctx, u.shape.files(u.n, -1, 0))
	if err != nil {
		return err
	}
	var renderer *render.Renderer
	for range rounds {
		renderer = &render.Renderer{Cache: render.NewCache(1 << 30)}
		set, took, err := u.render(ctx, renderer, before)
		if err != nil {
			return err
		}
		if len(set.Objects) != u.n {
			return fmt.Errorf("%d objects came out", len(set.Objects))
		}
		r.files = len(set.Files)
		cold = append(cold, took)
	}
	for i := range rounds {
		snapshot, err := u.commit(ctx, u.shape.files(u.n, (u.n/rounds)*i+3, 10+i))
		if err != nil {
			return err
		}
		set, took, err := u.render(ctx, renderer, snapshot)
		if err != nil {
			return err
		}
		one = append(one, took)
		if snapshot, err = u.commit(ctx, map[string]string{"README.md": fmt.Sprint("round ", i)}); err != nil {
			return err
		}
		again, took, err := u.render(ctx, renderer, snapshot)
		if err != nil {
			return err
		}
		if again != set {
			return fmt.Errorf("a Set was made anew for a commit that changes nothing")
		}
		none = append(none, took)
	}
	r.cold, r.one, r.none = median(cold), median(one), median(none)
	return nil
}

// commit writes files and fetches the commit, as the agent does.
func (u *unit) commit(ctx context.Context, files map[string]string) (fs.FS, error) {
	if _, err := u.repo.Commit(ctx, gitserver.Change{Files: files}); err != nil {
		return nil, err
	}
	rev, err := u.store.Resolve(ctx, u.remote, repos.Ref{Branch: gitserver.DefaultBranch})
	if err != nil {
		return nil, err
	}
	snapshot, err := u.store.Snapshot(ctx, u.remote, rev)
	if err != nil {
		return nil, err
	}
	return snapshot.FS(), nil
}

func (u *unit) render(ctx context.Context, r *render.Renderer, fsys fs.FS) (*render.Set, time.Duration, error) {
	begun := time.Now()
	set, err := r.Render(ctx, fsys, u.shape.dir)
	return set, time.Since(begun), err
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// checkout writes files below a folder.
func checkout(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
