package signature_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mooring-dev/mooring/repos/signature"
	"github.com/mooring-dev/mooring/test/signer"
)

// Each case is judged by git verify-commit as well, with the same file of allowed signers.
func TestSSH(t *testing.T) {
	ed, rsa, p256, p521 := signer.NewSSH(t, "ed25519"), signer.NewSSH(t, "rsa", "-b", "2048"), signer.NewSSH(t, "ecdsa", "-b", "256"), signer.NewSSH(t, "ecdsa", "-b", "521")
	stranger, authority := signer.NewSSH(t, "ed25519"), signer.NewSSH(t, "ed25519")
	certified := func(principals string, more ...string) *signer.SSH {
		s := signer.NewSSH(t, "ed25519")
		authority.Certify(s, "jane", principals, more...)
		return s
	}
	own := commit(when, "change")
	sign := func(s *signer.SSH, more ...string) []byte { return signer.Commit(own, s.Sign(own, more...)) }
	for name, test := range map[string]struct {
		raw     []byte
		allowed string
		want    signature.Reason
		who     string
		// stricter than ssh-keygen on purpose
		stricter bool
	}{
		"ed25519":           {raw: sign(ed), allowed: "jane@example.com " + ed.Public, who: "jane@example.com"},
		"rsa":               {raw: sign(rsa), allowed: "jane@example.com " + rsa.Public, who: "jane@example.com"},
		"rsa with SHA-256":  {raw: sign(rsa, "-O", "hashalg=sha256"), allowed: "jane@example.com " + rsa.Public, who: "jane@example.com"},
		"nistp256":          {raw: sign(p256), allowed: "jane@example.com " + p256.Public, who: "jane@example.com"},
		"nistp521":          {raw: sign(p521), allowed: "jane@example.com " + p521.Public, who: "jane@example.com"},
		"one of several":    {raw: sign(ed), allowed: "# who\n\nrosa@x " + rsa.Public + "\n" + "jane@x,jane@y " + ed.Public + "\n", who: "jane@x,jane@y"},
		"wild":              {raw: sign(ed), allowed: "*@example.com " + ed.Public, who: "*@example.com"},
		"quoted":            {raw: sign(ed), allowed: `"jane@example.com" ` + ed.Public, who: "jane@example.com"},
		"unsigned":          {raw: own, allowed: "jane@x " + ed.Public, want: signature.Unsigned},
		"unknown":           {raw: sign(stranger), allowed: "jane@x " + ed.Public, want: signature.UnknownSigner},
		"changed":           {raw: bytes.Replace(sign(ed), []byte("\n\nchange"), []byte("\n\nchanged"), 1), allowed: "jane@x " + ed.Public, want: signature.Bad},
		"namespace allowed": {raw: sign(ed), allowed: `jane@x namespaces="file,git" ` + ed.Public, who: "jane@x"},
		"namespace wild":    {raw: sign(ed), allowed: `jane@x namespaces="g*" ` + ed.Public, who: "jane@x"},
		"namespace denied":  {raw: sign(ed), allowed: `jane@x namespaces="file" ` + ed.Public, want: signature.Bad},
		"other namespace":   {raw: signer.Commit(own, ed.SignFor("file", own)), allowed: "jane@x " + ed.Public, want: signature.Bad},
		"within validity":   {raw: sign(ed), allowed: `jane@x valid-after="20260101Z",valid-before="20260401120000Z" ` + ed.Public, who: "jane@x"},
		"too late":          {raw: sign(ed), allowed: `jane@x valid-before="20260301115959Z" ` + ed.Public, want: signature.Expired},
		"last second":       {raw: sign(ed), allowed: `jane@x valid-before="20260301120000Z" ` + ed.Public, who: "jane@x"},
		"too early":         {raw: sign(ed), allowed: `jane@x valid-after="202603011201Z" ` + ed.Public, want: signature.Bad},
		"old and new line":  {raw: sign(ed), allowed: `jane@x valid-before="20250101Z" ` + ed.Public + "\njane@y " + ed.Public, who: "jane@y"},
		"certificate":       {raw: sign(certified("jane@x")), allowed: "*@x cert-authority " + authority.Public, who: "jane@x"},
		"certificate twice": {raw: sign(certified("jane@y,jane@x")), allowed: "*@x,!rosa@x cert-authority " + authority.Public, who: "jane@x"},
		"other principal":   {raw: sign(certified("jane@y")), allowed: "*@x cert-authority " + authority.Public, want: signature.Bad},
		"denied principal":  {raw: sign(certified("rosa@x")), allowed: "*@x,!rosa@x cert-authority " + authority.Public, want: signature.Bad},
		"no authority":      {raw: sign(certified("jane@x")), allowed: "*@x " + authority.Public, want: signature.UnknownSigner},
		"other authority":   {raw: sign(certified("jane@x")), allowed: "*@x cert-authority " + ed.Public, want: signature.UnknownSigner},
		"host certificate":  {raw: sign(certified("jane@x", "-h")), allowed: "*@x cert-authority " + authority.Public, want: signature.Bad},
		"old certificate":   {raw: sign(certified("jane@x", "-V", "20250101Z:20260201Z")), allowed: "*@x cert-authority " + authority.Public, want: signature.Expired},
		"valid then":        {raw: sign(certified("jane@x", "-V", "20260201Z:20260401Z")), allowed: "*@x cert-authority " + authority.Public, who: "jane@x"},
		"authority signs":   {raw: sign(authority), allowed: "*@x cert-authority " + authority.Public, want: signature.UnknownSigner},
		"two headers":       {raw: signer.Commit(sign(ed), ed.Sign(own)), allowed: "jane@x " + ed.Public, want: signature.Malformed, stricter: true},
		"text after":        {raw: signer.Commit(own, append(ed.Sign(own), "text\n"...)), allowed: "jane@x " + ed.Public, want: signature.Malformed, stricter: true},
		"more in it":        {raw: signer.Commit(own, reblob(t, ed.Sign(own), func(b []byte) []byte { return append(b, 0) })), allowed: "jane@x " + ed.Public, want: signature.Malformed},
		"cut off":           {raw: signer.Commit(own, reblob(t, ed.Sign(own), func(b []byte) []byte { return b[:len(b)-1] })), allowed: "jane@x " + ed.Public, want: signature.Malformed},
		"other version":     {raw: signer.Commit(own, reblob(t, ed.Sign(own), func(b []byte) []byte { b[9] = 2; return b })), allowed: "jane@x " + ed.Public, want: signature.Unsupported},
		"hash unknown":      {raw: signer.Commit(own, reblob(t, ed.Sign(own), func(b []byte) []byte { return bytes.Replace(b, []byte("sha512"), []byte("sha384"), 1) })), allowed: "jane@x " + ed.Public, want: signature.Unsupported},
		"RSA with SHA-1":    {raw: signer.Commit(own, withSHA1(t, own, rsa)), allowed: "jane@x " + rsa.Public, want: signature.Unsupported},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJudge(t)
			j.allow(test.allowed + "\n")
			who, err := verify(keysOf(t, map[string]string{"allowed_signers": test.allowed}), "commit", test.raw)
			if signature.ReasonOf(err) != test.want || who.Name != test.who || (err == nil) != (test.want == "") {
				t.Errorf("verify says %q, %q: %v; want %q, %q", who, signature.ReasonOf(err), err, test.who, test.want)
			}
			approved, words := j.approves("commit", test.raw)
			if approved != (err == nil) && !test.stricter {
				t.Errorf("git says %t, this says %v\n%s", approved, err, words)
			}
			if test.stricter && !approved {
				t.Errorf("git is as strict:\n%s", words)
			}
		})
	}
}

