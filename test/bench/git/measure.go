package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mooring-dev/mooring/test/gitserver"
)

// bench is a run.
type bench struct {
	options options
	dir     string
	server  *gitserver.Server
	rows    []row
	made    int // folders
}

// figure is what one side needed for something. peak is in bytes, and zero where it does not matter; so is disk.
type figure struct {
	took       time.Duration
	peak, disk int64
}

// row is one comparison. plain is what git takes without the reading of files; zero where there is no such thing.
type row struct {
	what, note   string
	mooring, git figure
	plain        time.Duration
	factor       float64 // that is to be reached against plain, or against git; 0 where nothing is said
}

func newBench(ctx context.Context, o options, dir string) (*bench, error) {
	root := filepath.Join(dir, "served")
	if err := os.Mkdir(root, 0o755); err != nil { //nolint:gosec // git http-backend reads it
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	made := exec.CommandContext(ctx, self, "-generate", root, "-apps", strconv.Itoa(o.apps), "-commits", strconv.Itoa(o.commits), "-large", strconv.Itoa(o.largeMB))
	made.Stdout, made.Stderr = os.Stdout, os.Stderr
	if err := made.Run(); err != nil {
		return nil, fmt.Errorf("make the repositories: %w", err)
	}
	server, err := gitserver.StartHTTP(ctx, gitserver.HTTPOptions{Root: root})
	if err != nil {
		return nil, err
	}
	return &bench{options: o, dir: dir, server: server}, nil
}

// measure everything about one repository.
func (b *bench) measure(ctx context.Context, r source) error {
	url, repo := b.server.RepoURL(r.name+".git"), &gitserver.Repo{Dir: filepath.Join(b.dir, "served", r.name+".git")}
	m, clone, err := b.first(ctx, r, url)
	if err != nil {
		return err
	}
	if err := b.updates(ctx, r, repo, m, clone); err != nil {
		return err
	}
	if err := b.polls(ctx, r, m, clone, url); err != nil {
		return err
	}
	if err := m.end(); err != nil {
		return err
	}
	if r.whole {
		if err := b.everything(ctx, r, url); err != nil {
			return err
		}
	}
	return b.unfiltered(ctx, r, repo, url)
}

// first fetches into nothing, and reads the folder that is wanted. The child and the clone go on to be used.
func (b *bench) first(ctx context.Context, r source, url string) (*process, *clone, error) {
	m, err := b.start(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	a, err := m.do(order{Read: r.path})
	if err != nil {
		return nil, nil, err
	}
	c, plain, git, err := b.clone(ctx, url, r.path, "--filter=blob:none")
	if err != nil {
		return nil, nil, err
	}
	got, err := m.figure(a)
	if err != nil {
		return nil, nil, err
	}
	b.add(row{
		what: r.what + ": first fetch", note: fmt.Sprintf("and reading %d files of it; beside `clone --depth 1 --bare --filter=blob:none` and a checkout of the same", a.Files),
		mooring: got, git: git, plain: plain,
	})
	return m, c, nil
}

// updates are commits that change one file of the folder that is wanted, and one elsewhere.
func (b *bench) updates(ctx context.Context, r source, repo *gitserver.Repo, m *process, c *clone) error {
	var ours, plains, theirs []time.Duration
	var got, git figure
	for n := range b.options.updates {
		id, err := repo.Commit(ctx, gitserver.Change{Files: map[string]string{
			r.path + "/changed.yaml": fmt.Sprintf("n: %d\n", n), "elsewhere/changed.yaml": fmt.Sprintf("n: %d\n", n),
		}})
		if err != nil {
			return err
		}
		a, err := m.do(order{Read: r.path})
		if err != nil {
			return err
		}
		if a.Commit != id {
			return fmt.Errorf("mooring has commit %s, want %s", a.Commit, id)
		}
		if got, err = m.figure(a); err != nil {
			return err
		}
		plain, all, err := c.update(ctx, r.path, id)
		if err != nil {
			return err
		}
		git.peak, git.disk = max(git.peak, all.peak), all.disk
		ours, plains, theirs = append(ours, got.took), append(plains, plain), append(theirs, all.took)
	}
	got.took, git.took = median(ours), median(theirs)
	b.add(row{
		what: r.what + ": after one commit", note: fmt.Sprintf("median of %d; asking for it and reading the folder are part of it; beside `fetch --depth 1 --filter=blob:none` and a checkout", len(ours)),
		mooring: got, git: git, plain: median(plains), factor: 1.5,
	})
	return nil
}

// polls find nothing new.
func (b *bench) polls(ctx context.Context, r source, m *process, c *clone, url string) error {
	a, err := m.do(order{Polls: b.options.polls})
	if err != nil {
		return err
	}
	var theirs []time.Duration
	for range b.options.polls {
		took, _, err := c.git(ctx, "ls-remote", url, "refs/heads/"+branch)
		if err != nil {
			return err
		}
		theirs = append(theirs, took)
	}
	b.add(row{
		what: r.what + ": a poll without change", note: fmt.Sprintf("median of %d; beside `ls-remote` of the branch", b.options.polls),
		mooring: figure{took: median(a.Took)}, git: figure{took: median(theirs)}, factor: 1.2,
	})
	return nil
}

// everything is a first fetch where the whole repository is wanted.
func (b *bench) everything(ctx context.Context, r source, url string) error {
	return b.once(ctx, url, ".", row{what: r.what + ": first fetch, all of it wanted", note: "and reading every file; beside `clone --depth 1 --bare` and a checkout"})
}

// unfiltered is a first fetch from a server that has no filters, so that everything must come, whatever is wanted.
func (b *bench) unfiltered(ctx context.Context, r source, repo *gitserver.Repo, url string) error {
	if err := repo.Config(ctx, "uploadpack.allowFilter", "false"); err != nil {
		return err
	}
	return b.once(ctx, url, r.path, row{what: r.what + ": first fetch, a server without filters", note: "and reading the folder; beside `clone --depth 1 --bare` and a checkout"})
}

func (b *bench) once(ctx context.Context, url, path string, r row) error {
	m, err := b.start(ctx, url)
	if err != nil {
		return err
	}
	a, err := m.do(order{Read: path})
	if err != nil {
		return err
	}
	if r.mooring, err = m.figure(a); err != nil {
		return err
	}
	if _, r.plain, r.git, err = b.clone(ctx, url, path); err != nil {
		return err
	}
	b.add(r)
	return m.end()
}

func (b *bench) add(r row) {
	fmt.Println(r)
	b.rows = append(b.rows, r)
}

// folder makes a name for one.
func (b *bench) folder(kind string) string {
	b.made++
	return filepath.Join(b.dir, fmt.Sprintf("%s-%d", kind, b.made))
}

// process is a child that fetches.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Scanner
	store string
}

func (b *bench) start(ctx context.Context, url string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{store: b.folder("store")}
	p.cmd = exec.CommandContext(ctx, self, childWord, p.store, url)
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 1<<20)
	return p, p.cmd.Start()
}

