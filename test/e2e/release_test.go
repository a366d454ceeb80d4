package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/signer"
	"github.com/mooring-dev/mooring/test/world"
)

// TestSignedReleases follows a range of versions, of which each is taken up by its own signatures: those of tag and commit, then that of the tag alone.
func TestSignedReleases(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	jane := signer.NewSSH(t, "ed25519")
	s.keys(map[string][]byte{"jane.pub": []byte(jane.Public)})
	public, _, _, _, err := cryptossh.ParseAuthorizedKey([]byte(jane.Public))
	if err != nil {
		t.Fatal(err)
	}
	key := cryptossh.FingerprintSHA256(public)
	sign := func(raw []byte) []byte { return jane.Sign(raw) }
	release := func(name, commit string) {
		raw := []byte("object " + commit + "\ntype commit\ntag " + name + "\ntagger Jane <jane@example.com> 1772366400 +0000\n\nrelease\n")
		s.repo.SetRef("refs/tags/"+name, s.repo.GitInput(string(signer.Tag(raw, sign(raw))), "hash-object", "-t", "tag", "-w", "--stdin"))
	}
	first := s.signed(s.head(), sign)
	release("v1.0.0", first)
	u := s.mooring("prod", these(verified(v1alpha1.VerifyTagAndHead), func(m *mooring) { m.Spec.Source.Ref = v1alpha1.Ref{Semver: "1.x"} }))
	u.inForce(first)

	second := s.commit(some("a=2"))
	release("v1.1.0", second)
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed, "v1.1.0@sha1:"+second+" is not taken up", "it has no signature", first+" stays in force")
	s.tamper("a", "by-hand")
	s.becomes("a=1")
	u.edit(func(m *mooring) { m.Spec.Source.Verify.Mode = v1alpha1.VerifyTag })
	u.inForce(second)
	s.want("a=2")
	m, err := w.Mooring(t.Context(), u.Key)
	if err != nil {
		t.Fatal(err)
	}
	if by := m.Status.History[0].SignedBy; lacks(by, []string{key}) != "" {
		t.Errorf("history says that %q signed, want %s", by, key)
	}
	s.mustShell("mooring history prod -n NS -o wide", "SIGNED BY", key)

	third := s.commit(some("a=3"))
	s.repo.Tag("v1.2.0", third, "by nobody")
	ready(t, u.sync(), metav1.ConditionFalse, v1alpha1.ReasonVerificationFailed, "v1.2.0@sha1:"+third+" is not taken up", second+" stays in force")
	release("v1.2.1", third)
	if m := u.sync(); m.Status.LastAppliedRevision != "v1.2.1@sha1:"+third {
		t.Errorf("revision is %s, want v1.2.1@sha1:%s", m.Status.LastAppliedRevision, third)
	}
	s.want("a=3")
}

// TestAgentKilledInTheMiddleOfAFetch ends an agent while a pack comes in. The next one, with the same store, has the commit all the same.
func TestAgentKilledInTheMiddleOfAFetch(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{})
	s := newSite(t, w, some("a=1"))
	server := gitserver.HTTP(t, gitserver.HTTPOptions{Root: w.Git.Root})
	u := s.mooring("prod", func(m *mooring) { m.Spec.Source.URL = server.RepoURL(s.ns + ".git") })
	u.inForce(s.head())

	more := some("a=2")
	for i := range 200 {
		more[fmt.Sprintf("more/%d.txt", i)] = strings.Repeat(fmt.Sprint(i), 200)
	}
	newest := s.commit(more)
	before := server.Counts("").UploadPack
	if err := server.Inject(gitserver.Fault{On: "git-upload-pack", Stall: true, StallAfter: 900}); err != nil {
		t.Fatal(err)
	}
	s.mustShell("kubectl annotate mooring prod -n NS mooring.dev/reconcile=now")
	eventually(t, "the pack comes in", func() error {
		if n := server.Counts("").UploadPack; n == before {
			return fmt.Errorf("%d packs were asked for", n)
		}
		return nil
	})
	agent.Kill()
	if err := server.Heal(); err != nil {
		t.Fatal(err)
	}
	startAgent(t, w, world.AgentOptions{})
	u.inForce(newest)
	s.want("a=2")
}
