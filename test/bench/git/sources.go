package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"

	"github.com/mooring-dev/mooring/test/gitserver"
)

const branch = gitserver.DefaultBranch

// source is a repository that is generated: always the same one for the same options.
type source struct {
	name  string // of the repository
	what  string // in a row's words
	path  string // the folder that is wanted
	whole bool   // whether reading all of it is measured as well
	write func(w *stream)
}

// stream is what git fast-import reads.
type stream struct {
	w    *bufio.Writer
	rand *rand.ChaCha8
	at   int
}

func (s *stream) commit(message string) {
	s.at++
	_, _ = fmt.Fprintf(s.w, "commit refs/heads/%s\ncommitter Bench <bench@example.com> %d +0000\ndata %d\n%s\n", branch, 1_700_000_000+s.at*60, len(message), message)
}

func (s *stream) file(name string, content []byte) {
	_, _ = fmt.Fprintf(s.w, "M 100644 inline %s\ndata %d\n", name, len(content))
	_, _ = s.w.Write(content)
	_, _ = s.w.WriteString("\n")
}

// config is a file of about 400 bytes, unlike any other.
func (s *stream) config(kind, app string, n int) []byte {
	return fmt.Appendf(nil, `apiVersion: networking.istio.io/v1
kind: %s
metadata:
  name: %s-%d
  namespace: %s
  labels: {app: %s, tier: "%d"}
spec:
  hosts: [h%x.%s.example.com]
  http:
    - timeout: %ds
      route:
        - destination: {host: %s.%s.svc.cluster.local, subset: v%d}
          weight: 100
`, kind, app, n, app, app, n%3, s.rand.Uint64(), app, 1+n%30, app, app, n)
}

func sources(o options) []source { return []source{monorepo(o), binaries(o)} }

// monorepo has 50 files for each application, in a base and four overlays, and commits that change three files each.
func monorepo(o options) source {
	const folders, files = 5, 10 // 50 files
	app := func(i int) string { return fmt.Sprintf("app-%04d", i) }
	name := func(a, f, n int) string {
		folder := [...]string{"base", "overlays/dev", "overlays/test", "overlays/staging", "overlays/prod"}[f]
		if n == 0 {
			return fmt.Sprintf("teams/t%02d/%s/%s/kustomization.yaml", a%40, app(a), folder)
		}
		return fmt.Sprintf("teams/t%02d/%s/%s/vs-%d.yaml", a%40, app(a), folder, n)
	}
	return source{
		name: "monorepo", path: "teams/t07/" + app(7), whole: true,
		what: fmt.Sprintf("%d small files, %d commits", o.apps*folders*files, o.commits),
		write: func(s *stream) {
			s.commit("everything")
			for a := range o.apps {
				for f := range folders {
					for n := range files {
						s.file(name(a, f, n), s.config("VirtualService", app(a), n))
					}
				}
			}
			for c := 1; c < o.commits; c++ {
				s.commit(fmt.Sprint("change ", c))
				for range 3 {
					a, f, n := int(s.rand.Uint64()%uint64(o.apps)), int(s.rand.Uint64()%folders), 1+int(s.rand.Uint64()%(files-1))
					s.file(name(a, f, n), s.config("VirtualService", app(a), n))
				}
			}
		},
	}
}

// binaries has files of 4 and of 20 MB that nothing makes smaller, of which some are changed by ten commits, and 20 small ones beside them.
func binaries(o options) source {
	return source{
		name: "binaries", path: "mesh", what: fmt.Sprintf("%d MB of binary files, 11 commits", o.largeMB),
		write: func(s *stream) {
			noise := func(mb int) []byte {
				content := make([]byte, mb<<20)
				_, _ = s.rand.Read(content)
				return content
			}
			s.commit("everything")
			for n := range 20 {
				s.file(fmt.Sprintf("mesh/vs-%d.yaml", n), s.config("VirtualService", "mesh", n))
			}
			left := o.largeMB
			for n := 0; left > 0; n++ {
				size := min(left, 4)
				if n%4 == 3 {
					size = min(left, 20)
				}
				s.file(fmt.Sprintf("images/i-%03d.bin", n), noise(size))
				left -= size
			}
			for c := range 10 {
				s.commit(fmt.Sprint("change ", c))
				s.file("images/i-000.bin", noise(4))
				s.file(fmt.Sprintf("mesh/vs-%d.yaml", c), s.config("VirtualService", "mesh", c))
			}
		},
	}
}

// make the repository below root, as a server has it: one pack, with a bitmap and a commit graph, and blobs handed out by their ids and by filters, as GitHub, GitLab and Gitea do.
func (r source) make(ctx context.Context, root string) error {
	repo, err := gitserver.InitRepo(ctx, root+"/"+r.name+".git")
	if err != nil {
		return err
	}
	in, out := io.Pipe()
	go func() {
		s := &stream{w: bufio.NewWriterSize(out, 1<<20), rand: rand.NewChaCha8([32]byte{1})}
		r.write(s)
		_ = out.CloseWithError(s.w.Flush())
	}()
	cmd := exec.CommandContext(ctx, "git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = repo.Dir, in
	text, err := cmd.CombinedOutput()
	_ = in.Close()
	if err != nil {
		return fmt.Errorf("git fast-import: %w: %s", err, text)
	}
	for _, args := range [][]string{
		{"config", "uploadpack.allowFilter", "true"},
		{"config", "uploadpack.allowAnySHA1InWant", "true"},
		{"config", "core.bigFileThreshold", "2m"}, // nobody looks for deltas between images
		{"repack", "-a", "-d", "-q", "--write-bitmap-index"},
		{"commit-graph", "write", "--reachable"},
	} {
		if _, err := repo.Git(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}
