package gitserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// DefaultBranch of the repositories that this package makes.
const DefaultBranch = "main"

// Repo is a bare repository on disk, changed with the git command alone.
type Repo struct {
	// Dir of the bare repository.
	Dir string
}

// Change is one commit.
type Change struct {
	// Branch that gets the commit; DefaultBranch when empty. A branch that does not exist begins here.
	Branch string
	// From is what a new branch begins with: a branch, tag or commit; nothing when empty.
	From string
	// Message of the commit; "change" when empty.
	Message string
	// Author as "Name <mail>"; a fixed one when empty.
	Author string
	// Time of the commit; now when zero.
	Time time.Time
	// Files to write: path to content.
	Files map[string]string
	// Links to write: path to the target of a symbolic link.
	Links map[string]string
	// Submodules to write: path to a commit id.
	Submodules map[string]string
	// Remove lists files and folders that go.
	Remove []string
	// Replace empties the tree before anything is written.
	Replace bool
	// Amend replaces the branch's last commit instead of following it.
	Amend bool
}

// InitRepo makes a bare repository in dir.
func InitRepo(ctx context.Context, dir string) (*Repo, error) {
	r := &Repo{Dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make repository: %w", err)
	}
	if _, err := r.Git(ctx, "init", "--quiet", "--bare", "--initial-branch="+DefaultBranch, "."); err != nil {
		return nil, err
	}
	return r, nil
}

// FilesOf reads a folder into the form that Change.Files wants. Symbolic links and a .git folder are left out.
func FilesOf(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = string(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", dir, err)
	}
	return files, nil
}

// Commit makes one commit and returns its id.
func (r *Repo) Commit(ctx context.Context, c Change) (string, error) {
	branch := "refs/heads/" + cmp.Or(c.Branch, DefaultBranch)
	parent, tree, err := r.base(ctx, branch, c)
	if err != nil {
		return "", err
	}
	author := cmp.Or(c.Author, "Git Server <gitserver@example.com>")
	at := c.Time
	if at.IsZero() {
		at = time.Now()
	}
	stamp := fmt.Sprintf("%s %d +0000", author, at.Unix())
	message := cmp.Or(c.Message, "change")

	var in bytes.Buffer
	fmt.Fprintf(&in, "commit %s\nauthor %s\ncommitter %s\ndata %d\n%s\n", branch, stamp, stamp, len(message), message)
	if parent != "" {
		fmt.Fprintf(&in, "from %s\n", parent)
	}
	if tree != "" {
		fmt.Fprintf(&in, "M 040000 %s \"\"\n", tree)
	}
	writeTree(&in, c)
	if _, err := r.run(ctx, &in, "fast-import", "--quiet", "--force"); err != nil {
		return "", err
	}
	return r.Resolve(ctx, branch)
}

// base finds what the commit follows, and the tree to begin with where that is not the parent's.
func (r *Repo) base(ctx context.Context, branch string, c Change) (parent, tree string, err error) {
	tip, tipErr := r.Resolve(ctx, branch)
	switch {
	case tipErr == nil && c.Amend:
		parent, _ = r.Resolve(ctx, tip+"^") // the first commit of a branch has none
		tree, err = r.Git(ctx, "rev-parse", "--verify", tip+"^{tree}")
		return parent, tree, err
	case tipErr == nil:
		return tip, "", nil
	case c.Amend:
		return "", "", fmt.Errorf("amend %s: %w", branch, tipErr)
	case c.From != "":
		parent, err = r.Resolve(ctx, c.From)
		return parent, "", err
	}
	return "", "", nil
}

// writeTree writes what the commit changes, in fast-import's language.
func writeTree(in *bytes.Buffer, c Change) {
	if c.Replace {
		in.WriteString("deleteall\n")
	}
	for _, path := range c.Remove {
		fmt.Fprintf(in, "D %s\n", quotePath(path))
	}
	inline := func(mode string, content map[string]string) {
		for _, path := range slices.Sorted(maps.Keys(content)) {
			fmt.Fprintf(in, "M %s inline %s\ndata %d\n%s\n", mode, quotePath(path), len(content[path]), content[path])
		}
	}
	inline("100644", c.Files)
	inline("120000", c.Links)
	for _, path := range slices.Sorted(maps.Keys(c.Submodules)) {
		fmt.Fprintf(in, "M 160000 %s %s\n", c.Submodules[path], quotePath(path))
	}
	in.WriteString("\n")
}

func quotePath(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}

// SetBranch lets a branch point at any commit, forwards or backwards, as a forced push does.
func (r *Repo) SetBranch(ctx context.Context, name, to string) error {
	return r.SetRef(ctx, "refs/heads/"+name, to)
}

// SetRef lets a ref with a full name, such as refs/pull/7/head, point at a commit.
func (r *Repo) SetRef(ctx context.Context, name, to string) error {
	_, err := r.Git(ctx, "update-ref", name, to)
	return err
}

// Tag makes or moves a tag; an annotated one when there is a message.
func (r *Repo) Tag(ctx context.Context, name, at, message string) error {
	args := []string{"-c", "user.name=Git Server", "-c", "user.email=gitserver@example.com", "tag", "--force"}
	if message != "" {
		args = append(args, "--annotate", "--message", message)
	}
	_, err := r.Git(ctx, append(args, name, at)...)
	return err
}

// Delete removes a ref by its full name.
func (r *Repo) Delete(ctx context.Context, name string) error {
	_, err := r.Git(ctx, "update-ref", "-d", name)
	return err
}

// Resolve gives the commit that a branch, tag or id stands for.
func (r *Repo) Resolve(ctx context.Context, name string) (string, error) {
	return r.Git(ctx, "rev-parse", "--verify", "--quiet", name+"^{commit}")
}

// Config sets one key of the repository's configuration, such as uploadpack.allowFilter.
func (r *Repo) Config(ctx context.Context, key, value string) error {
	_, err := r.Git(ctx, "config", key, value)
	return err
}

// Git runs any git command in the repository and returns what it printed, without the spaces around it.
func (r *Repo) Git(ctx context.Context, args ...string) (string, error) {
	return r.run(ctx, nil, args...)
}

// GitInput is Git with something on standard input.
func (r *Repo) GitInput(ctx context.Context, input string, args ...string) (string, error) {
	return r.run(ctx, bytes.NewBufferString(input), args...)
}

func (r *Repo) run(ctx context.Context, in *bytes.Buffer, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.Dir
	cmd.Env = gitEnv()
	if in != nil {
		cmd.Stdin = in
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return "", fmt.Errorf("run git: %w (install it: apt-get install git)", err)
		}
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
