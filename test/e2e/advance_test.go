package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/world"
)

// branches is a site whose environments have branches of their own, served by sshd to the holder of a key.
type branches struct {
	*site
	url string
}

// newBranches makes one with the branches of staging and prod at the first commit of main.
func newBranches(t *testing.T, w *world.World, content files) *branches {
	t.Helper()
	s := newSite(t, w, content)
	server := gitserver.SSH(t, gitserver.SSHOptions{Root: w.Git.Root})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "git"}, Data: map[string][]byte{
		"identity": server.Identity(), "known_hosts": server.KnownHosts(),
	}}
	if err := w.Client().Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	for _, env := range []string{"staging", "prod"} {
		s.repo.SetBranch("env/"+env, s.head())
	}
	return &branches{site: s, url: server.RepoURL(s.ns + ".git")}
}

// env makes the Mooring of an environment; one that follows another has a branch of its own, which the agent moves.
func (b *branches) env(name, from string, change func(*mooring)) *unit {
	return b.mooring(name, func(m *mooring) {
		m.Spec.Source.URL, m.Spec.Source.SecretRef = b.url, &v1alpha1.LocalReference{Name: "git"}
		m.Spec.Path = "overlays/" + name
		if from != "" {
			m.Spec.Source.Ref.Branch = "env/" + name
			follows(from, time.Second)(m)
			m.Spec.Promotion.Mode, m.Spec.Promotion.SecretRef = v1alpha1.PromotionFastForward, &v1alpha1.LocalReference{Name: "git"}
		}
		if change != nil {
			change(m)
		}
	})
}

