package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// worktreeHelp tells how a PATH is read; render and check share it.
const worktreeHelp = `PATH is a folder of a work tree, as it is on disk, committed or not. Nothing outside of its
repository is read: the root is the nearest folder above PATH that has a .git, and can be
named with --root. Without either, the current folder is the root when PATH is in it, and
PATH itself otherwise. Files are named from the root.`

// worktree is a folder to render and the repository that it is in.
type worktree struct {
	root *os.Root
	// path of the folder, relative to the root, with forward slashes.
	path string
	// guessed means that nothing said where the root is.
	guessed bool
}

// openWorktree finds the repository of a folder. An empty rootFlag means that the .git decides.
func openWorktree(path, rootFlag string) (*worktree, error) {
	dir, err := realPath(path)
	if err != nil {
		return nil, err
	}
	top, guessed, err := topOf(dir, rootFlag)
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, withHint(fmt.Errorf("read %s: it is not below the root %s", path, top), "name the folder that holds both with --root")
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, fmt.Errorf("open the root of the repository: %w", err)
	}
	return &worktree{root: root, path: filepath.ToSlash(rel), guessed: guessed}, nil
}

// topOf gives the root of the repository that dir is in.
func topOf(dir, rootFlag string) (top string, guessed bool, err error) {
	if rootFlag != "" {
		top, err = realPath(rootFlag)
		return top, false, err
	}
	for above := dir; ; above = filepath.Dir(above) {
		// A .git is a folder in a clone, and a file in a linked work tree and in a submodule.
		if _, err := os.Lstat(filepath.Join(above, ".git")); err == nil {
			return above, false, nil
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	here, err := realPath(".")
	if err != nil {
		return "", false, err
	}
	if rel, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(rel) {
		return here, true, nil
	}
	return dir, true, nil
}

// realPath is absolute and free of symbolic links, so that one path can be compared with another.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", withHint(fmt.Errorf("read %s: %w", path, cause(err)), "PATH is a folder, seen from where you are: %s", abs)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, cause(err))
	}
	if !info.IsDir() {
		return "", withHint(fmt.Errorf("read %s: it is a file", path), "name the folder that it is in: %s", filepath.Dir(path))
	}
	return real, nil
}

// cause takes verb and path off an error of the file system, where the message has its own.
func cause(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}

// explain adds to an error of a render what a guessed root may have to do with it.
func (w *worktree) explain(err error) error {
	if !w.guessed {
		return err
	}
	return withHint(err, "there is no .git above the path, so %s was taken for the root of the repository and nothing above it was read; name another with --root", w.root.Name())
}

// completeFolders lets the shell offer folders, for the only argument.
func completeFolders(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// plural writes a number and its noun.
func plural(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case strings.HasSuffix(noun, "y"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(noun, "y"))
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