// reblob changes what is within the frame of a signature.
func reblob(t *testing.T, text []byte, change func([]byte) []byte) []byte {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	blob, err := base64.StdEncoding.DecodeString(strings.Join(lines[1:len(lines)-1], ""))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(lines[0] + "\n" + base64.StdEncoding.EncodeToString(change(blob)) + "\n" + lines[len(lines)-1] + "\n")
}

// withSHA1 makes the signature that old programs made: right, and by an algorithm that is broken.
func withSHA1(t *testing.T, payload []byte, s *signer.SSH) []byte {
	t.Helper()
	pem, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ssh.ParseRawPrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	type toSign struct{ Namespace, Reserved, Hash, Sum string }
	type blob struct {
		Version                                   uint32
		Key, Namespace, Reserved, Hash, Signature string
	}
	sum := crypto.SHA512.New()
	sum.Write(payload)
	message := append([]byte("SSHSIG"), ssh.Marshal(toSign{"git", "", "sha512", string(sum.Sum(nil))})...)
	short := crypto.SHA1.New()
	short.Write(message)
	made, err := rsa.SignPKCS1v15(rand.Reader, parsed.(*rsa.PrivateKey), crypto.SHA1, short.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(s.Public))
	if err != nil {
		t.Fatal(err)
	}
	inner := ssh.Marshal(ssh.Signature{Format: ssh.KeyAlgoRSA, Blob: made})
	whole := append([]byte("SSHSIG"), ssh.Marshal(blob{1, string(public.Marshal()), "git", "", "sha512", string(inner)})...)
	return []byte("-----BEGIN SSH SIGNATURE-----\n" + base64.StdEncoding.EncodeToString(whole) + "\n-----END SSH SIGNATURE-----\n")
}

