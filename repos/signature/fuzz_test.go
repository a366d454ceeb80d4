package signature_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/mooring-dev/mooring/repos/signature"
)

// What gpg and ssh-keygen have made, with keys that are used nowhere else.
const (
	pgpSeed = `-----BEGIN PGP SIGNATURE-----

iHUEABYIAB0WIQR2Ogxmy3VoWCLdtE+JL94oZ9ZujwUCaws/9gAKCRCJL94oZ9Zu
j5dWAQDMHNNpPmQIhsCPKWr4UdQhiJekOiRhoK0s18oleelpSAEA2mSX9hcw2oWB
Sq9NQSuUf25BmdBdBTQgozU4anOZRgs=
=Ub4m
-----END PGP SIGNATURE-----
`
	pgpKeySeed = `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaws/9hYJKwYBBAHaRw8BAQdAov0qBLfSoueM8Q2AlOOvTcXj9QVTVEIwnDVo
BXyojYC0F1NlZWQgPHNlZWRAZXhhbXBsZS5jb20+iJAEExYIADgWIQQRVtqzkWEq
HEp/F/4rRazOw2nKZwUCaws/9gIbAQULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAK
CRArRazOw2nKZxtDAQCWjwP0UhYeo1FKEKsJMVJrKmluQhsZ0Cl1XgspC8S8IgD/
f8/OAitbuHLTTkdpMjzAo43akdHlPC9MsQanfN8F6gG4MwRrCz/2FgkrBgEEAdpH
DwEBB0ApEYaW/uFw1NWECYhhHsf8+9sbh8gTDx8dcgTzg1LY6ojvBBgWCAAgFiEE
EVbas5FhKhxKfxf+K0WszsNpymcFAmsLP/YCGwIAgQkQK0WszsNpymd2IAQZFggA
HRYhBHY6DGbLdWhYIt20T4kv3ihn1m6PBQJrCz/2AAoJEIkv3ihn1m6PKsMBAK8V
IdmTmCsZ5gP4NG/GAQHSgA9zKAiJlHFZGlLZsh1tAQDLLCFyex3kbmj1+mjdmg9m
HR/1Y5XYr+VZimlc82Y7DLKKAQD9rRqSdQnK00a3bZHuZH4tM5R3pP3X+dk4pGGj
Wqx86wEA3mc4eSiij5g2QkPq4Hok8s52si+jLWa4+4jltJ1OFwY=
=OS4A
-----END PGP PUBLIC KEY BLOCK-----
`
	sshSeed = `-----BEGIN SSH SIGNATURE-----
U1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAgKQsIKRSyDjj5WbhEMINxoq28QQ
ZcuuYpqI5RL7gv4asAAAADZ2l0AAAAAAAAAAZzaGE1MTIAAABTAAAAC3NzaC1lZDI1NTE5
AAAAQCQj2aYcTUlbF3ZECyYubjd4wLqqifvXwHyu/C5W654FQXIG0D3irhhD62ESYhZ1ok
5nIaFbOigTphpYxZvAUQM=
-----END SSH SIGNATURE-----
`
	publicSeed = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICkLCCkUsg44+Vm4RDCDcaKtvEEGXLrmKaiOUS+4L+Gr comment"
)

func seedKeys(f *testing.F) *signature.Keys {
	f.Helper()
	k, err := signature.ParseKeys(map[string][]byte{"allowed_signers": []byte("jane@example.com " + publicSeed), "seed.asc": []byte(pgpKeySeed)})
	if err != nil {
		f.Fatal(err)
	}
	return k
}

// Whatever stands in an object, nobody has signed it who is trusted: the keys of these signatures were used for something else.
func FuzzVerify(f *testing.F) {
	plain := string(commit(when, "change"))
	f.Add([]byte(plain))
	for _, seed := range []string{pgpSeed, sshSeed} {
		f.Add([]byte(strings.Replace(plain, "\n\n", "\ngpgsig "+strings.ReplaceAll(strings.TrimSpace(seed), "\n", "\n ")+"\n\n", 1)))
		f.Add([]byte(string(tag(when, emptyTree, "v1", "release")) + seed))
	}
	f.Add([]byte("tree x\ngpgsig\n \n \n\ngpgsig"))
	keys := seedKeys(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		for _, kind := range []string{"commit", "tag"} {
			who, err := verify(keys, kind, raw)
			if err == nil || who != (signature.Signer{}) {
				t.Errorf("%s is signed by %q", kind, who)
			}
			if signature.ReasonOf(err) == "" {
				t.Errorf("an error without a reason: %v", err)
			}
			if strings.Contains(err.Error(), "runtime error") {
				t.Errorf("a panic: %v", err)
			}
		}
		if !bytes.Equal(before, raw) {
			t.Error("the object was changed")
		}
	})
}

