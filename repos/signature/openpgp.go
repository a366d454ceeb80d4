package signature

import (
	"bytes"
	"cmp"
	"crypto"
	"errors"
	"fmt"
	"strings"
	"time"

	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// verifyPGP looks at the one signature in a frame of OpenPGP.
func (k *Keys) verifyPGP(s signed, now time.Time) (Signer, error) {
	sig, err := readPGPSignature(s.text)
	if err != nil {
		return Signer{}, err
	}
	offered := issuer(sig)
	ring, err := k.ring()
	if err != nil {
		return Signer{}, err
	}
	var refusal error
	for _, c := range candidates(ring, sig) {
		who := Signer{Method: OpenPGP, Key: fmt.Sprintf("%X", c.key.Fingerprint), Name: c.user(now)}
		if err := c.check(sig, s.payload, now); err != nil {
			err.Key = who.Key
			refusal = worse(refusal, err)
			continue
		}
		return who, nil
	}
	if refusal != nil {
		return Signer{}, refusal
	}
	if offered == "" {
		return Signer{}, malformed("its OpenPGP signature names no key")
	}
	return Signer{}, refuse(UnknownSigner, offered, fmt.Sprintf(
		"if the key belongs to somebody who may sign, add what gpg --armor --export %s prints, under a name that ends in .asc", offered,
	), "it is signed with OpenPGP key %s, which is not among the keys that are trusted", offered)
}

// readPGPSignature takes the only packet out of a frame.
func readPGPSignature(text []byte) (*packet.Signature, error) {
	data, err := unframe(text, framePGP)
	if err != nil {
		return nil, malformed("its OpenPGP signature cannot be read: %w", err)
	}
	packets, err := splitPackets(data, 8)
	if err != nil {
		return nil, malformed("its OpenPGP signature cannot be read: %w", err)
	}
	if len(packets) != 1 {
		return nil, malformed("it has %d OpenPGP packets where one signature is expected", len(packets))
	}
	if packets[0].tag != packetSignature {
		return nil, malformed("its OpenPGP signature is another packet, of type %d", packets[0].tag)
	}
	switch err := checkSignaturePacket(packets[0].body, 0); {
	case errors.Is(err, errVersion):
		return nil, refuse(Unsupported, "", "sign it again with gpg", "its signature is of a kind that is not supported: %w", err)
	case err != nil:
		return nil, malformed("its OpenPGP signature cannot be read: %w", err)
	}
	read, err := packet.Read(bytes.NewReader(packets[0].whole))
	if _, unsupported := errors.AsType[pgperrors.UnsupportedError](err); unsupported {
		return nil, refuse(Unsupported, "", "sign it again with another algorithm", "its OpenPGP signature is not supported: %w", err)
	}
	sig, ok := read.(*packet.Signature)
	if err != nil || !ok {
		return nil, malformed("its OpenPGP signature cannot be read: %w", cmp.Or(err, errors.New("it is no signature")))
	}
	switch {
	case sig.SigType != packet.SigTypeBinary:
		return nil, refuse(Unsupported, issuer(sig), "sign it again with gpg as Git calls it", "its OpenPGP signature is of type 0x%02x, not over binary data", byte(sig.SigType))
	case sig.Hash != crypto.SHA256 && sig.Hash != crypto.SHA384 && sig.Hash != crypto.SHA512 && sig.Hash != crypto.SHA224 && sig.Hash != crypto.SHA3_256 && sig.Hash != crypto.SHA3_512:
		return nil, refuse(Unsupported, issuer(sig), "have gpg use another one: digest-algo SHA512 in gpg.conf", "its OpenPGP signature uses %s, which is broken", sig.Hash)
	case sig.PubKeyAlgo == packet.PubKeyAlgoDSA:
		return nil, refuse(Unsupported, issuer(sig), "sign with a key of another kind: ed25519 or RSA", "its OpenPGP signature uses DSA, which is not supported")
	}
	return sig, nil
}

// issuer is the key that a signature names: its fingerprint, or else its id.
func issuer(sig *packet.Signature) string {
	if len(sig.IssuerFingerprint) >= 20 {
		return fmt.Sprintf("%X", sig.IssuerFingerprint)
	}
	if sig.IssuerKeyId != nil {
		return fmt.Sprintf("%016X", *sig.IssuerKeyId)
	}
	return ""
}

// candidate is a key that may have made a signature.
type candidate struct {
	of  *openpgp.Entity
	key *packet.PublicKey
	sub *openpgp.Subkey // nil for the primary key
}

func candidates(ring openpgp.EntityList, sig *packet.Signature) []candidate {
	var all []candidate
	for _, of := range ring {
		if sig.CheckKeyIdOrFingerprint(of.PrimaryKey) {
			all = append(all, candidate{of: of, key: of.PrimaryKey})
		}
		for i := range of.Subkeys {
			if sub := &of.Subkeys[i]; sig.CheckKeyIdOrFingerprint(sub.PublicKey) {
				all = append(all, candidate{of: of, key: sub.PublicKey, sub: sub})
			}
		}
	}
	return all
}

// user of the key, the primary one where there are several.
func (c candidate) user(now time.Time) string {
	if _, id := c.of.PrimaryIdentity(now, nil); id != nil {
		return printable(id.Name)
	}
	first := ""
	for name := range c.of.Identities {
		if first == "" || name < first {
			first = name
		}
	}
	return printable(first)
}

// check says why the key did not make the signature, or could not do so with effect.
func (c candidate) check(sig *packet.Signature, payload []byte, now time.Time) *Error {
	h, err := sig.PrepareVerify()
	if err != nil {
		return refuse(Unsupported, "", "sign it again with another algorithm", "its OpenPGP signature is not supported: %w", err)
	}
	_, _ = h.Write(payload) // a hash takes everything
	if err := c.key.VerifySignature(h, sig); err != nil {
		return refuse(Bad, "", "it was changed after it was signed, or was never signed as it is; do not trust it before you know which",
			"its signature by %s is not right", c.name(now))
	}
	if c.revoked() {
		return refuse(Revoked, "", "sign it again with another key", "it is signed by %s, which was revoked", c.name(now))
	}
	return c.valid(sig, now)
}

// name for a message.
func (c candidate) name(now time.Time) string {
	return fmt.Sprintf("OpenPGP key %X of %s", c.key.Fingerprint, cmp.Or(c.user(now), "nobody by name"))
}

// revoked is true when the key's owner has taken it or the whole back, whatever the reason, and also when somebody else was let do that, which cannot be looked into.
func (c candidate) revoked() bool {
	primary := c.of.PrimaryKey
	for _, r := range c.of.Revocations {
		if !r.Packet.CheckKeyIdOrFingerprint(primary) || primary.VerifyRevocationSignature(r.Packet) == nil {
			return true
		}
	}
	if c.sub == nil {
		return false
	}
	for _, r := range c.sub.Revocations {
		if !r.Packet.CheckKeyIdOrFingerprint(primary) || primary.VerifySubkeyRevocationSignature(r.Packet, c.key) == nil {
			return true
		}
	}
	return false
}

// valid looks at the times of the key and the signature, and at what the key may do.
func (c candidate) valid(sig *packet.Signature, now time.Time) *Error {
	const renew = "move the key's expiry (gpg --quick-set-expire) and put its new form into the Secret, or sign again with another key"
	switch {
	case c.key.CreationTime.After(now) || c.of.PrimaryKey.CreationTime.After(now):
		return refuse(NotYetValid, "", "compare the clocks of the signer and of this machine", "it is signed by %s, which is not valid yet", c.name(now))
	case sig.CreationTime.Before(c.key.CreationTime):
		return refuse(Bad, "", "compare the clock of the signer with the key's day of making", "its signature is older than %s, which made it", c.name(now))
	case sig.SigLifetimeSecs != nil && *sig.SigLifetimeSecs != 0 && sig.CreationTime.Add(time.Duration(*sig.SigLifetimeSecs)*time.Second).Before(now):
		return refuse(Expired, "", "sign it again, without an expiry for the signature", "its signature by %s has expired", c.name(now))
	}
	self, err := c.of.VerifyPrimaryKey(now, nil)
	if errors.Is(err, pgperrors.ErrKeyExpired) {
		return refuse(Expired, "", renew, "it is signed by %s, which has expired", c.name(now))
	}
	if err == nil && c.sub != nil {
		self, err = c.sub.Verify(now, nil)
		if errors.Is(err, pgperrors.ErrKeyExpired) {
			return refuse(Expired, "", renew, "it is signed by %s, which has expired", c.name(now))
		}
	}
	if err != nil {
		return refuse(Bad, "", "export the key anew: gpg --armor --export; its user or subkey must be signed by the key itself",
			"it is signed by %s, which is not bound to its owner: %w", c.name(now), err)
	}
	if self.FlagsValid && !self.FlagSign || !self.FlagsValid && c.sub != nil {
		return refuse(Bad, "", "sign with a key that may sign (S in gpg --list-keys)", "it is signed by %s, which may not sign", c.name(now))
	}
	return nil
}

// maxPackets of one value with keys. A Secret of a megabyte could hold more, but no keys of people.
const maxPackets = 50_000

// readRing reads keys and revocations that stand alone, from one value in binary form.
func readRing(data []byte) (openpgp.EntityList, []*packet.Signature, error) {
	packets, err := splitPackets(data, maxPackets)
	if err != nil {
		return nil, nil, err
	}
	var revocations []*packet.Signature
	for len(packets) > 0 && packets[0].tag == packetSignature {
		r, err := readRevocation(packets[0])
		if err != nil {
			return nil, nil, err
		}
		revocations, packets = append(revocations, r), packets[1:]
	}
	if len(packets) == 0 && len(revocations) > 0 {
		return nil, revocations, nil
	}
	if data, err = cleanKeys(packets); err != nil {
		return nil, nil, err
	}
	ring, err := openpgp.ReadKeyRing(bytes.NewReader(data))
	if err == nil && len(ring) == 0 {
		err = errors.New("it holds no key")
	}
	return ring, revocations, err
}

// readRevocation reads the certificate that gpg makes beside each key.
func readRevocation(p opaque) (*packet.Signature, error) {
	if err := checkSignaturePacket(p.body, 0); err != nil {
		return nil, err
	}
	read, err := packet.Read(bytes.NewReader(p.whole))
	if err != nil {
		return nil, err
	}
	if sig, ok := read.(*packet.Signature); ok && sig.SigType == packet.SigTypeKeyRevocation {
		return sig, nil
	}
	return nil, errors.New("it holds a signature, and no key")
}

// errPrivate is a private key where a public one belongs.
var errPrivate = errors.New("it holds a private key, which is needed for signing alone and must not be here")

// merge brings together what is known of each key, wherever it stands.
func merge(rings openpgp.EntityList, revocations []*packet.Signature) openpgp.EntityList {
	var all openpgp.EntityList
	byPrint := map[string]*openpgp.Entity{}
	for _, e := range rings {
		first, known := byPrint[string(e.PrimaryKey.Fingerprint)]
		if !known {
			byPrint[string(e.PrimaryKey.Fingerprint)] = e
			all = append(all, e)
			continue
		}
		mergeInto(first, e)
	}
	for _, r := range revocations {
		for _, e := range all {
			if r.CheckKeyIdOrFingerprint(e.PrimaryKey) {
				e.Revocations = append(e.Revocations, packet.NewVerifiableSig(r))
			}
		}
	}
	return all
}

func mergeInto(first, second *openpgp.Entity) {
	first.Revocations = append(first.Revocations, second.Revocations...)
	first.DirectSignatures = append(first.DirectSignatures, second.DirectSignatures...)
	for name, id := range second.Identities {
		known := first.Identities[name]
		if known == nil {
			id.Primary = first
			first.Identities[name] = id
			continue
		}
		known.SelfCertifications = append(known.SelfCertifications, id.SelfCertifications...)
		known.Revocations = append(known.Revocations, id.Revocations...)
	}
second:
	for _, sub := range second.Subkeys {
		for i := range first.Subkeys {
			if known := &first.Subkeys[i]; bytes.Equal(known.PublicKey.Fingerprint, sub.PublicKey.Fingerprint) {
				known.Bindings = append(known.Bindings, sub.Bindings...)
				known.Revocations = append(known.Revocations, sub.Revocations...)
				continue second
			}
		}
		sub.Primary = first
		first.Subkeys = append(first.Subkeys, sub)
	}
}

// printable makes the name of a user fit for a message.
func printable(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
	return bounded(name)
}
