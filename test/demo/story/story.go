// Package story is Mooring's main job, told in steps over examples/shop: what a user types, and what the cluster answers.
//
// The demo prints the steps, the end-to-end tests run the same ones. Each step asserts what it says, and waits for what takes
// a moment no longer than a deadline; an error says what was expected and what is there instead. The lines are what
// a user would type: they run in a shell, in a clone of the repository.
package story

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/world"
)

// patience is how long a step waits for what takes a second or two on an idle machine.
const patience = 90 * time.Second

// Narrator is where the story is told.
type Narrator interface {
	// Say explains what comes next.
	Say(text string)
	// Show gives a line that was typed and what it printed.
	Show(line, output string)
}

// Step is one thing that a user does, and what becomes of it.
type Step struct {
	Title string
	Run   func(ctx context.Context) error
}

// Story is told in one world, once.
type Story struct {
	world *world.World
	tell  Narrator
	// url of the repository as the agent reads it, and the Secret for it; nil when it needs none.
	url    string
	secret map[string]string
	clone  string
}

// Options of a story.
type Options struct {
	// URL under which the agent reads the repository; the world's own server over http when empty.
	URL string
	// Secret holds what the agent needs to read it: the keys of the Secret. Nil when it needs none.
	Secret map[string]string
}

// RepoName is the folder of the bare repository below the root of the world's Git server.
const RepoName = "mesh.git"

// Namespace of the Moorings.
const Namespace = "moorings"

// New makes the bare repository out of examples/shop. The world needs an agent by the time that the first step runs.
func New(ctx context.Context, w *world.World, tell Narrator, o Options) (*Story, error) {
	s := &Story{world: w, tell: tell, url: o.URL, secret: o.Secret, clone: filepath.Join(w.Dir, "mesh")}
	if s.url == "" {
		s.url = w.Git.RepoURL(RepoName)
	}
	root, err := world.Root(ctx)
	if err != nil {
		return nil, err
	}
	files, err := gitserver.FilesOf(filepath.Join(root, "examples", "shop"))
	if err != nil {
		return nil, err
	}
	repo, err := gitserver.InitRepo(ctx, filepath.Join(w.Git.Root, RepoName))
	if err != nil {
		return nil, err
	}
	if err := repo.Config(ctx, "uploadpack.allowFilter", "true"); err != nil { // as forges have it
		return nil, err
	}
	_, err = repo.Commit(ctx, gitserver.Change{Message: "A shop in a mesh", Author: "Mooring demo <demo@mooring.invalid>", Files: files})
	return s, err
}

// Clone is the folder of the clone that the story works in, after its first step.
func (s *Story) Clone() string { return s.clone }

// Steps of the story, in order; each needs those before it.
func (s *Story) Steps() []Step {
	return []Step{
		{"First sync: one repository, three environments", s.firstSync},
		{"A commit moves the canary", s.canary},
		{"Somebody edits a route with kubectl", s.drift},
		{"Look before you leap: the plan of a commit", s.preview},
		{"A file is removed", s.prune},
		{"A broken commit", s.broken},
		{"An emptied path", s.emptied},
		{"From staging to prod", s.promotion},
		{"Back, and forward again", s.rollback},
	}
}

// Describe writes all that is known about the Moorings, for the message of a failure.
func (s *Story) Describe(ctx context.Context) string {
	var b strings.Builder
	for _, name := range []string{"shop-dev", "shop-staging", "shop-prod"} {
		b.WriteString(s.world.Describe(ctx, key(name)))
	}
	return b.String()
}

func key(name string) world.Key { return world.Key{Namespace: Namespace, Name: name} }

// shell runs a line in the clone and wants an exit code. What is printed has to hold the wants.
func (s *Story) shell(ctx context.Context, code int, line string, wants ...string) (string, error) {
	dir := s.clone
	if strings.HasPrefix(line, "git clone") {
		dir = filepath.Dir(s.clone)
	}
	out, err := s.world.Shell(ctx, dir, line)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		return out, err
	}
	if got != code {
		return out, fmt.Errorf("$ %s\nexpected exit code %d, got %d:\n%s", line, code, got, out)
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			return out, fmt.Errorf("$ %s\nexpected %q in what it prints, but it printed:\n%s", line, want, out)
		}
	}
	return out, nil
}

// run shows a line that succeeds.
func (s *Story) run(ctx context.Context, line string, wants ...string) error {
	return s.exits(ctx, 0, line, wants...)
}

// exits shows a line that ends with an exit code.
func (s *Story) exits(ctx context.Context, code int, line string, wants ...string) error {
	out, err := s.shell(ctx, code, line, wants...)
	if err != nil {
		return err
	}
	s.tell.Show(line, out)
	return nil
}

// becomes repeats a line until it prints what is wanted, then shows it.
func (s *Story) becomes(ctx context.Context, line string, wants ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	var out string
	err := poll.Until(ctx, "it is as expected", func() (err error) {
		out, err = s.shell(ctx, 0, line, wants...)
		return err
	})
	if err != nil {
		return err
	}
	s.tell.Show(line, out)
	return nil
}

// inForce waits until these Moorings have applied the newest commit of the clone.
func (s *Story) inForce(ctx context.Context, names ...string) error {
	head, err := s.shell(ctx, 0, "git rev-parse HEAD")
	if err != nil {
		return err
	}
	return s.until(ctx, "commit "+head+" is in force", world.InForce(head), names...)
}

func (s *Story) until(ctx context.Context, what string, right func(*v1alpha1.Mooring) error, names ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	for _, name := range names {
		if _, err := s.world.Until(ctx, key(name), what, right); err != nil {
			return err
		}
	}
	return nil
}

// steps runs lines and waits one after the other, up to the first error.
func steps(all ...func() error) error {
	for _, step := range all {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
