package gitserver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/test/gitserver"
)

// clone runs the real git client and returns the folder.
func clone(t *testing.T, url string, env ...string) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	cmd := exec.CommandContext(t.Context(), "git", "clone", "--quiet", url, dir)
	cmd.Env = append(os.Environ(), append(env, "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL=/dev/null")...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.New(string(out))
	}
	return dir, nil
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s = %q, want %q", path, got, want)
	}
}

func TestHTTPServesAnonymousReaders(t *testing.T) {
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	repo := s.Repo(t, "shop.git", map[string]string{"a/b.yaml": "one: 1\n"})
	dir, err := clone(t, repo.URL)
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(dir, "a/b.yaml"), "one: 1\n")
	// git speaks protocol v2, in which both the refs and the pack are POSTs.
	if got := s.Counts("shop.git"); got.InfoRefs != 1 || got.UploadPack < 1 {
		t.Errorf("counts = %+v, want one listing and at least one request for objects", got)
	}
	if got := s.Counts("other.git"); got != (gitserver.Counts{}) {
		t.Errorf("counts of another repository = %+v, want none", got)
	}
	if _, err := clone(t, s.RepoURL("none.git")); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("clone of a missing repository: %v, want not found", err)
	}
}

func TestHTTPChecksWhoAsks(t *testing.T) {
	s := gitserver.HTTP(t, gitserver.HTTPOptions{TLS: true, Username: "ship", Password: "rope"})
	s.Repo(t, "shop.git", map[string]string{"f": "x"})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, s.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	url := s.RepoURL("shop.git")
	if _, err := clone(t, url, "GIT_SSL_CAINFO="+ca); err == nil {
		t.Error("clone without credentials succeeds")
	}
	if _, err := clone(t, strings.Replace(url, "://", "://ship:rope@", 1)); err == nil {
		t.Error("clone without the authority succeeds")
	}
	if _, err := clone(t, strings.Replace(url, "://", "://ship:rope@", 1), "GIT_SSL_CAINFO="+ca); err != nil {
		t.Error(err)
	}
}

func TestHTTPPush(t *testing.T) {
	for _, allow := range []bool{true, false} {
		s := gitserver.HTTP(t, gitserver.HTTPOptions{AllowPush: allow})
		repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
		dir, err := clone(t, repo.URL)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "push", "--quiet", "origin", "HEAD:refs/heads/new").CombinedOutput()
		if (err == nil) != allow {
			t.Errorf("push where AllowPush is %v: %v: %s", allow, err, out)
		}
	}
}

