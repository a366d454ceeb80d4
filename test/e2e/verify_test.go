package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/signer"
	"github.com/mooring-dev/mooring/test/world"
)

// verified asks for signatures by the keys of the Secret git-keys.
func verified(mode v1alpha1.VerifyMode) func(*mooring) {
	return func(m *mooring) {
		m.Spec.Source.Verify = &v1alpha1.Verify{Mode: mode, SecretRef: v1alpha1.LocalReference{Name: "git-keys"}}
	}
}

// says is a condition for until: a Ready reason, and a message with these parts.
func says(reason string, parts ...string) func(*mooring) error {
	return func(m *mooring) error {
		if err := world.HasReason(reason)(m); err != nil {
			return err
		}
		if missing := lacks(world.Ready(m).Message, parts); missing != "" {
			return fmt.Errorf("the message lacks %q: %s", missing, world.Ready(m).Message)
		}
		return nil
	}
}

// keys makes the Secret git-keys, or changes it to this.
func (s *site) keys(data map[string][]byte) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "git-keys"}, Data: data}
	err := s.w.Client().Create(s.t.Context(), secret)
	if err != nil {
		current := &corev1.Secret{}
		if err = s.w.Client().Get(s.t.Context(), client.ObjectKeyFromObject(secret), current); err == nil {
			current.Data = data
			err = s.w.Client().Update(s.t.Context(), current)
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// signed puts a signed form of a commit in its place.
func (s *site) signed(commit string, sign func([]byte) []byte) string {
	s.t.Helper()
	raw := []byte(s.repo.Git("cat-file", "commit", commit) + "\n")
	made := s.repo.GitInput(string(signer.Commit(raw, sign(raw))), "hash-object", "-t", "commit", "-w", "--stdin")
	s.repo.SetBranch("main", made)
	return made
}

// TestUnsignedCommitsAreRefused begins with a mesh whose commits nobody signs, and ends with one in which two people do.
func TestUnsignedCommitsAreRefused(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1 b=1"))
	gpg, ssh := signer.NewGPG(t), signer.NewSSH(t, "ed25519")
	jane := gpg.Key("Jane <jane@example.com>", "ed25519", "sign", "never", time.Time{})
	byJane := func(raw []byte) []byte { return gpg.Sign(raw, jane, time.Time{}) }
	byRosa := func(raw []byte) []byte { return ssh.Sign(raw) }

	u := s.mooring("prod", every(time.Second))
	first := s.head()
	u.inForce(first)

	// From now on signatures are wanted, and what is in force has none.
	s.keys(map[string][]byte{"jane.asc": gpg.Export(jane)})
	u.edit(verified(v1alpha1.VerifyHead))
	u.until("the unsigned commit is refused", world.HasReason(v1alpha1.ReasonVerificationFailed))
	s.tamper("a", "by-hand")
	s.becomes("a=1 b=1")

	unsigned := s.commit(some("a=2"))
	refusedFor := func(commit string, parts ...string) {
		t.Helper()
		u.until("commit "+commit+" is refused", func(m *mooring) error {
			return says(v1alpha1.ReasonVerificationFailed, append(parts, "main@sha1:"+commit+" is not taken up")...)(m)
		})
	}
	refusedFor(unsigned, "it has no signature", first+" stays in force")
	u.event(v1alpha1.ReasonVerificationFailed, unsigned, "it has no signature")
	s.tamper("b", "by-hand")
	s.becomes("a=1 b=1")

	byOne := s.signed(s.commit(some("a=3")), byJane)
	u.inForce(byOne)
	s.want("a=3 b=1")

	// A key that the Secret does not have yet, and has a moment later.
	byOther := s.signed(s.commit(some("b=4")), byRosa)
	public, _, _, _, err := cryptossh.ParseAuthorizedKey([]byte(ssh.Public))
	if err != nil {
		t.Fatal(err)
	}
	print := cryptossh.FingerprintSHA256(public)
	refusedFor(byOther, print, "Secret "+s.ns+"/git-keys", "allowed_signers", byOne+" stays in force")
	s.tamper("a", "by-hand")
	s.becomes("a=3 b=1")
	s.keys(map[string][]byte{"jane.asc": gpg.Export(jane), "allowed_signers": []byte("rosa@example.com " + ssh.Public + "\n")})
	u.inForce(byOther)
	s.want("a=3 b=4")
	ready(t, u.sync(), metav1.ConditionTrue, v1alpha1.ReasonApplied)

	// The key is revoked: nothing new of it is taken up.
	gpg.Import(gpg.Revocation(jane))
	s.keys(map[string][]byte{"jane.asc": gpg.Export(jane), "allowed_signers": []byte("rosa@example.com " + ssh.Public + "\n")})
	afterwards := s.commit(some("b=5"))
	refusedFor(afterwards, "it has no signature")
	old := s.repo.Git("cat-file", "commit", byOne)
	signature := old[strings.Index(old, "gpgsig "):strings.Index(old, "\n\n")]
	forged := s.signed(afterwards, func([]byte) []byte {
		return []byte(strings.ReplaceAll(strings.TrimPrefix(signature, "gpgsig "), "\n ", "\n"))
	})
	refusedFor(forged, "its signature by OpenPGP key "+jane, "is not right")
	s.repo.SetBranch("main", byOne)
	refusedFor(byOne, "which was revoked")
	s.want("a=3 b=4")
}

// TestTagsAreVerified takes up a release by its signed tag, and no other tag under its name.
func TestTagsAreVerified(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	jane := signer.NewSSH(t, "ed25519")
	s.keys(map[string][]byte{"jane.pub": []byte(jane.Public)})
	release := func(itself, under, commit string) {
		raw := []byte("object " + commit + "\ntype commit\ntag " + itself + "\ntagger Jane <jane@example.com> 1772366400 +0000\n\nrelease\n")
		s.repo.SetRef("refs/tags/"+under, s.repo.GitInput(string(signer.Tag(raw, jane.Sign(raw))), "hash-object", "-t", "tag", "-w", "--stdin"))
	}
	first := s.head()
	release("stable", "stable", first)
	u := s.mooring("prod", these(every(time.Second), verified(v1alpha1.VerifyTag), func(m *mooring) {
		m.Spec.Source.Ref = v1alpha1.Ref{Tag: "stable"}
	}))
	u.inForce(first)
	s.want("a=1")

	second := s.commit(some("a=2"))
	release("v2", "stable", second)
	u.until("a tag of another name is refused", says(v1alpha1.ReasonVerificationFailed, "stable@sha1:"+second+" is not taken up", "signed under another name"))
	s.tamper("a", "by-hand")
	s.becomes("a=1")
	s.repo.SetRef("refs/tags/stable", second)
	u.until("a tag without signature is refused", says(v1alpha1.ReasonVerificationFailed, "no annotated one"))
	release("stable", "stable", second)
	u.inForce(second)
	s.want("a=2")
}

// TestDescendantsOnly lets nobody push by force without a word.
func TestDescendantsOnly(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=1"))
	jane := signer.NewSSH(t, "ed25519")
	s.keys(map[string][]byte{"jane.pub": []byte(jane.Public)})
	sign := func(raw []byte) []byte { return jane.Sign(raw) }
	first := s.signed(s.head(), sign)
	u := s.mooring("prod", these(every(time.Second), verified(v1alpha1.VerifyHead), func(m *mooring) { m.Spec.Source.Verify.DescendantsOnly = true }))
	u.inForce(first)
	second := s.signed(s.commit(some("a=2")), sign)
	u.inForce(second)

	s.repo.SetBranch("main", first)
	u.until("the older commit is refused", says(v1alpha1.ReasonVerificationFailed, "main@sha1:"+first+" is not taken up: it is not a descendant of main@sha1:"+second))
	s.tamper("a", "by-hand")
	s.becomes("a=2")
	third := s.signed(s.commit(some("a=3")), sign) // beside the second
	u.until("the commit beside it is refused", says(v1alpha1.ReasonVerificationFailed, "main@sha1:"+third, "it is not a descendant of main@sha1:"+second))
	u.edit(func(m *mooring) {
		m.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: "main@sha1:" + third}
	})
	u.inForce(third)
	s.want("a=3")
}
