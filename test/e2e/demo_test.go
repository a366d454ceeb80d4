package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/test/demo/story"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/world"
)

// TestDemoOverHTTP is every step of the demo, with the repository served by git http-backend.
func TestDemoOverHTTP(t *testing.T) {
	tellStory(t, func(*world.World) story.Options { return story.Options{} })
}

// TestDemoOverSSH is every step of the demo, with the repository served by sshd to the holder of a key.
func TestDemoOverSSH(t *testing.T) {
	tellStory(t, func(w *world.World) story.Options {
		server := gitserver.SSH(t, gitserver.SSHOptions{Root: w.Git.Root})
		return story.Options{
			URL:    server.RepoURL(story.RepoName),
			Secret: map[string]string{"identity": string(server.Identity()), "known_hosts": string(server.KnownHosts())},
		}
	})
}

// tellStory runs the steps in a world of their own, because they use the same namespaces.
func tellStory(t *testing.T, options func(*world.World) story.Options) {
	t.Parallel()
	binaries, err := stage.binaries()
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Start(t.Context(), binaries)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	agent := startAgent(t, w, world.AgentOptions{})
	s, err := story.New(t.Context(), w, teller{t}, options(w))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range s.Steps() {
		if !t.Run(step.Title, func(t *testing.T) {
			if err := step.Run(within(t, 3*time.Minute)); err != nil {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
				defer cancel()
				t.Fatalf("%v\n%s\n%s", err, s.Describe(ctx), agent.LogTail(30))
			}
		}) {
			return // the steps after it need it
		}
	}
	if err := agent.Stop(); err != nil {
		t.Error(err)
	}
}

// teller tells the story to the log of a test.
type teller struct{ t *testing.T }

func (n teller) Say(text string)          { n.t.Log(text) }
func (n teller) Show(line, output string) { n.t.Logf("$ %s\n%s", line, output) }
