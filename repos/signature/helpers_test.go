package signature_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos/signature"
	"github.com/mooring-dev/mooring/test/signer"
)

const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// when most test objects are made.
var when = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// commit as Git stores it, without a signature.
func commit(at time.Time, message string) []byte {
	stamp := fmt.Sprintf("Jane Doe <jane@example.com> %d +0100", at.Unix())
	return fmt.Appendf(nil, "tree %s\nauthor %s\ncommitter %s\n\n%s\n", emptyTree, stamp, stamp, message)
}

// tag as Git stores it, without a signature.
func tag(at time.Time, of, name, message string) []byte {
	return fmt.Appendf(nil, "object %s\ntype commit\ntag %s\ntagger Jane Doe <jane@example.com> %d +0100\n\n%s\n", of, name, at.Unix(), message)
}

// judge is what Git says of objects, with what people trust.
type judge struct {
	t   *testing.T
	dir string
	gpg *signer.GPG
	// args are configuration.
	args []string
}

func newJudge(t *testing.T) *judge {
	j := &judge{t: t, dir: t.TempDir(), gpg: signer.NewGPG(t)}
	j.must(nil, "init", "-q", "--bare")
	return j
}

// allow signers of SSH, in the form of ssh-keygen.
func (j *judge) allow(lines string) {
	j.t.Helper()
	file := filepath.Join(j.dir, "allowed_signers")
	if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
		j.t.Fatal(err)
	}
	j.args = append(j.args, "-c", "gpg.ssh.allowedSignersFile="+file)
}

func (j *judge) git(input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(j.t.Context(), "git", append(append([]string{"-C", j.dir}, j.args...), args...)...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+j.gpg.Home, "GIT_CONFIG_NOSYSTEM=1", "HOME="+j.dir, "LC_ALL=C")
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (j *judge) must(input []byte, args ...string) string {
	j.t.Helper()
	out, err := j.git(input, args...)
	if err != nil {
		j.t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
	return out
}

// write an object.
func (j *judge) write(kind string, raw []byte) string {
	j.t.Helper()
	return j.must(raw, "hash-object", "-t", kind, "-w", "--stdin")
}

// approves is Git's own answer, and the words for it.
func (j *judge) approves(kind string, raw []byte) (bool, string) {
	j.t.Helper()
	j.must(nil, "hash-object", "-t", "tree", "-w", "/dev/null")
	if kind == "tag" {
		j.write("commit", commit(when, "x"))
	}
	out, err := j.git(nil, "verify-"+kind, j.write(kind, raw))
	return err == nil, out
}

func keysOf(t *testing.T, data map[string]string) *signature.Keys {
	t.Helper()
	k, err := tryKeys(data)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func tryKeys(data map[string]string) (*signature.Keys, error) {
	secret := map[string][]byte{}
	for name, value := range data {
		secret[name] = []byte(value)
	}
	return signature.ParseKeys(secret)
}

// verify an object by its kind.
func verify(k *signature.Keys, kind string, raw []byte) (signature.Signer, error) {
	if kind == "tag" {
		return k.VerifyTag(raw, time.Now())
	}
	return k.VerifyCommit(raw, time.Now())
}