func TestSSHServesTheHolderOfTheKey(t *testing.T) {
	s := gitserver.SSH(t, gitserver.SSHOptions{HostKeys: []string{"ecdsa", "ed25519"}})
	repo := s.Repo(t, "shop.git", map[string]string{"f": "x"})
	dir := t.TempDir()
	other, err := gitserver.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"id": s.Identity(), "other": other, "known": s.KnownHosts()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ssh := func(id string) string {
		return "GIT_SSH_COMMAND=ssh -F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile=" +
			filepath.Join(dir, "known") + " -i " + filepath.Join(dir, id)
	}
	if _, err := clone(t, repo.URL, ssh("other")); err == nil {
		t.Error("clone with an unknown key succeeds")
	}
	got, err := clone(t, repo.URL, ssh("id"))
	if err != nil {
		t.Fatal(err)
	}
	wantFile(t, filepath.Join(got, "f"), "x")
	want := gitserver.Counts{InfoRefs: 1, UploadPack: 1}
	if diff := cmp.Diff(want, s.Counts("shop.git")); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}

	// A stalled session says a little, then nothing, and stays open.
	if err := s.Inject(gitserver.Fault{Stall: true, StallAfter: 20}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ssh", "-F", "none", "-o", "UserKnownHostsFile="+filepath.Join(dir, "known"),
		"-i", filepath.Join(dir, "id"), "-p", s.Addr()[strings.LastIndex(s.Addr(), ":")+1:],
		strings.TrimPrefix(strings.Split(repo.URL, ":")[1], "//"), "git-upload-pack '"+repo.Dir+"'")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 20)); err != nil {
		t.Fatalf("stalled session: %v before 20 bytes", err)
	}
	more := make(chan error, 1)
	go func() {
		n, err := out.Read(make([]byte, 1))
		more <- fmt.Errorf("%d bytes, %w", n, err)
	}()
	select {
	case err := <-more:
		t.Errorf("stalled session goes on: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	if err := errors.Join(in.Close(), cmd.Process.Kill()); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
}

func TestFaults(t *testing.T) {
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	s.Repo(t, "shop.git", map[string]string{"f": "x"})
	url := s.RepoURL("shop.git") + "/info/refs?service=git-upload-pack"
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	get := func(ctx context.Context, f gitserver.Fault) (int, string, error) {
		t.Helper()
		if err := s.Inject(f); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Heal() }()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		return res.StatusCode, string(body) + res.Header.Get("Location") + res.Header.Get("Retry-After"), err
	}
	if code, body, _ := get(t.Context(), gitserver.Fault{Status: 429, RetryAfter: "7"}); code != 429 || body != "7" {
		t.Errorf("status fault: %d %q", code, body)
	}
	if code, body, _ := get(t.Context(), gitserver.Fault{RedirectTo: "https://other.example"}); code != 302 ||
		!strings.HasSuffix(body, "https://other.example/shop.git/info/refs?service=git-upload-pack") {
		t.Errorf("redirect fault: %d %q", code, body)
	}
	if _, body, err := get(t.Context(), gitserver.Fault{Cut: true, CutAfter: 30}); err == nil || len(body) > 30 {
		t.Errorf("cut fault: %q %v", body, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, body, err := get(ctx, gitserver.Fault{Stall: true, StallAfter: 30}); !errors.Is(err, context.DeadlineExceeded) || len(body) != 30 {
		t.Errorf("stall fault: %q %v", body, err)
	}
	if code, _, err := get(t.Context(), gitserver.Fault{On: "git-upload-pack", Status: 500}); code != 200 || err != nil {
		t.Errorf("fault on another request: %d %v", code, err)
	}
}

func TestBlackholeSaysNothing(t *testing.T) {
	s := gitserver.Blackhole(t)
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(conn).ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read = %v, want to wait in vain", err)
	}
}

func TestRepoHistory(t *testing.T) {
	r := gitserver.NewRepo(t, map[string]string{"a": "1\n", "d/b": "2\n", `q"uo te`: "3"})
	first := r.Resolve("main")
	second := r.Commit(gitserver.Change{Message: "second", Files: map[string]string{"a": "11\n"}, Remove: []string{"d"}})
	amended := r.Commit(gitserver.Change{Amend: true, Message: "again", Links: map[string]string{"l": "a"}})
	if amended == second {
		t.Error("an amended commit has the id of the old one")
	}
	if got := r.Git("rev-parse", "main^"); got != first {
		t.Errorf("parent of the amended commit = %s, want the first, %s", got, first)
	}
	if diff := cmp.Diff("a\nl\n"+`"q\"uo te"`, r.Git("ls-tree", "-r", "--name-only", "main")); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	side := r.Commit(gitserver.Change{
		Branch: "env/dev", From: "main", Replace: true, Files: map[string]string{"x": ""},
		Submodules: map[string]string{"sub": first},
	})
	if diff := cmp.Diff("sub\nx", r.Git("ls-tree", "-r", "--name-only", side)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	r.SetBranch("main", first)
	r.Tag("v1", side, "")
	r.Tag("v2", side, "annotated")
	r.Delete("refs/heads/env/dev")
	want := "commit refs/heads/main\ncommit refs/tags/v1\ntag refs/tags/v2"
	if diff := cmp.Diff(want, r.Git("for-each-ref", "--format=%(objecttype) %(refname)")); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	if got := r.Resolve("main"); got != first {
		t.Errorf("main = %s after going back, want %s", got, first)
	}
}

func TestFilesOf(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "1", "d/b": "2", ".git/config": "no"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := gitserver.FilesOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "d/b": "2"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