// hook of the repository's server side. It runs once.
func (b *branches) hook(name, script string) {
	b.t.Helper()
	dir := strings.TrimSpace(b.repo.Git("rev-parse", "--git-dir"))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(b.w.Git.Root, b.ns+".git", dir)
	}
	text := fmt.Sprintf("#!/bin/sh\nset -e\nrm -- \"$0\"\n%s\n", script)
	if err := os.MkdirAll(filepath.Join(dir, "hooks"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hooks", name), []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
}

// TestFastForwardFromDevToProd takes a commit along the branches.
func TestFastForwardFromDevToProd(t *testing.T) {
	w := shared(t)
	b := newBranches(t, w.World, overlays("1"))
	dev := b.env("dev", "", nil)
	staging := b.env("staging", "dev", nil)
	prod := b.env("prod", "staging", nil)
	first := b.head()
	prod.inForce(first)
	second := b.commit(overlays("2"))
	dev.inForceAfterSync(second)
	staging.inForce(second)
	m := prod.inForce(second)
	b.want("dev=2 prod=2 staging=2")
	if h := m.Status.History[0]; h.By != "promotion" || h.Revision != "env/prod@sha1:"+second {
		t.Errorf("history says %+v", h)
	}
	for _, env := range []string{"env/staging", "env/prod"} {
		if got := b.repo.Resolve(env); got != second {
			t.Errorf("%s is at %s, want %s", env, got, second)
		}
	}
	b.repo.Git("fsck", "--strict")
}

// TestFastForwardMakesTheBranchOfANewEnvironment has none for prod yet.
func TestFastForwardMakesTheBranchOfANewEnvironment(t *testing.T) {
	w := shared(t)
	b := newBranches(t, w.World, overlays("1"))
	b.repo.Delete("refs/heads/env/prod")
	b.env("dev", "", nil)
	b.env("prod", "dev", every(2*time.Second)).inForce(b.head())
}

// TestDivergedBranchIsLeftAlone has a commit in prod that nobody else has. What prod's branch has is in force, and nothing is pushed over it.
func TestDivergedBranchIsLeftAlone(t *testing.T) {
	w := shared(t)
	b := newBranches(t, w.World, overlays("1"))
	own := b.repo.Commit(gitserver.Change{Branch: "env/prod", Files: b.fill(under("overlays/prod", some("prod=hotfix")))})
	second := b.commit(overlays("2"))
	b.env("staging", "", nil).inForce(second)
	prod := b.env("prod", "staging", nil)
	m := prod.until("it is told of", promoted(v1alpha1.ReasonDiverged, second, `branch "env/prod" has commits`, "nothing is ever pushed by force", `merge "env/prod"`))
	ready(t, m, metav1.ConditionTrue, v1alpha1.ReasonApplied, own)
	b.want("prod=hotfix staging=2")
	prod.event(v1alpha1.ReasonDiverged, second)

	// A person does what the message says.
	merged := strings.TrimSpace(b.repo.Git("-c", "user.name=A", "-c", "user.email=a@example.com", "commit-tree", second+"^{tree}", "-p", second, "-p", own, "-m", "merge env/prod"))
	b.repo.SetBranch(gitserver.DefaultBranch, merged)
	if _, err := b.w.Sync(t.Context(), world.Key{Namespace: b.ns, Name: "staging"}); err != nil {
		t.Fatal(err)
	}
	prod.inForce(merged)
	b.want("prod=2 staging=2")
}

// TestHumanIsQuickerThanTheAgent has a person's push reach the server in the very moment of the agent's. The person's stays.
func TestHumanIsQuickerThanTheAgent(t *testing.T) {
	w := shared(t)
	b := newBranches(t, w.World, overlays("1"))
	first := b.head()
	staging := b.env("staging", "", nil)
	prod := b.env("prod", "staging", nil)
	prod.inForce(first)
	second := b.commit(overlays("2"))
	theirs := b.repo.Commit(gitserver.Change{Branch: "theirs", From: second, Files: b.fill(under("overlays/prod", some("prod=theirs")))})
	b.hook("pre-receive", "env -u GIT_QUARANTINE_PATH git update-ref refs/heads/env/prod "+theirs)
	staging.inForceAfterSync(second)
	prod.inForce(theirs)
	prod.until("nothing waits: theirs has the commit", promoted(v1alpha1.ReasonUpToDate))
	if got := b.repo.Resolve("env/prod"); got != theirs {
		t.Errorf("env/prod is at %s, want the person's %s", got, theirs)
	}
	b.want("prod=theirs staging=2")
}

// TestProtectedBranchIsToldOf has a server that lets nobody push to prod's branch.
func TestProtectedBranchIsToldOf(t *testing.T) {
	w := shared(t)
	b := newBranches(t, w.World, overlays("1"))
	staging := b.env("staging", "", nil)
	prod := b.env("prod", "staging", nil)
	prod.inForce(b.head())
	second := b.commit(overlays("2"))
	b.hook("pre-receive", `echo "env/prod is for the release team" >&2; exit 1`)
	staging.inForceAfterSync(second)
	m := prod.until("it is told of", promoted(v1alpha1.ReasonPromotionFailed, "env/prod is for the release team", "let the user of this credential push to this branch"))
	ready(t, m, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	prod.event(v1alpha1.ReasonPromotionFailed)
	prod.inForceAfterSync(second) // the hook is gone
}

// TestAgentIsKilledBetweenPushAndStatus ends it by a hook of the server, when the branch has moved and nobody knows it yet.
func TestAgentIsKilledBetweenPushAndStatus(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{})
	b := newBranches(t, w, overlays("1"))
	staging := b.env("staging", "", nil)
	prod := b.env("prod", "staging", nil)
	prod.inForce(b.head())
	second := b.commit(overlays("2"))
	b.hook("post-receive", fmt.Sprintf("kill -9 %d", agent.PID()))
	if _, err := b.w.Ask(t.Context(), staging.Key); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the branch has moved", func() error {
		if got := b.repo.Resolve("env/prod"); got != second {
			return fmt.Errorf("it is at %s", got)
		}
		return nil
	})
	eventually(t, "the agent is dead", func() error {
		if agent.Ended() == nil {
			return fmt.Errorf("it lives")
		}
		return nil
	})
	if m, err := w.Mooring(t.Context(), prod.Key); err != nil || strings.HasSuffix(m.Status.LastAppliedRevision, second) {
		t.Fatalf("the commit is in force already: %v", err)
	}
	startAgent(t, w, world.AgentOptions{})
	m := prod.inForce(second)
	if h := m.Status.History[0]; h.By != "promotion" {
		t.Errorf("history says %+v", h)
	}
	b.want("prod=2 staging=2")
}