// Whatever stands in a Secret, there is an answer, and no panic.
func FuzzParseKeys(f *testing.F) {
	f.Add("allowed_signers", []byte("jane@example.com "+publicSeed))
	f.Add("allowed_signers", []byte(`"a b",!c cert-authority,namespaces="git,x",valid-after="20260101",valid-before="20270101Z" `+publicSeed))
	f.Add("revoked_keys", []byte(publicSeed))
	f.Add("jane.pub", []byte(publicSeed+" comment"))
	f.Add("jane.asc", []byte(pgpKeySeed))
	f.Add("jane.asc", []byte(strings.ReplaceAll(pgpSeed, "SIGNATURE", "PUBLIC KEY BLOCK")))
	f.Add("jane.gpg", []byte{0x99, 0x00, 0x05, 4, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, name string, value []byte) {
		k, err := signature.ParseKeys(map[string][]byte{name: value})
		if (k == nil) == (err == nil) {
			t.Errorf("keys %v, error %v", k, err)
		}
	})
}

// What a stranger can put into a commit takes no more memory than the commit.
func TestHugeInputs(t *testing.T) {
	plain := string(commit(when, "change"))
	with := func(text string) []byte {
		return []byte(strings.Replace(plain, "\n\n", "\ngpgsig "+strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n ")+"\n\n", 1))
	}
	pgp := func(packet []byte) []byte {
		return with("-----BEGIN PGP SIGNATURE-----\n\n" + base64.StdEncoding.EncodeToString(packet) + "\n-----END PGP SIGNATURE-----")
	}
	// Version 6 gives its lengths in four bytes, as does whatever is within a subpacket.
	v6 := []byte{6, 0, 22, 10, 0xf0, 0, 0, 0}
	inner := append([]byte{byte(len(v6) + 1), 32}, v6...)
	v4 := binary.BigEndian.AppendUint16([]byte{4, 0, 22, 10}, uint16(len(inner)))
	v4 = append(append(v4, inner...), 0, 0, 0, 0)
	packetOf := func(body []byte) []byte { return append([]byte{0xc2, byte(len(body))}, body...) }
	type blob struct{ Key, Namespace, Reserved, Hash, Signature string }
	long := append([]byte("SSHSIG\x00\x00\x00\x01"), ssh.Marshal(blob{Key: strings.Repeat("x", 1<<20)})...)
	for name, raw := range map[string][]byte{
		"version 6":            pgp(packetOf(v6)),
		"signature within one": pgp(packetOf(v4)),
		"packet of 4 GiB":      pgp([]byte{0xc2, 0xff, 0xff, 0xff, 0xff, 0xff, 4}),
		"packet in parts":      pgp([]byte{0xc2, 0xfe, 4, 0}),
		"packet without end":   pgp([]byte{0x8b, 4, 0}),
		"long armor":           with("-----BEGIN PGP SIGNATURE-----\n\n" + strings.Repeat("A", 8<<20)),
		"many headers":         with("-----BEGIN PGP SIGNATURE-----\n" + strings.Repeat("a: b\n", 1<<20)),
		"many packets":         pgp(bytes.Repeat([]byte{0xc2, 0}, 20_000)),
		"long ssh":             with("-----BEGIN SSH SIGNATURE-----\n" + base64.StdEncoding.EncodeToString(long) + "\n-----END SSH SIGNATURE-----"),
		"long tag":             []byte(string(tag(when, emptyTree, "v1", "x")) + "-----BEGIN SSH SIGNATURE-----\n" + strings.Repeat("A", 8<<20)),
	} {
		t.Run(name, func(t *testing.T) {
			k, err := signature.ParseKeys(map[string][]byte{"jane.pub": []byte(publicSeed)})
			if err != nil {
				t.Fatal(err)
			}
			kind := "commit"
			if name == "long tag" {
				kind = "tag"
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err = verify(k, kind, raw)
			runtime.ReadMemStats(&after)
			if r := signature.ReasonOf(err); r != signature.Malformed && r != signature.Unsupported {
				t.Errorf("verify says %q: %v", r, err)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 3*uint64(len(raw))+1<<20 {
				t.Errorf("%d bytes were made room for, for an object of %d", grown, len(raw))
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
