package repos_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/repos/signature"
	"github.com/mooring-dev/mooring/test/gitserver"
	"github.com/mooring-dev/mooring/test/signer"
)

// signCommit makes the signed form of a commit and moves main there.
func signCommit(r *gitserver.TestRepo, id string, s *signer.SSH) repos.Revision {
	raw := []byte(r.Git("cat-file", "commit", id) + "\n")
	signed := r.GitInput(string(signer.Commit(raw, s.Sign(raw))), "hash-object", "-t", "commit", "-w", "--stdin")
	r.SetBranch("main", signed)
	return repos.Revision{Ref: "main", Commit: repos.Commit(signed)}
}

// signTag makes a tag object that calls itself by a name, puts it under another name, and gives its revision.
func signTag(r *gitserver.TestRepo, of repos.Commit, kind, itself, under string, s *signer.SSH) repos.Revision {
	raw := []byte("object " + string(of) + "\ntype " + kind + "\ntag " + itself + "\ntagger Jane <jane@example.com> 1772366400 +0000\n\nrelease\n")
	if s != nil {
		raw = signer.Tag(raw, s.Sign(raw))
	}
	r.SetRef("refs/tags/"+under, r.GitInput(string(raw), "hash-object", "-t", "tag", "-w", "--stdin"))
	return repos.Revision{Ref: under, Commit: of}
}

func signersOf(t *testing.T, s ...*signer.SSH) *repos.Signers {
	t.Helper()
	var lines strings.Builder
	for _, key := range s {
		lines.WriteString("jane@example.com " + key.Public + "\n")
	}
	by, err := repos.SignersFromSecret(map[string][]byte{"allowed_signers": []byte(lines.String())})
	if err != nil {
		t.Fatal(err)
	}
	return by
}

// Over HTTP and SSH, from servers that send a part and from those that send all.
func TestVerify(t *testing.T) {
	t.Parallel()
	jane, stranger := signer.NewSSH(t, "ed25519"), signer.NewSSH(t, "ed25519")
	by := signersOf(t, jane)
	ssh := gitserver.SSH(t, gitserver.SSHOptions{})
	for name, server := range map[string]struct {
		*gitserver.Server
		auth   repos.Auth
		filter string
	}{
		"http":                {gitserver.HTTP(t, gitserver.HTTPOptions{}), repos.Auth{}, "true"},
		"http without filter": {gitserver.HTTP(t, gitserver.HTTPOptions{}), repos.Auth{}, "false"},
		"ssh":                 {ssh, sshAuth(t, ssh), "false"},
	} {
		t.Run(name, func(t *testing.T) {
			r := server.Repo(t, "mesh.git", map[string]string{"a.yaml": "a: 1\n"})
			r.Config("uploadpack.allowFilter", server.filter)
			remote := repos.Remote{URL: r.URL, Auth: server.auth}
			unsigned := repos.Revision{Ref: "main", Commit: repos.Commit(r.Resolve("main"))}
			signed := signCommit(r, r.Commit(gitserver.Change{Files: map[string]string{"a.yaml": "a: 2\n"}}), jane)
			foreign := signCommit(r, r.Commit(gitserver.Change{Files: map[string]string{"a.yaml": "a: 3\n"}}), stranger)
			r.SetRef("refs/tags/light", string(signed.Commit))
			nested := r.GitInput("object "+r.Resolve("main")+"\ntype commit\ntag inner\ntagger Jane <jane@example.com> 1772366400 +0000\n\nx\n", "hash-object", "-t", "tag", "-w", "--stdin")
			for _, test := range []struct {
				name   string
				rev    repos.Revision
				mode   repos.VerifyMode
				reason signature.Reason
				kind   repos.Kind
				says   string
			}{
				{name: "commit signed", rev: signed, mode: repos.VerifyHead},
				{name: "commit unsigned", rev: unsigned, mode: repos.VerifyHead, reason: signature.Unsigned, says: "it has no signature"},
				{name: "commit of a stranger", rev: foreign, mode: repos.VerifyHead, reason: signature.UnknownSigner, says: "SHA256:"},
				{name: "both signed", rev: signTag(r, signed.Commit, "commit", "both", "both", jane), mode: repos.VerifyTagAndHead},
				{name: "tag signed, commit not", rev: signTag(r, unsigned.Commit, "commit", "t1", "t1", jane), mode: repos.VerifyTag},
				{name: "tag signed, commit not, both wanted", rev: signTag(r, unsigned.Commit, "commit", "t2", "t2", jane), mode: repos.VerifyTagAndHead, reason: signature.Unsigned, says: "its commit: it has no signature"},
				{name: "commit signed, tag not", rev: signTag(r, signed.Commit, "commit", "t3", "t3", nil), mode: repos.VerifyTag, reason: signature.Unsigned, says: "its tag: it has no signature"},
				{name: "commit signed, tag not, both wanted", rev: signTag(r, signed.Commit, "commit", "t4", "t4", nil), mode: repos.VerifyTagAndHead, reason: signature.Unsigned, says: "its tag: it has no signature"},
				{name: "commit signed, tag not, commit wanted", rev: signTag(r, signed.Commit, "commit", "t5", "t5", nil), mode: repos.VerifyHead},
				{name: "tag of a stranger", rev: signTag(r, signed.Commit, "commit", "t6", "t6", stranger), mode: repos.VerifyTag, reason: signature.UnknownSigner},
				{name: "old tag under a new name", rev: signTag(r, signed.Commit, "commit", "v1", "v2", jane), mode: repos.VerifyTag, kind: repos.KindVerification, says: `it says "tag v1"`},
				{name: "lightweight tag", rev: repos.Revision{Ref: "light", Commit: signed.Commit}, mode: repos.VerifyTag, kind: repos.KindVerification, says: "its tag is no annotated one"},
				{name: "tag of a tag", rev: repos.Revision{Ref: signTag(r, repos.Commit(nested), "tag", "outer", "outer", jane).Ref, Commit: foreign.Commit}, mode: repos.VerifyTag, kind: repos.KindVerification, says: `says "type tag"`},
				{name: "tag that moved", rev: repos.Revision{Ref: "both", Commit: unsigned.Commit}, mode: repos.VerifyTag, kind: repos.KindVerification, says: "its tag points at commit " + string(signed.Commit) + " by now"},
				{name: "tag that is missing", rev: repos.Revision{Ref: "gone", Commit: signed.Commit}, mode: repos.VerifyTag, kind: repos.KindRefNotFound},
				{name: "no tag", rev: repos.Revision{Commit: signed.Commit}, mode: repos.VerifyTag, kind: repos.KindRef},
			} {
				t.Run(test.name, func(t *testing.T) {
					s, _ := open(t, repos.Options{})
					who, err := s.Verify(t.Context(), remote, test.rev, test.mode, by)
					if test.reason != "" {
						test.kind = repos.KindVerification
					}
					if repos.KindOf(err) != test.kind || signature.ReasonOf(err) != test.reason {
						t.Fatalf("verify says %q, %s, %s: %v", who, repos.KindOf(err), signature.ReasonOf(err), err)
					}
					if err != nil && !strings.Contains(err.Error(), test.says) {
						t.Errorf("the error is %q, want %q in it", err, test.says)
					}
					if test.reason != "" && repos.HintOf(err) == "" {
						t.Error("the error has no hint")
					}
					wantTag, wantCommit := err == nil && test.mode != repos.VerifyHead, err == nil && test.mode != repos.VerifyTag
					if (who.Tag.Name == "jane@example.com") != wantTag || (who.Commit.Name == "jane@example.com") != wantCommit {
						t.Errorf("the signers are %+v", who)
					}
				})
			}
		})
	}
}