func (p *process) do(o order) (answer, error) {
	var a answer
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		return a, err
	}
	if !p.out.Scan() {
		return a, errors.Join(errors.New("the child ended"), p.out.Err())
	}
	if err := json.Unmarshal(p.out.Bytes(), &a); err != nil {
		return a, err
	}
	if a.Err != "" {
		return a, errors.New(a.Err)
	}
	return a, nil
}

// figure is what the last order took, and the peak of all until now.
func (p *process) figure(a answer) (figure, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return figure{}, err
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return figure{}, errors.New("the kernel tells no peak memory")
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return figure{}, err
	}
	disk, err := sizeOf(p.store)
	return figure{took: a.Took[len(a.Took)-1], peak: kib << 10, disk: disk}, err
}

func (p *process) end() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// clone is one that git has made.
type clone struct{ dir, tree string }

// clone a repository and check a folder out of it. plain is what the clone alone took.
func (b *bench) clone(ctx context.Context, url, path string, args ...string) (_ *clone, plain time.Duration, all figure, err error) {
	c := &clone{dir: b.folder("clone"), tree: b.folder("tree")}
	if err := os.Mkdir(c.tree, 0o700); err != nil {
		return nil, 0, all, err
	}
	plain, cloned, err := (&clone{dir: b.dir}).git(ctx, append(append([]string{"clone", "--quiet", "--depth", "1", "--bare"}, args...), url, c.dir)...)
	if err != nil {
		return nil, 0, all, err
	}
	all, err = c.checkout(ctx, path)
	all.took, all.peak = all.took+plain, max(all.peak, cloned)
	return c, plain, all, err
}

// update fetches the newest commit and checks the folder out.
func (c *clone) update(ctx context.Context, path, want string) (plain time.Duration, all figure, err error) {
	plain, peak, err := c.git(ctx, "fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", "+refs/heads/"+branch+":refs/heads/"+branch)
	if err != nil {
		return 0, all, err
	}
	all, err = c.checkout(ctx, path)
	if err != nil {
		return 0, all, err
	}
	all.took, all.peak = all.took+plain, max(all.peak, peak)
	head, err := os.ReadFile(filepath.Join(c.dir, "refs", "heads", branch))
	if err == nil && strings.TrimSpace(string(head)) != want {
		err = fmt.Errorf("git has commit %s, want %s", head, want)
	}
	return plain, all, err
}

func (c *clone) checkout(ctx context.Context, path string) (figure, error) {
	took, peak, err := c.git(ctx, "--git-dir", c.dir, "--work-tree", c.tree, "checkout", "--quiet", branch, "--", path)
	if err != nil {
		return figure{}, err
	}
	disk, err := sizeOf(c.dir)
	return figure{took: took, peak: peak, disk: disk}, err
}

// git runs it in the clone, without any configuration of this machine, and without the clearing up that it would begin in the background, where the next command
// stumbles over it.
func (c *clone) git(ctx context.Context, args ...string) (time.Duration, int64, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(began)
	if err != nil {
		return 0, 0, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, errors.New("the kernel tells no peak memory of git")
	}
	return took, usage.Maxrss << 10, nil
}

// sizeOf is what the files of a folder hold.
func sizeOf(dir string) (int64, error) {
	var total int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
