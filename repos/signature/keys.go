package signature

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// The keys of a Secret that have a meaning of their own.
const (
	keyAllowed    = "allowed_signers"
	keyAuthorized = "authorized_keys"
	keyRevoked    = "revoked_keys"
)

// Keys are those whose signatures count. They may be used from any goroutine.
type Keys struct {
	// rings are OpenPGP keys in binary form. They are read for each signature, as the library writes into what it has read.
	rings   [][]byte
	allowed []allowedSigner
	revoked []sshKey
	digest  string
}

// KeysError says which value of a Secret is wrong, and never what is in it.
type KeysError struct {
	// Key of the Secret; empty when there is none.
	Key string
	Err error
	// Hint is the next step for a person; Error does not print it.
	Hint string
}

// Error names the key of the Secret.
func (e *KeysError) Error() string {
	if e.Key == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("key %s: %v", e.Key, e.Err)
}

// Unwrap gives the cause.
func (e *KeysError) Unwrap() error { return e.Err }

// Format of what ParseKeys reads, for hints.
const wanted = "give OpenPGP keys as gpg --armor --export prints them, under names that end in .asc; for SSH give allowed_signers, one line PRINCIPAL KEYTYPE KEY for each signer, or public keys under names that end in .pub"

// ParseKeys reads the data of a Secret. As for Flux each value counts, whatever its name: OpenPGP public keys, armored or not, several of them in one if need be, and public keys
// of SSH, one a line, as in authorized_keys and files .pub. allowed_signers is a file as in ssh-keygen(1), and revoked_keys
// are public keys of SSH that do not count wherever else they stand.
func ParseKeys(data map[string][]byte) (*Keys, error) {
	k := &Keys{digest: digest(data)}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if err := k.add(name, data[name]); err != nil {
			return nil, &KeysError{Key: bounded(name), Err: err, Hint: wanted}
		}
	}
	if len(k.rings) == 0 && len(k.allowed) == 0 {
		return nil, &KeysError{Err: errors.New("it has no key of anybody who may sign"), Hint: wanted}
	}
	if _, err := k.ring(); err != nil {
		return nil, err
	}
	return k, nil
}

// Digest stands for all that ParseKeys was given.
func (k *Keys) Digest() string { return k.digest }

func (k *Keys) add(name string, value []byte) (err error) {
	var more []allowedSigner
	switch {
	case name == keyRevoked:
		k.revoked, err = readPublicKeys(value)
		return err
	case name == keyAllowed || strings.HasSuffix(name, "."+keyAllowed):
		more, err = readAllowedSigners(value)
	case bytes.Contains(value, begin(framePrivate)):
		return errPrivate
	case bytes.Contains(value, []byte("PRIVATE KEY-----")):
		return errPrivate
	case bytes.Contains(value, begin(framePublic)):
		return k.addArmored(value)
	case len(value) > 0 && value[0]&0x80 != 0:
		_, _, err = readRing(value)
		k.rings = append(k.rings, value)
		return err
	case len(bytes.TrimSpace(value)) == 0:
		return errors.New("it is empty")
	default:
		var keys []sshKey
		keys, err = readPublicKeys(value)
		for _, key := range keys {
			more = append(more, allowedSigner{key: key, line: key.comment})
		}
	}
	k.allowed = append(k.allowed, more...)
	return err
}

// addArmored takes every block of keys; text around them is for people.
func (k *Keys) addArmored(value []byte) error {
	for {
		start := bytes.Index(value, begin(framePublic))
		if start < 0 {
			return nil
		}
		value = value[start:]
		last := []byte("-----END " + framePublic + "-----")
		end := bytes.Index(value, last)
		if end < 0 {
			return errors.New("the end of a block is missing")
		}
		end += len(last)
		data, err := unframe(value[:end], framePublic)
		if err != nil {
			return err
		}
		if _, _, err := readRing(data); err != nil {
			return err
		}
		k.rings = append(k.rings, data)
		value = value[end:]
	}
}

// ring reads all OpenPGP keys.
func (k *Keys) ring() (openpgp.EntityList, error) {
	var all openpgp.EntityList
	var revocations []*packet.Signature
	for _, data := range k.rings {
		ring, more, err := readRing(data)
		if err != nil {
			return nil, err
		}
		all, revocations = append(all, ring...), append(revocations, more...)
	}
	return merge(all, revocations), nil
}

// digest covers every key and value, each with its length before it, so that no two Secrets look alike.
func digest(data map[string][]byte) string {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		for _, part := range [][]byte{[]byte(key), data[key]} {
			_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // a hash takes everything
			_, _ = h.Write(part)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
