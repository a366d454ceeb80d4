package signature

import (
	"bytes"
	"errors"
	"time"
)

// VerifyCommit tells who signed a commit, given as Git stores it. now is the time at which keys must be valid.
func (k *Keys) VerifyCommit(raw []byte, now time.Time) (Signer, error) {
	s, err := readCommit(raw)
	if err != nil {
		return Signer{}, err
	}
	return k.verify(s, now)
}

// VerifyTag tells who signed a tag, given as Git stores it. What the tag is called and what it points at is for the caller to compare.
func (k *Keys) VerifyTag(raw []byte, now time.Time) (Signer, error) {
	s, err := readTag(raw)
	if err != nil {
		return Signer{}, err
	}
	return k.verify(s, now)
}

func (k *Keys) verify(s signed, now time.Time) (who Signer, err error) {
	defer func() { // what reads the signature is large, and the signature is somebody else's
		if p := recover(); p != nil {
			who, err = Signer{}, malformed("its signature cannot be read: %v", p)
		}
	}()
	switch {
	case bytes.HasPrefix(s.text, begin(framePGP)):
		return k.verifyPGP(s, now)
	case bytes.HasPrefix(s.text, begin(frameSSH)):
		return k.verifySSH(s)
	case bytes.HasPrefix(s.text, begin(frameX509)):
		return Signer{}, refuse(Unsupported, "", "sign with OpenPGP (git config gpg.format openpgp) or SSH (git config gpg.format ssh)", "it has an X.509 signature, as gpgsm makes them, which is not supported")
	case bytes.HasPrefix(s.text, begin(framePGPMessage)):
		return Signer{}, refuse(Unsupported, "", "sign it again; gpg makes PGP SIGNATURE for Git", "its signature is a PGP MESSAGE, which is not supported")
	}
	return Signer{}, malformed("its signature is of an unknown kind")
}

// worse is the error that tells more, when several keys were tried.
func worse(a, b error) error {
	if a == nil || errors.Is(b, a) {
		return b
	}
	order := []Reason{UnknownSigner, Bad, Malformed, Unsupported, NotYetValid, Expired, Revoked}
	for _, r := range order {
		if ReasonOf(a) == r {
			return b
		}
		if ReasonOf(b) == r {
			return a
		}
	}
	return a
}
