package kube

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mooring-dev/mooring/test/poll"
)

// Recipe says how a binary is built that tests need, that no package of Debian has, and that takes minutes: from a nested module, so that the product's
// own stays light.
type Recipe struct {
	// Name of it, before each line of progress; with dashes for spaces, the beginning of the file's name.
	Name string
	// What is built, for the first line.
	What string
	// Source is the folder of the nested module.
	Source string
	// Package to build: "." or an import path.
	Package string
	// Flags of go build and go list.
	Flags []string
}

// Build gives the path of the binary, and builds it first when the cache does not hold it.
//
// The cache is $MOORING_CACHE, or mooring below the user's cache folder: outside the work tree, so that a fresh
// clone and a `git clean` cost nothing. The key is the hash of the nested module's go.mod, go.sum and sources,
// of the Go version and of the build's flags, so a file in the cache never has to be looked at twice. Whoever comes second while a build is under way waits
// for it. progress gets a line every ten seconds.
func (r Recipe) Build(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	b := builder{Recipe: r, progress: progress, begun: time.Now()}
	key, err := b.key(ctx)
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, strings.ReplaceAll(r.Name, " ", "-")+"-"+key)
	if isFile(target) {
		return target, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache of the %s: %w", r.Name, err)
	}
	said := time.Now()
	unlock, err := poll.Lock(ctx, target+".lock", func() {
		if time.Since(said) > sayEvery {
			b.say("somebody else builds it; waiting")
			said = time.Now()
		}
	})
	if err != nil {
		return "", fmt.Errorf("build the %s: %w", r.Name, err)
	}
	defer unlock()
	if isFile(target) {
		return target, nil
	}
	if err := b.build(ctx, target); err != nil {
		return "", fmt.Errorf("build the %s in %s: %w", r.Name, r.Source, err)
	}
	return target, nil
}

// builder is one run of Build.
type builder struct {
	Recipe
	progress io.Writer
	begun    time.Time
}

func (b builder) key(ctx context.Context) (string, error) {
	version, err := b.command(ctx, "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("ask go for its version: %w", err)
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", version, b.Flags)
	files, err := filepath.Glob(filepath.Join(b.Source, "*.go"))
	if err != nil {
		return "", err
	}
	slices.Sort(files)
	for _, file := range append(files, filepath.Join(b.Source, "go.mod"), filepath.Join(b.Source, "go.sum")) {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("read the sources of the %s: %w", b.Name, err)
		}
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(file), len(content))
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

func (b builder) command(ctx context.Context, args ...string) *exec.Cmd {
	return NestedGo(ctx, b.Source, args...)
}

// NestedGo is the go command in a nested module.
func NestedGo(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// A workspace, another module mode or a build without C of the caller is not meant for the nested module: Gitea's SQLite is C.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CGO_ENABLED=") })
	cmd.Env = append(cmd.Env, "GOWORK=off", "GOFLAGS=-mod=readonly")
	return cmd
}

const sayEvery = 10 * time.Second

func (b builder) say(format string, args ...any) {
	elapsed := time.Since(b.begun).Round(time.Second)
	fmt.Fprintf(b.progress, "%s: %6s  %s\n", b.Name, elapsed, fmt.Sprintf(format, args...))
}

func (b builder) build(ctx context.Context, target string) error {
	b.say("building %s, once; into %s", b.What, target)

	downloaded := 0
	// Listing is what downloads the modules, and only those that the build needs.
	list := b.command(ctx, slices.Concat([]string{"list", "-deps"}, b.Flags, []string{b.Package})...)
	out, err := b.watch(list, func(string) string {
		downloaded++
		return fmt.Sprintf("downloading modules: %d so far", downloaded)
	})
	if err != nil {
		return err
	}
	packages := strings.Fields(out) // the last is the one that all others are for

	// In the target's folder, so that the rename is atomic.
	part, err := os.CreateTemp(filepath.Dir(target), "building-*")
	if err != nil {
		return err
	}
	_ = part.Close()
	defer func() { _ = os.Remove(part.Name()) }()
	args := slices.Concat([]string{"build", "-v", "-o", part.Name()}, b.Flags, []string{b.Package})
	compiled := 0
	_, err = b.watch(b.command(ctx, args...), func(line string) string {
		compiled++
		if line == packages[len(packages)-1] {
			return "linking"
		}
		return fmt.Sprintf("compiling: %d packages (of at most %d), now %s", compiled, len(packages), line)
	})
	if err != nil {
		return err
	}
	if err := os.Chmod(part.Name(), 0o755); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), target); err != nil {
		return err
	}
	b.say("built")
	return nil
}

// watch runs a command whose lines on stderr are its progress, and says every ten seconds what stage made of
// the last of them. It answers with what came on stdout.
func (b builder) watch(cmd *exec.Cmd, stage func(line string) string) (string, error) {
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	var (
		mu   sync.Mutex
		last = "starting"
		tail []string
		wg   sync.WaitGroup
	)
	stop := make(chan struct{})
	wg.Go(func() {
		tick := time.NewTicker(sayEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				mu.Lock()
				b.say("%s", last)
				mu.Unlock()
			}
		}
	})
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		mu.Lock()
		last = stage(lines.Text())
		tail = append(tail, lines.Text())
		tail = tail[max(0, len(tail)-30):]
		mu.Unlock()
	}
	err = cmd.Wait()
	close(stop)
	wg.Wait()
	if err != nil {
		return "", fmt.Errorf("%s: %w; its last words:\n%s", strings.Join(cmd.Args[:2], " "), err, strings.Join(tail, "\n"))
	}
	return stdout.String(), nil
}

// moduleRoot is where the project's go.mod lies. The compiler wrote this file's place into the binary, so it is
// found from every package's tests, whatever their working folder.
func moduleRoot() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return "", errors.New("find what is built once: this binary was built with -trimpath; build it without")
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file))), nil
}

// NestedModule is the folder of a nested module below test, such as test/kube/server.
func NestedModule(below ...string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	src := filepath.Join(append([]string{root, "test"}, below...)...)
	if !isFile(filepath.Join(src, "go.mod")) {
		return "", fmt.Errorf("find what is built once: no go.mod in %s; was the work tree moved after this binary was built?", src)
	}
	return src, nil
}

// CacheDir is where binaries lie that are built once: $MOORING_CACHE, or mooring below the user's cache folder. It may not exist yet.
func CacheDir() (string, error) {
	if dir := os.Getenv("MOORING_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache for what is built: %w; set MOORING_CACHE to a folder", err)
	}
	return filepath.Join(dir, "mooring"), nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
