package signature_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mooring-dev/mooring/repos/signature"
	"github.com/mooring-dev/mooring/test/signer"
)

// Each case is judged by git verify-commit and git verify-tag as well, with the keys that are trusted here.
func TestOpenPGP(t *testing.T) {
	g := signer.NewGPG(t)
	past := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	ed := g.Key("Eda <eda@example.com>", "ed25519", "sign", "never", past)
	rsa := g.Key("Rosa <rosa@example.com>", "rsa2048", "sign", "never", past)
	nist := g.Key("Nina <nina@example.com>", "nistp384", "sign", "never", past)
	stranger := g.Key("Sam <sam@example.com>", "ed25519", "sign", "never", past)
	expired := g.Key("Exa <exa@example.com>", "ed25519", "sign", "30d", past)
	renewed := g.Key("Rena <rena@example.com>", "ed25519", "sign", "30d", past)
	beforeRenewal := string(g.Export(renewed))
	g.Run(nil, "--faked-system-time", "20240110T000000!", "--quick-set-expire", renewed, "0")
	revoked := g.Key("Rita <rita@example.com>", "ed25519", "sign", "never", past)
	beforeRevocation := string(g.Export(revoked))
	certificate := string(g.Revocation(revoked))
	primary := g.Key("Petra <petra@example.com>", "ed25519", "cert", "never", past)
	sub := g.Subkey(primary, "ed25519", "sign", "never", past)
	oldSub := g.Subkey(primary, "ed25519", "sign", "30d", past)
	badSub := g.Subkey(primary, "ed25519", "sign", "never", past)
	own := commit(when, "change")

	sign := func(key string, at time.Time, more ...string) []byte {
		return signer.Commit(own, g.Sign(own, key, at, more...))
	}
	good := sign(ed, when)
	byRevoked, byBadSub := sign(revoked, when), sign(badSub+"!", when)
	g.Import([]byte(certificate))
	g.Edit(primary, "key "+badSub, "revkey", "y", "1", "gone", "", "y") // 1: superseded, which is no less than the rest
	ownTag := tag(when, newJudge(t).write("commit", commit(when, "x")), "v1", "release\n\nof everything")

	for name, test := range map[string]struct {
		raw  []byte
		kind string // commit when empty
		keys []string
		want signature.Reason
		who  string
		// stricter than gpg on purpose
		stricter bool
	}{
		"ed25519":               {raw: good, keys: []string{string(g.Export(ed))}, who: "Eda <eda@example.com>"},
		"rsa":                   {raw: sign(rsa, when), keys: []string{string(g.Export(rsa))}, who: "Rosa <rosa@example.com>"},
		"nistp384":              {raw: sign(nist, when), keys: []string{string(g.Export(nist))}, who: "Nina <nina@example.com>"},
		"among several":         {raw: good, keys: []string{string(g.Export(rsa)), string(g.Export(nist, ed))}, who: "Eda <eda@example.com>"},
		"blocks in one value":   {raw: good, keys: []string{"Rosa's:\n" + string(g.Export(rsa)) + "\nEda's:\n" + string(g.Export(ed))}, who: "Eda <eda@example.com>"},
		"not armored":           {raw: good, keys: []string{string(g.Run(nil, "--export", ed))}, who: "Eda <eda@example.com>"},
		"unsigned":              {raw: own, keys: []string{string(g.Export(ed))}, want: signature.Unsigned},
		"unknown":               {raw: sign(stranger, when), keys: []string{string(g.Export(ed))}, want: signature.UnknownSigner},
		"changed":               {raw: bytes.Replace(good, []byte("\n\nchange"), []byte("\n\nchanged"), 1), keys: []string{string(g.Export(ed))}, want: signature.Bad},
		"expired":               {raw: sign(expired, past.Add(day)), keys: []string{string(g.Export(expired))}, want: signature.Expired},
		"expired, and renewed":  {raw: sign(renewed, past.Add(day)), keys: []string{string(g.Export(renewed))}, who: "Rena <rena@example.com>"},
		"renewed in both forms": {raw: sign(renewed, past.Add(day)), keys: []string{beforeRenewal, string(g.Export(renewed))}, who: "Rena <rena@example.com>"},
		"renewed, old form":     {raw: sign(renewed, past.Add(day)), keys: []string{beforeRenewal}, want: signature.Expired},
		"signature expired":     {raw: sign(ed, past.Add(day), "--default-sig-expire", "2d"), keys: []string{string(g.Export(ed))}, want: signature.Expired},
		"revoked":               {raw: byRevoked, keys: []string{string(g.Export(revoked))}, want: signature.Revoked},
		"revoked, not told":     {raw: byRevoked, keys: []string{beforeRevocation}, who: "Rita <rita@example.com>"},
		"revoked in one form":   {raw: byRevoked, keys: []string{beforeRevocation, string(g.Export(revoked))}, want: signature.Revoked},
		"revoked, other order":  {raw: byRevoked, keys: []string{string(g.Export(revoked)), beforeRevocation}, want: signature.Revoked},
		"revocation alone":      {raw: byRevoked, keys: []string{beforeRevocation, certificate}, want: signature.Revoked},
		"revocation first":      {raw: byRevoked, keys: []string{certificate, beforeRevocation}, want: signature.Revoked},
		"subkey":                {raw: sign(sub+"!", when), keys: []string{string(g.Export(primary))}, who: "Petra <petra@example.com>"},
		"subkey expired":        {raw: sign(oldSub+"!", past.Add(day)), keys: []string{string(g.Export(primary))}, want: signature.Expired},
		"subkey revoked":        {raw: byBadSub, keys: []string{string(g.Export(primary))}, want: signature.Revoked},
		"SHA-1":                 {raw: sign(ed, when, "--digest-algo", "SHA1"), keys: []string{string(g.Export(ed))}, want: signature.Unsupported, stricter: true},
		"two signatures":        {raw: sign(ed, when, "-u", rsa), keys: []string{string(g.Export(ed, rsa))}, want: signature.Malformed},
		"two headers":           {raw: signer.Commit(good, g.Sign(own, rsa, when)), keys: []string{string(g.Export(ed, rsa))}, want: signature.Malformed},
		"two equal headers":     {raw: signer.Commit(good, g.Sign(own, ed, when)), keys: []string{string(g.Export(ed))}, want: signature.Malformed},
		"header of another id":  {raw: signer.WithHeader(good, "gpgsig-sha256", []byte("line\nline")), keys: []string{string(g.Export(ed))}, who: "Eda <eda@example.com>"},
		"header of no meaning":  {raw: signer.WithHeader(good, "gpgsignature", []byte("line\nline")), keys: []string{string(g.Export(ed))}, want: signature.Malformed, stricter: true},
		"other header":          {raw: signer.WithHeader(good, "encoding", []byte("UTF-8")), keys: []string{string(g.Export(ed))}, want: signature.Bad},
		"text after":            {raw: signer.Commit(own, append(g.Sign(own, ed, when), "text\n"...)), keys: []string{string(g.Export(ed))}, want: signature.Malformed, stricter: true},
		"text before":           {raw: signer.Commit(own, append([]byte("text\n"), g.Sign(own, ed, when)...)), keys: []string{string(g.Export(ed))}, want: signature.Malformed},
		"signature in message":  {raw: append(bytes.Clone(own), g.Sign(own, ed, when)...), keys: []string{string(g.Export(ed))}, want: signature.Unsigned},
		"no signature at all":   {raw: signer.Commit(own, []byte("-----BEGIN PGP SIGNATURE-----\n\n-----END PGP SIGNATURE-----\n")), keys: []string{string(g.Export(ed))}, want: signature.Malformed},
		"key for a signature":   {raw: signer.Commit(own, bytes.ReplaceAll(g.Export(ed), []byte("PUBLIC KEY BLOCK"), []byte("SIGNATURE"))), keys: []string{string(g.Export(ed))}, want: signature.Malformed},
		"X.509":                 {raw: signer.Commit(own, []byte("-----BEGIN SIGNED MESSAGE-----\nAAAA\n-----END SIGNED MESSAGE-----\n")), keys: []string{string(g.Export(ed))}, want: signature.Unsupported},
		"tag":                   {kind: "tag", raw: signer.Tag(ownTag, g.Sign(ownTag, ed, when)), keys: []string{string(g.Export(ed))}, who: "Eda <eda@example.com>"},
		"tag unsigned":          {kind: "tag", raw: ownTag, keys: []string{string(g.Export(ed))}, want: signature.Unsigned},
		"tag changed":           {kind: "tag", raw: bytes.Replace(signer.Tag(ownTag, g.Sign(ownTag, ed, when)), []byte("everything"), []byte("anything"), 1), keys: []string{string(g.Export(ed))}, want: signature.Bad},
		"tag unknown":           {kind: "tag", raw: signer.Tag(ownTag, g.Sign(ownTag, stranger, when)), keys: []string{string(g.Export(ed))}, want: signature.UnknownSigner},
		"tag, text after":       {kind: "tag", raw: append(signer.Tag(ownTag, g.Sign(ownTag, ed, when)), "text\n"...), keys: []string{string(g.Export(ed))}, want: signature.Malformed, stricter: true},
		"tag signed twice":      {kind: "tag", raw: signer.Tag(signer.Tag(ownTag, g.Sign(ownTag, ed, when)), g.Sign(ownTag, rsa, when)), keys: []string{string(g.Export(ed, rsa))}, want: signature.Bad},
	} {
		t.Run(name, func(t *testing.T) {
			kind := test.kind
			if kind == "" {
				kind = "commit"
			}
			j := newJudge(t)
			data := map[string]string{}
			for i, keys := range test.keys {
				data[strings.Repeat("k", i+1)+".asc"] = keys
				if keys != certificate || i > 0 { // gpg takes no revocation before its key
					j.gpg.Import([]byte(keys))
				}
			}
			if name == "revocation first" {
				j.gpg.Import([]byte(certificate))
			}
			who, err := verify(keysOf(t, data), kind, test.raw)
			if signature.ReasonOf(err) != test.want || who.Name != test.who || (err == nil) != (test.want == "") {
				t.Errorf("verify says %q, %q: %v; want %q, %q", who, signature.ReasonOf(err), err, test.who, test.want)
			}
			approved, words := j.approves(kind, test.raw)
			if approved != (err == nil) && !test.stricter {
				t.Errorf("git says %t, this says %v\n%s", approved, err, words)
			}
			if test.stricter && !approved {
				t.Errorf("git is as strict:\n%s", words)
			}
			t.Logf("%v", err)
		})
	}
}
