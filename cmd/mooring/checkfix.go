package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/legacy"
)

// fixes are what --fix wrote, and what it left to a human, in one file after the other.
type fixes struct {
	// Files that were rewritten, as findings name them.
	files      []string
	done, left []fixed
}

// fixed is one change, and the file that it is in.
type fixed struct {
	file string
	legacy.Done
}

// fix rewrites the files of an input where the translation is exact. A folder that cannot be rendered, perhaps for the very fault that is to be mended, has the YAML files in it rewritten.
func (x *fixes) fix(ctx context.Context, in *checkInput, r *render.Renderer) error {
	if in.disk != "" {
		root, err := os.OpenRoot(filepath.Dir(in.disk))
		if err != nil {
			return fmt.Errorf("fix %s: %w", in.name, cause(err))
		}
		err = x.file(root, filepath.Base(in.disk), in.called)
		_ = root.Close() // it was opened to find a file
		return err
	}
	names, err := in.yamlFiles(ctx, r)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := x.file(in.tree.root, name, name); err != nil {
			return err
		}
	}
	return nil
}

// yamlFiles are those that a render reads, from the root of the repository.
func (in *checkInput) yamlFiles(ctx context.Context, r *render.Renderer) ([]string, error) {
	var names []string
	set, err := r.Render(ctx, in.files, in.folder)
	if err == nil {
		for _, f := range set.Files {
			if isYAML(f.Path) {
				names = append(names, f.Path)
			}
		}
		return names, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	err = fs.WalkDir(in.files, in.folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && isYAML(name) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fix %s: %w", in.name, err)
	}
	return names, nil
}

func isYAML(name string) bool {
	return path.Ext(name) == ".yaml" || path.Ext(name) == ".yml"
}

// file rewrites one file below a root, which nothing leads out of. What is no regular file, such as a symbolic link, is left alone: the file that it leads to is found by its own name.
func (x *fixes) file(root *os.Root, name, called string) error {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > render.DefaultLimits().FileBytes {
		return nil // the render says what is wrong with a file that cannot be read
	}
	data, err := root.ReadFile(name)
	if err != nil {
		return fmt.Errorf("fix %s: %w", called, cause(err))
	}
	out, done, left, err := legacy.Rewrite(data)
	if err != nil {
		return nil // the render says where a file is no YAML
	}
	for _, d := range left {
		x.left = append(x.left, fixed{called, d})
	}
	if len(done) == 0 {
		return nil
	}
	if err := replaceFile(root, name, out, info.Mode().Perm()); err != nil {
		return withHint(fmt.Errorf("fix %s: %w", called, cause(err)), "nothing of it was changed; what was rewritten before stays so")
	}
	x.files = append(x.files, called)
	for _, d := range done {
		x.done = append(x.done, fixed{called, d})
	}
	return nil
}

// replaceFile puts a file in place of another at once: whoever reads it meanwhile sees the one or the other.
func replaceFile(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	if mode&0o200 == 0 {
		return fs.ErrPermission // a rename would not ask
	}
	beside := path.Join(path.Dir(name), ".mooring-fix-"+path.Base(name))
	_ = root.Remove(beside) // of a run that was ended half-way; mostly there is none
	f, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode) // the umask had its say when the file was made
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		_ = root.Remove(beside) // the first error is the one to tell
	}
	return err
}

// write says what was done, for people; no check follows where not all could be done.
func (x *fixes) write(w io.Writer, color palette, checks bool) error {
	var b strings.Builder
	file := ""
	headline := func(f fixed) {
		if f.file != file {
			file = f.file
			b.WriteString(color.bold(visible(file)) + "\n")
		}
	}
	for _, f := range x.done {
		headline(f)
		fmt.Fprintf(&b, "  line %d: %s %s: %s\n    %s\n", f.Line, color.green("fixed"), visible(f.Object), visible(f.Path), color.dim(visible(f.Message+"; "+f.Mend)))
	}
	file = ""
	for _, f := range x.left {
		headline(f)
		fmt.Fprintf(&b, "  line %d: left %s: %s\n    %s\n    %s\n", f.Line, visible(f.Object), visible(f.Path), visible(f.Message+"; "+f.Mend),
			color.dim("not rewritten: "+visible(f.Why)))
	}
	switch {
	case len(x.done)+len(x.left) == 0:
		b.WriteString("nothing to fix\n\n")
	case len(x.done) == 0:
		fmt.Fprintf(&b, "nothing rewritten; %s left\n\n", plural(len(x.left), "change"))
	case !checks:
		fmt.Fprintf(&b, "%s rewritten in %s before it failed\n\n", plural(len(x.done), "change"), plural(len(x.files), "file"))
	default:
		fmt.Fprintf(&b, "%s rewritten in %s, %d left; a fresh check says:\n\n", plural(len(x.done), "change"), plural(len(x.files), "file"), len(x.left))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
