package repos_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/poll"
)

var main = repos.Ref{Branch: "main"}

// nobody listens there, and no server of another test is given that port.
const nobody = "127.0.0.1:1"

// TestMain runs more tests at a time than there are cores: what they do for the most part is wait, for sshd, for git, for a deadline. Those that look at the process as
// a whole are not parallel, and run before all others.
func TestMain(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	m.Run()
}

// open makes a store in a folder that goes when the test ends.
func open(t testing.TB, opts repos.Options) (*repos.Store, string) {
	t.Helper()
	dir := t.TempDir()
	return reopen(t, dir, opts), dir
}

func reopen(t testing.TB, dir string, opts repos.Options) *repos.Store {
	t.Helper()
	s, err := repos.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func auth(t testing.TB, data map[string]string) repos.Auth {
	t.Helper()
	a, err := repos.AuthFromSecret(secret(data))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func secret(data map[string]string) map[string][]byte {
	s := map[string][]byte{}
	for k, v := range data {
		s[k] = []byte(v)
	}
	return s
}

// sshAuth is what an SSH server's own key and host keys make.
func sshAuth(t testing.TB, s *gitserver.Server) repos.Auth {
	t.Helper()
	return auth(t, map[string]string{"identity": string(s.Identity()), "known_hosts": string(s.KnownHosts())})
}

// pull resolves and snapshots.
func pull(t testing.TB, s *repos.Store, r repos.Remote, ref repos.Ref) *repos.Snapshot {
	t.Helper()
	snap, err := tryPull(t.Context(), s, r, ref)
	if err != nil {
		t.Fatalf("%v (hint: %s)", err, repos.HintOf(err))
	}
	return snap
}

func tryPull(ctx context.Context, s *repos.Store, r repos.Remote, ref repos.Ref) (*repos.Snapshot, error) {
	rev, err := s.Resolve(ctx, r, ref)
	if err != nil {
		return nil, err
	}
	return s.Snapshot(ctx, r, rev)
}

// read a file, or show the error in its place.
func read(t testing.TB, fsys fs.FS, name string) string {
	t.Helper()
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Errorf("read %s: %v", name, err)
	}
	return string(content)
}

// wantKind checks the sort of an error, that it helps, and that it tells nobody's secret.
func wantKind(t testing.TB, err error, kind repos.Kind, contains ...string) {
	t.Helper()
	if got := repos.KindOf(err); got != kind {
		t.Fatalf("error %q has kind %q, want %q", err, got, kind)
	}
	for _, part := range contains {
		if text := err.Error() + "\n" + repos.HintOf(err); !strings.Contains(text, part) {
			t.Errorf("error %q with hint %q does not say %q", err, repos.HintOf(err), part)
		}
	}
}

// within fails the test when do takes longer than limit, which is far less than what it would wait for.
func within(t testing.TB, limit time.Duration, do func()) {
	t.Helper()
	start := time.Now()
	do()
	if took := time.Since(start); took > limit {
		t.Errorf("took %s, want less than %s", took, limit)
	}
}

// files lists what is below a folder with a suffix.
func files(t testing.TB, dir, suffix string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

// partial lists what a fetch that failed must not leave in a store.
func partial(t testing.TB, dir string) []string {
	t.Helper()
	left := files(t, dir, ".pack")
	for _, name := range files(t, dir, "") {
		if strings.Contains(filepath.Base(name), "incoming-") {
			left = append(left, name)
		}
	}
	return left
}

// await polls until something is so.
func await(t testing.TB, so func() bool) {
	t.Helper()
	poll.AwaitTrue(t, 30*time.Second, "it is so", so)
}

// proxy passes requests on to addr at once and holds the answers back until it is opened.
type proxy struct {
	addr    string
	open    chan struct{} // to be closed
	arrived chan struct{} // has one for each answer that is being held back
}

func holdAnswers(t testing.TB, addr string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &proxy{addr: listener.Addr().String(), open: make(chan struct{}), arrived: make(chan struct{}, 100)}
	pass := func(in net.Conn) {
		defer func() { _ = in.Close() }()
		out, err := net.Dial("tcp", addr)
		if err != nil {
			return
		}
		defer func() { _ = out.Close() }()
		go func() {
			_, _ = io.Copy(out, in)
			_ = out.Close() // the client has gone
		}()
		first := make([]byte, 1)
		if _, err := io.ReadFull(out, first); err != nil {
			return
		}
		p.arrived <- struct{}{}
		<-p.open
		_, _ = in.Write(first)
		_, _ = io.Copy(in, out)
	}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go pass(in)
		}
	}()
	return p
}
