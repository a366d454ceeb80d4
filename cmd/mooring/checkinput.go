package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing/fstest"

	"github.com/mooring-dev/mooring/render"
)

// checkInput is one thing to check: a folder of a work tree, a file, or standard input.
type checkInput struct {
	// name as the user wrote it.
	name string
	// tree is the work tree of a folder; nil for what is no folder.
	tree *worktree
	// files hold what is rendered, and the folder in them is what it begins with.
	files  fs.FS
	folder string
	// above is the way from the root of the repository to where the names of the files begin; empty when they begin there.
	above string
	// disk is the path of a file that was named by itself, and called what findings call it; empty for a folder and for standard input.
	disk, called string

	set *render.Set
	// lines of the files that were asked for.
	lines map[string][]string
	// secret are the lines that hold Secrets, by file.
	secret map[string][]lineRange
}

// standardInput is what findings call it.
const standardInput = "<stdin>"

// openFolder is a PATH of the command line.
func openFolder(name, root string) (*checkInput, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return nil, withHint(fmt.Errorf("read %s: it is a file", name), "a file is checked with -f %s, the folder that it is in with mooring check %s", name, filepath.Dir(name))
	}
	tree, err := openWorktree(name, root)
	if err != nil {
		return nil, err
	}
	return &checkInput{name: name, tree: tree, files: tree.root.FS(), folder: tree.path}, nil
}

// openFile is a FILE of the command line.
func (c *cli) openFile(name string) (*checkInput, error) {
	if name == "-" {
		content, err := readLimited(c.in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return oneFile("standard input", standardInput, "", content), nil
	}
	if slices.Contains([]string{"kustomization.yaml", "kustomization.yml", "Kustomization"}, filepath.Base(name)) {
		return nil, withHint(fmt.Errorf("read %s: a kustomization means nothing without the files beside it", name), "check its folder: mooring check %s", filepath.Dir(name))
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, withHint(fmt.Errorf("read %s: %w", name, cause(err)), "FILE is one file of YAML, seen from where you are, or - for standard input")
	}
	if info.IsDir() {
		return nil, withHint(fmt.Errorf("read %s: it is a folder", name), "a folder is checked without -f: mooring check %s", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	content, err := readLimited(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, cause(err))
	}
	called, above := callFile(name)
	in := oneFile(name, called, above, content)
	in.disk, in.called = name, called
	return in, nil
}

// readLimited reads no more than what a render takes, and one byte by which the render sees that it is too much.
func readLimited(r io.Reader) ([]byte, error) {
	return io.ReadAll(io.LimitReader(r, render.DefaultLimits().FileBytes+1))
}

// callFile is what findings call a file: as it was typed, or from the root of its repository when it is not below the current folder.
func callFile(name string) (called, above string) {
	dir, err := realPath(filepath.Dir(name))
	if err != nil {
		return filepath.Base(name), ""
	}
	top, _, err := topOf(dir, "")
	if err != nil {
		return filepath.Base(name), ""
	}
	here, err := realPath(".")
	if typed := filepath.Clean(name); err == nil && filepath.IsLocal(typed) {
		if rel, err := filepath.Rel(top, here); err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(typed), filepath.ToSlash(rel)
		}
	}
	rel, err := filepath.Rel(top, filepath.Join(dir, filepath.Base(name)))
	if err != nil {
		return filepath.Base(name), ""
	}
	return filepath.ToSlash(rel), ""
}

// oneFile is a folder of plain YAML with one file in it. The folder has a symbolic link that ends as YAML does, since a file that a user names is read whatever it is
// called, and findings name what a link leads to.
func oneFile(name, called, above string, content []byte) *checkInput {
	const folder = ".file"
	files := fstest.MapFS{
		called:              {Data: content, Mode: 0o444},
		folder + "/it.yaml": {Data: []byte("../" + called), Mode: fs.ModeSymlink | 0o777},
	}
	return &checkInput{name: name, files: files, folder: folder, above: above}
}

// render the objects.
func (in *checkInput) render(ctx context.Context, r *render.Renderer) error {
	set, err := r.Render(ctx, in.files, in.folder)
	if err != nil {
		err = renderError(in.name, err)
		if in.tree != nil {
			err = in.tree.explain(err)
		}
		return err
	}
	in.set = set
	in.secret = secretLines(set)
	return nil
}

func (in *checkInput) close() {
	if in.tree != nil {
		_ = in.tree.root.Close() // it was opened for reading only
	}
}

// line of a file, counted from 1. False when it cannot be shown: it is not there, or a Secret is in it.
func (in *checkInput) line(at render.Origin) (string, bool) {
	if at.File == "" || at.Line < 1 || slices.ContainsFunc(in.secret[at.File], func(r lineRange) bool { return r.has(at.Line) }) {
		return "", false
	}
	lines, read := in.lines[at.File]
	if !read {
		content, err := fs.ReadFile(in.files, at.File)
		if err == nil {
			lines = strings.Split(string(bytes.TrimPrefix(content, []byte("\ufeff"))), "\n")
		}
		if in.lines == nil {
			in.lines = map[string][]string{}
		}
		in.lines[at.File] = lines
	}
	if at.Line > len(lines) {
		return "", false
	}
	line := strings.TrimSuffix(lines[at.Line-1], "\r")
	return line, strings.TrimSpace(line) != ""
}

// fromRoot names a file from the root of its repository.
func (in *checkInput) fromRoot(file string) string {
	if file == "" {
		return ""
	}
	return path.Join(in.above, file)
}

// lineRange is lines of a file, both ends included; an end of 0 is the end of the file.
type lineRange struct{ from, to int }

func (r lineRange) has(line int) bool {
	return line >= r.from && (r.to == 0 || line <= r.to)
}

// secretLines are the lines of documents that are Secrets, up to where the next object of the file begins. They are not shown, whatever is found there.
func secretLines(set *render.Set) map[string][]lineRange {
	begins := map[string][]int{}
	for _, o := range set.Objects {
		begins[o.Origin.File] = append(begins[o.Origin.File], o.Origin.Line)
	}
	secret := map[string][]lineRange{}
	for _, o := range set.Objects {
		if o.GetKind() != "Secret" || o.Origin.File == "" {
			continue
		}
		r := lineRange{from: o.Origin.Line}
		for _, line := range begins[o.Origin.File] {
			if line > r.from && (r.to == 0 || line-1 < r.to) {
				r.to = line - 1
			}
		}
		secret[o.Origin.File] = append(secret[o.Origin.File], r)
	}
	return secret
}
