package gitserver

import (
	"path/filepath"
	"testing"

	"github.com/mooring-dev/mooring/test/port"
)

// HTTP serves over HTTP until the test ends, from a temporary folder when opts.Root is empty.
func HTTP(t testing.TB, opts HTTPOptions) *Server {
	t.Helper()
	if opts.Root == "" {
		opts.Root = t.TempDir()
	}
	if opts.Addr == "" { // the port stays the test's also while the server is away
		kept, err := port.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(kept.Release)
		opts.Addr = kept.Addr()
	}
	s, err := StartHTTP(t.Context(), opts)
	return started(t, s, err)
}

// SSH serves over SSH until the test ends, from a temporary folder when opts.Root is empty.
func SSH(t testing.TB, opts SSHOptions) *Server {
	t.Helper()
	if opts.Root == "" {
		opts.Root = t.TempDir()
	}
	s, err := StartSSH(t.Context(), opts)
	return started(t, s, err)
}

// Blackhole accepts connections and says nothing until the test ends.
func Blackhole(t testing.TB) *Server {
	t.Helper()
	s, err := StartBlackhole(t.Context())
	return started(t, s, err)
}

func started(t testing.TB, s *Server, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop git server: %v", err)
		}
	})
	return s
}

// TestRepo is a Repo whose methods fail the test instead of returning errors.
type TestRepo struct {
	*Repo
	// URL under which the server of Server.Repo serves it; empty without a server.
	URL string
	t   testing.TB
}

// NewRepo makes a bare repository in a temporary folder, with one commit when there are files.
func NewRepo(t testing.TB, files map[string]string) *TestRepo {
	t.Helper()
	return newTestRepo(t, filepath.Join(t.TempDir(), "repo.git"), "", files)
}

// Repo makes a bare repository that the server serves under its name, with one commit when there are files.
func (s *Server) Repo(t testing.TB, name string, files map[string]string) *TestRepo {
	t.Helper()
	return newTestRepo(t, filepath.Join(s.Root, name), s.RepoURL(name), files)
}

func newTestRepo(t testing.TB, dir, url string, files map[string]string) *TestRepo {
	t.Helper()
	repo, err := InitRepo(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &TestRepo{Repo: repo, URL: url, t: t}
	if len(files) > 0 {
		r.Commit(Change{Message: "first", Files: files})
	}
	return r
}

// Commit makes one commit and returns its id.
func (r *TestRepo) Commit(c Change) string {
	r.t.Helper()
	id, err := r.Repo.Commit(r.t.Context(), c)
	r.must(err)
	return id
}

// SetBranch lets a branch point at any commit, as a forced push does.
func (r *TestRepo) SetBranch(name, to string) {
	r.t.Helper()
	r.must(r.Repo.SetBranch(r.t.Context(), name, to))
}

// SetRef lets a ref with a full name point at a commit.
func (r *TestRepo) SetRef(name, to string) {
	r.t.Helper()
	r.must(r.Repo.SetRef(r.t.Context(), name, to))
}

// Tag makes or moves a tag; an annotated one when there is a message.
func (r *TestRepo) Tag(name, at, message string) {
	r.t.Helper()
	r.must(r.Repo.Tag(r.t.Context(), name, at, message))
}

// Delete removes a ref by its full name.
func (r *TestRepo) Delete(name string) {
	r.t.Helper()
	r.must(r.Repo.Delete(r.t.Context(), name))
}

// Resolve gives the commit that a branch, tag or id stands for.
func (r *TestRepo) Resolve(name string) string {
	r.t.Helper()
	id, err := r.Repo.Resolve(r.t.Context(), name)
	r.must(err)
	return id
}

// Config sets one key of the repository's configuration.
func (r *TestRepo) Config(key, value string) {
	r.t.Helper()
	r.must(r.Repo.Config(r.t.Context(), key, value))
}

// Git runs any git command in the repository.
func (r *TestRepo) Git(args ...string) string {
	r.t.Helper()
	out, err := r.Repo.Git(r.t.Context(), args...)
	r.must(err)
	return out
}

// GitInput is Git with something on standard input.
func (r *TestRepo) GitInput(input string, args ...string) string {
	r.t.Helper()
	out, err := r.Repo.GitInput(r.t.Context(), input, args...)
	r.must(err)
	return out
}

func (r *TestRepo) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}
