package repos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// Callers that want the same commit at the same time share one fetch.
func TestOneFetchForMany(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
		store, _ := open(t, repos.Options{})
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		for i := range 3 {
			repo.Commit(gitserver.Change{Files: map[string]string{"f": fmt.Sprint(i)}})
			rev, err := store.Resolve(t.Context(), remote, main)
			if err != nil {
				t.Fatal(err)
			}
			before := s.Counts("")
			var wg sync.WaitGroup
			for range 30 {
				wg.Go(func() {
					snap, err := store.Snapshot(t.Context(), remote, rev)
					if err != nil {
						t.Error(err)
						return
					}
					if got := read(t, snap.FS(), "f"); got != fmt.Sprint(i) {
						t.Errorf("content = %q, want %d", got, i)
					}
				})
			}
			wg.Wait()
			if got := s.Counts(""); got.UploadPack != before.UploadPack+1 || got.InfoRefs > before.InfoRefs+1 { // over HTTP the list of refs may be known
				t.Errorf("counts were %+v and are %+v, want one fetch more", before, got)
			}
		}
	})
}

// Twenty pollers of five repositories that change all the time; each sees only trees that were committed.
func TestManyPollers(t *testing.T) {
	t.Parallel()
	const remotes, pollers, commits = 5, 20, 8
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	store, dir := open(t, repos.Options{})
	var all []*gitserver.TestRepo
	for i := range remotes {
		all = append(all, s.Repo(t, fmt.Sprintf("repo%d.git", i), map[string]string{"a": "0", "b/c": "0"}))
	}
	var pushing, polling sync.WaitGroup
	for _, repo := range all {
		pushing.Go(func() {
			for i := range commits {
				v := fmt.Sprint(i + 1)
				if _, err := repo.Repo.Commit(t.Context(), gitserver.Change{
					Files: map[string]string{"a": v, "b/c": v, "new" + v: v},
					Amend: i%3 == 2,
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	for i := range pollers {
		polling.Go(func() {
			repo := all[i%remotes]
			for last := false; !last; {
				select {
				case <-done:
					last = true // once more, to see what was pushed last
				default:
				}
				snap, err := tryPull(t.Context(), store, repos.Remote{URL: repo.URL}, main)
				if err != nil {
					// The commit may have been amended away between listing and fetching.
					if repos.KindOf(err) != repos.KindCommitNotFound || last {
						t.Error(err)
						return
					}
					continue
				}
				a, c := read(t, snap.FS(), "a"), read(t, snap.FS(), "b/c")
				if a != c || (last && a != fmt.Sprint(commits)) {
					t.Errorf("a = %s and b/c = %s", a, c)
				}
			}
		})
	}
	pushing.Wait()
	close(done)
	polling.Wait()
	if left := files(t, dir, "incoming-*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A server that stalls holds up nobody who wants something else.
func TestStallHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	slow := gitserver.HTTP(t, gitserver.HTTPOptions{})
	quick := gitserver.HTTP(t, gitserver.HTTPOptions{})
	stalled := slow.Repo(t, "slow.git", map[string]string{"f": "x"})
	lively := quick.Repo(t, "quick.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{Timeout: time.Minute})
	here := pull(t, store, repos.Remote{URL: stalled.URL}, main).Revision
	next := repos.Revision{Commit: repos.Commit(stalled.Commit(gitserver.Change{Files: map[string]string{"f": "y"}}))}
	if err := slow.Inject(gitserver.Fault{Stall: true, StallAfter: 100, On: "git-upload-pack"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if _, err := store.Snapshot(ctx, repos.Remote{URL: stalled.URL}, next); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want it to be canceled", err)
			}
		})
	}
	await(t, func() bool { return slow.Counts("").UploadPack >= 2 })

	within(t, 20*time.Second, func() {
		pull(t, store, repos.Remote{URL: lively.URL}, main) // another remote
		if _, err := store.Snapshot(t.Context(), repos.Remote{URL: stalled.URL}, here); err != nil {
			t.Errorf("a commit of the same remote that is here: %v", err)
		}
		if _, err := store.Resolve(t.Context(), repos.Remote{URL: stalled.URL}, main); err != nil {
			t.Errorf("the refs of the same remote: %v", err)
		}
		short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		_, err := store.Snapshot(short, repos.Remote{URL: stalled.URL}, next) // a waiter that gives up
		wantKind(t, err, repos.KindTimeout)
		cancel()
		waiting.Wait()
		if err := slow.Heal(); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Snapshot(t.Context(), repos.Remote{URL: stalled.URL}, next); err != nil {
			t.Errorf("after all had given up: %v", err)
		}
	})
}

// The one who began a fetch may leave; the others still get it.
func TestFirstCallerLeaves(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{})
	held := holdAnswers(t, s.Addr())
	remote := repos.Remote{URL: "http://" + held.addr + "/shop.git"}
	rev := repos.Revision{Commit: repos.Commit(repo.Resolve("main"))}

	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := store.Snapshot(ctx, remote, rev)
		first <- err
	}()
	<-held.arrived
	go func() {
		_, err := store.Snapshot(t.Context(), remote, rev)
		second <- err
	}()
	await(t, func() bool { _, fetches := store.Waiting(); return fetches == 2 })
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("first: %v, want it to be canceled", err)
	}
	close(held.open)
	if err := <-second; err != nil {
		t.Errorf("second: %v", err)
	}
}

// Whoever asks after a push sees it, also when an answer from before the push is still on its way; and those who ask
// meanwhile share one listing.
func TestListingIsNeverOlderThanTheQuestion(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	before := repo.Resolve("main")
	store, _ := open(t, repos.Options{})
	held := holdAnswers(t, s.Addr())
	remote := repos.Remote{URL: "http://" + held.addr + "/shop.git"}
	var wg sync.WaitGroup
	resolve := func(want string) {
		rev, err := store.Resolve(t.Context(), remote, main)
		if err != nil || string(rev.Commit) != want {
			t.Errorf("resolved %s, %v; want %s", rev, err, want)
		}
	}
	wg.Go(func() { resolve(before) })
	<-held.arrived
	pushed := repo.Commit(gitserver.Change{Files: map[string]string{"f": "y"}})
	for range 10 {
		wg.Go(func() { resolve(pushed) })
	}
	await(t, func() bool { listings, _ := store.Waiting(); return listings == 10 }) // the first one's flight is sealed
	close(held.open)
	wg.Wait()
	if got := s.Counts("").InfoRefs; got != 2 {
		t.Errorf("11 callers caused %d listings, want 2", got)
	}
}

// Callers that come and go at random instants never wedge a store.
func TestRandomCancellation(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	store, _ := open(t, repos.Options{})
	remote := repos.Remote{URL: repo.URL}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range 15 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(30))*time.Millisecond)
				_, err := tryPull(ctx, store, remote, main)
				cancel()
				if err != nil && repos.KindOf(err) != repos.KindTimeout {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	pull(t, store, remote, main)
}