// A tag comes over the wire once, and what it stands for is looked at each time.
func TestVerifyTagIsRemembered(t *testing.T) {
	t.Parallel()
	jane, rosa := signer.NewSSH(t, "ed25519"), signer.NewSSH(t, "ed25519")
	server := gitserver.HTTP(t, gitserver.HTTPOptions{})
	r := server.Repo(t, "mesh.git", map[string]string{"a.yaml": "a: 1\n"})
	rev := signTag(r, repos.Commit(r.Resolve("main")), "commit", "v1", "v1", jane)
	s, _ := open(t, repos.Options{})
	remote := repos.Remote{URL: r.URL}
	for range 3 {
		if _, err := s.Verify(t.Context(), remote, rev, repos.VerifyTag, signersOf(t, jane)); err != nil {
			t.Fatal(err)
		}
	}
	if n := server.Counts("mesh.git").UploadPack; n != 1 {
		t.Errorf("%d packs were sent", n)
	}
	_, err := s.Verify(t.Context(), remote, rev, repos.VerifyTag, signersOf(t, rosa))
	wantKind(t, err, repos.KindVerification)
	r.SetRef("refs/tags/v1", string(rev.Commit))
	_, err = s.Verify(t.Context(), remote, rev, repos.VerifyTag, signersOf(t, jane))
	wantKind(t, err, repos.KindVerification, "its tag is no annotated one")
}

// What git and gpg make by themselves, as a person would have them do it.
func TestVerifyWhatGitSigned(t *testing.T) {
	t.Parallel()
	g := signer.NewGPG(t)
	eda := g.Key("Eda <eda@example.com>", "ed25519", "sign", "never", time.Time{})
	r := gitserver.NewRepo(t, map[string]string{"a.yaml": "a: 1\n"})
	program := filepath.Join(t.TempDir(), "gpg")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nexec gpg --homedir "+g.Home+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.Config("gpg.program", program)
	r.Config("user.name", "Eda")
	r.Config("user.email", "eda@example.com")
	id := r.Git("commit-tree", "-S"+eda, "-p", "main", "-m", "signed", "main^{tree}")
	r.SetBranch("main", id)
	r.Git("tag", "-s", "-u", eda, "-m", "release", "v1", id)
	by, err := repos.SignersFromSecret(map[string][]byte{"eda.asc": g.Export(eda)})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, repos.Options{AllowFile: true})
	who, err := s.Verify(t.Context(), repos.Remote{URL: "file://" + r.Dir}, repos.Revision{Ref: "v1", Commit: repos.Commit(id)}, repos.VerifyTagAndHead, by)
	if err != nil {
		t.Fatal(err)
	}
	if who.Tag != who.Commit || who.Tag.Key != eda || !strings.HasPrefix(who.String(), "Eda <eda@example.com>, OpenPGP key "+eda) || strings.Contains(who.String(), ";") {
		t.Errorf("the signers are %q", who)
	}
}

func TestSignersFromSecretNamesTheKey(t *testing.T) {
	t.Parallel()
	_, err := repos.SignersFromSecret(map[string][]byte{"eda.asc": []byte("hunter2")})
	wantKind(t, err, repos.KindCredentials, "key eda.asc")
	if repos.HintOf(err) == "" || strings.Contains(err.Error()+repos.HintOf(err), "hunter2") {
		t.Errorf("the error is %q, its hint %q", err, repos.HintOf(err))
	}
}
