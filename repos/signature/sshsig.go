package signature

import (
	"cmp"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// What PROTOCOL.sshsig and Git lay down.
const (
	sshMagic     = "SSHSIG"
	sshNamespace = "git"
)

// kindDSA is the kind of keys and signatures that ssh-keygen has given up.
const kindDSA = "ssh-dss"

// sshSignature is the blob within the frame, after the magic.
type sshSignature struct {
	Version       uint32
	PublicKey     string
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Signature     string
}

// sshSigned is what the signature is made over, after the magic.
type sshSigned struct {
	Namespace     string
	Reserved      string
	HashAlgorithm string
	Hash          string
}

// verifySSH looks at a signature in a frame of SSH.
func (k *Keys) verifySSH(s signed) (Signer, error) {
	key, err := checkSSH(s)
	if err != nil {
		return Signer{}, err
	}
	plain := key
	cert, certified := key.(*ssh.Certificate)
	if certified {
		plain = cert.Key
	}
	print := ssh.FingerprintSHA256(plain)
	for _, r := range k.revoked {
		if r.is(plain) || certified && r.is(cert.SignatureKey) {
			return Signer{}, refuse(Revoked, print, "sign it again with another key", "it is signed with SSH key %s, which is among the revoked keys", print)
		}
	}
	refusal := error(refuse(UnknownSigner, print, unknownHint(plain, print),
		"it is signed with SSH key %s (%s), which is not among the keys that are trusted", print, plain.Type()))
	for _, a := range k.allowed {
		who, err := a.accepts(key, s.at)
		if err != nil {
			err.Key = print
			refusal = worse(refusal, err)
			continue
		}
		if who != nil {
			return Signer{Method: SSH, Key: print, Name: *who}, nil
		}
	}
	return Signer{}, refusal
}

func unknownHint(key ssh.PublicKey, print string) string {
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if len(line) > 200 { // the message has other things to say
		line = key.Type() + " …"
	}
	return fmt.Sprintf("if the key belongs to somebody who may sign (ssh-keygen -lf FILE.pub prints %s there), add a line to allowed_signers: PRINCIPAL %s", print, line)
}

// checkSSH reads a signature, and gives the key that made it if it is right. Whether the key is trusted is another question.
func checkSSH(s signed) (ssh.PublicKey, error) {
	data, err := unframe(s.text, frameSSH)
	if err != nil {
		return nil, malformed("its SSH signature cannot be read: %w", err)
	}
	blob, ok := strings.CutPrefix(string(data), sshMagic)
	var sig sshSignature
	if !ok || ssh.Unmarshal([]byte(blob), &sig) != nil { // which refuses what is cut off and what is too long
		return nil, malformed("its SSH signature cannot be read: it has not the form of PROTOCOL.sshsig")
	}
	if sig.Version != 1 {
		return nil, refuse(Unsupported, "", "sign it again with ssh-keygen", "its SSH signature is of version %d, which is not supported", sig.Version)
	}
	key, err := ssh.ParsePublicKey([]byte(sig.PublicKey))
	if err != nil {
		return nil, refuse(Unsupported, "", "sign with a key of kind ed25519, ECDSA or RSA", "the key of its SSH signature cannot be read")
	}
	print := ssh.FingerprintSHA256(key)
	if cert, ok := key.(*ssh.Certificate); ok {
		print = ssh.FingerprintSHA256(cert.Key)
	}
	if sig.Namespace != sshNamespace {
		return nil, refuse(Bad, print, "sign it with git, which calls ssh-keygen -Y sign -n git", "its SSH signature is for %q, not for git", bounded(printable(sig.Namespace)))
	}
	var hash []byte
	switch sig.HashAlgorithm {
	case "sha256":
		sum := sha256.Sum256(s.payload)
		hash = sum[:]
	case "sha512":
		sum := sha512.Sum512(s.payload)
		hash = sum[:]
	default:
		return nil, refuse(Unsupported, print, "sign it again with ssh-keygen", "its SSH signature uses the hash %q, which is not supported", bounded(printable(sig.HashAlgorithm)))
	}
	var inner ssh.Signature
	if ssh.Unmarshal([]byte(sig.Signature), &inner) != nil {
		return nil, malformed("its SSH signature cannot be read: it has not the form of PROTOCOL.sshsig")
	}
	if inner.Format == ssh.KeyAlgoRSA || inner.Format == kindDSA {
		return nil, refuse(Unsupported, print, "sign it again with a current ssh-keygen", "its SSH signature is of kind %s, which uses SHA-1", inner.Format)
	}
	message := append([]byte(sshMagic), ssh.Marshal(sshSigned{sig.Namespace, sig.Reserved, sig.HashAlgorithm, string(hash)})...)
	if err := key.Verify(message, &inner); err != nil {
		return nil, refuse(Bad, print, "it was changed after it was signed, or was never signed as it is; do not trust it before you know which",
			"its signature by SSH key %s is not right", print)
	}
	return key, nil
}

// accepts tells whom a line makes of a key: nobody when it is not about the key, and why not when it is and does not count at that time.
func (a *allowedSigner) accepts(key ssh.PublicKey, at time.Time) (who *string, refusal *Error) {
	name := a.line
	print := ssh.FingerprintSHA256(key)
	if cert, ok := key.(*ssh.Certificate); ok {
		if !a.authority || !a.key.is(cert.SignatureKey) {
			return nil, nil
		}
		if name, refusal = a.certified(cert, at); refusal != nil {
			return nil, refusal
		}
		print = ssh.FingerprintSHA256(cert.Key)
	} else if a.authority || !a.key.is(key) {
		return nil, nil
	}
	signer := fmt.Sprintf("SSH key %s of %s", print, cmp.Or(name, "nobody by name"))
	switch {
	case a.namespaces != nil && !matches(a.namespaces, sshNamespace):
		return nil, refuse(Bad, "", "add git to the option namespaces in allowed_signers", "it is signed with %s, which may not sign for git", signer)
	case (!a.after.IsZero() || !a.upTo.IsZero()) && at.IsZero():
		return nil, refuse(Malformed, "", "", "it is signed with %s, which is valid for some time only, and does not say when", signer)
	case !a.after.IsZero() && at.Before(a.after):
		return nil, refuse(Bad, "", "sign it anew, or correct valid-after in allowed_signers", "it is signed with %s, which was not valid yet when it was made", signer)
	case !a.upTo.IsZero() && at.After(a.upTo):
		return nil, refuse(Expired, "", "sign it with another key, or correct valid-before in allowed_signers", "it is signed with %s, which was not valid any more when it was made", signer)
	}
	return &name, nil
}

// certified looks at a certificate of an authority that is trusted, and gives the principals that the line lets through.
func (a *allowedSigner) certified(cert *ssh.Certificate, at time.Time) (string, *Error) {
	print := ssh.FingerprintSHA256(cert.Key)
	var names []string
	for _, p := range cert.ValidPrincipals {
		if matches(a.principals, p) {
			names = append(names, p)
		}
	}
	signer := fmt.Sprintf("the certificate %q of SSH key %s", bounded(printable(cert.KeyId)), print)
	switch {
	case cert.CertType != ssh.UserCert:
		return "", refuse(Bad, "", "sign with a user certificate", "it is signed with %s, which is for hosts", signer)
	case len(names) == 0:
		return "", refuse(Bad, "", "", "it is signed with %s, which has none of the principals %s", signer, a.line)
	case cert.Signature == nil || cert.Signature.Format == ssh.KeyAlgoRSA:
		return "", refuse(Unsupported, "", "have the authority sign with rsa-sha2-512", "it is signed with %s, which the authority signed with SHA-1", signer)
	case at.IsZero():
		return "", refuse(Malformed, "", "", "it is signed with %s, and does not say when", signer)
	}
	checker := ssh.CertChecker{Clock: func() time.Time { return at }}
	if err := checker.CheckCert(names[0], cert); err != nil {
		reason := Bad
		if strings.Contains(err.Error(), "expired") {
			reason = Expired
		}
		return "", refuse(reason, "", "have the authority make a new certificate, and sign again", "it is signed with %s, which was not valid when it was made: %w", signer, err)
	}
	return printable(strings.Join(names, ",")), nil
}