func TestPlainPublicKeys(t *testing.T) {
	jane, rosa := signer.NewSSH(t, "ed25519"), signer.NewSSH(t, "ecdsa")
	own := commit(when, "change")
	raw := signer.Commit(own, jane.Sign(own))
	for name, test := range map[string]struct {
		data map[string]string
		want signature.Reason
	}{
		"jane.pub":                {data: map[string]string{"jane.pub": jane.Public}},
		"authorized_keys":         {data: map[string]string{"authorized_keys": rosa.Public + "\n" + jane.Public + "\n"}},
		"any name":                {data: map[string]string{"author1": jane.Public}},
		"rosa.pub":                {data: map[string]string{"rosa.pub": rosa.Public}, want: signature.UnknownSigner},
		"revoked":                 {data: map[string]string{"jane.pub": jane.Public, "revoked_keys": jane.Public}, want: signature.Revoked},
		"another one was revoked": {data: map[string]string{"jane.pub": jane.Public, "revoked_keys": rosa.Public}},
	} {
		t.Run(name, func(t *testing.T) {
			who, err := verify(keysOf(t, test.data), "commit", raw)
			if signature.ReasonOf(err) != test.want {
				t.Errorf("verify says %q: %v, want %q", who, err, test.want)
			}
			if err == nil && (who.Method != signature.SSH || !strings.HasPrefix(who.Key, "SHA256:") || who.Name != "a comment") {
				t.Errorf("the signer is %q", who)
			}
		})
	}
}

func TestKeysThatCannotBeRead(t *testing.T) {
	jane := signer.NewSSH(t, "ed25519")
	private, err := os.ReadFile(jane.File)
	if err != nil {
		t.Fatal(err)
	}
	g := signer.NewGPG(t)
	eda := g.Key("Eda <eda@example.com>", "ed25519", "sign", "never", time.Time{})
	secret := g.Run(nil, "--armor", "--export-secret-keys", eda)
	for name, test := range map[string]struct {
		data map[string]string
		want string
	}{
		"nothing":             {nil, "it has no key of anybody who may sign"},
		"only revoked":        {map[string]string{"revoked_keys": jane.Public}, "it has no key of anybody who may sign"},
		"empty":               {map[string]string{"jane.pub": "\n"}, "key jane.pub: it is empty"},
		"words":               {map[string]string{"jane.pub": "hello"}, "key jane.pub: line 1: it is no public key"},
		"ssh private key":     {map[string]string{"jane": string(private)}, "key jane: it holds a private key"},
		"gpg private key":     {map[string]string{"eda.asc": string(secret)}, "key eda.asc: it holds a private key"},
		"gpg private, binary": {map[string]string{"eda.gpg": string(g.Run(nil, "--export-secret-keys", eda))}, "key eda.gpg: it holds a private key"},
		"cut off":             {map[string]string{"eda.asc": string(g.Export(eda)[:200])}, "key eda.asc: the end of a block is missing"},
		"damaged":             {map[string]string{"eda.asc": strings.Replace(string(g.Export(eda)), "m", "*", 1)}, "key eda.asc: "},
		"binary, cut off":     {map[string]string{"eda.gpg": string(g.Run(nil, "--export", eda)[:60])}, "key eda.gpg: a packet is cut off"},
		"no principal":        {map[string]string{"allowed_signers": jane.Public}, "key allowed_signers: line 1: "},
		"only negation":       {map[string]string{"allowed_signers": "!jane@x " + jane.Public}, "key allowed_signers: line 1: it names no principal"},
		"second line":         {map[string]string{"allowed_signers": "jane@x " + jane.Public + "\njane@x"}, "key allowed_signers: line 2: after the principals there is no public key"},
		"unknown option":      {map[string]string{"allowed_signers": `jane@x no-touch="1" ` + jane.Public}, "key allowed_signers: line 1: option no-touch is unknown"},
		"option twice":        {map[string]string{"allowed_signers": `jane@x namespaces="a",namespaces="git" ` + jane.Public}, "option namespaces stands twice"},
		"bad time":            {map[string]string{"allowed_signers": `jane@x valid-before="2026" ` + jane.Public}, `"2026" is no time`},
		"times in reverse":    {map[string]string{"allowed_signers": `jane@x valid-after="20260201",valid-before="20260101" ` + jane.Public}, "valid-before is not later than valid-after"},
		"nobody":              {map[string]string{"allowed_signers": "# nobody\n"}, "key allowed_signers: it names nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryKeys(test.data)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "AAAA") {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}
