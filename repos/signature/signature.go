package signature

import (
	"errors"
	"fmt"
)

// Method is the kind of a signature.
type Method string

// The methods that are supported.
const (
	OpenPGP Method = "OpenPGP"
	SSH     Method = "SSH"
)

// Signer is who signed.
type Signer struct {
	Method Method
	// Key is the fingerprint of the key that signed: hexadecimal for OpenPGP, SHA256:… for SSH.
	Key string
	// Name is the user of an OpenPGP key, or the principals of an SSH key; empty where none is given.
	Name string
}

// String writes "Jane <jane@example.com>, OpenPGP key 0123…".
func (s Signer) String() string {
	key := fmt.Sprintf("%s key %s", s.Method, s.Key)
	if s.Name == "" {
		return key
	}
	return s.Name + ", " + key
}

// Reason is why a signature does not count.
type Reason string

// The reasons of an Error.
const (
	// Unsigned is an object without a signature.
	Unsigned Reason = "Unsigned"
	// UnknownSigner is a signature by a key that is not among those that are trusted. Whether it is right is not known.
	UnknownSigner Reason = "UnknownSigner"
	// Expired is a right signature by a key, or with a validity, that is over.
	Expired Reason = "Expired"
	// NotYetValid is a right signature by a key that is not valid yet.
	NotYetValid Reason = "NotYetValid"
	// Revoked is a right signature by a key that was revoked.
	Revoked Reason = "Revoked"
	// Bad is a signature over something else, or by a key that may not make it.
	Bad Reason = "Bad"
	// Malformed is a signature or an object that cannot be read as one.
	Malformed Reason = "Malformed"
	// Unsupported is a signature of a kind that is not looked into: X.509, or algorithms that are broken or unknown.
	Unsupported Reason = "Unsupported"
)

// Error says why a signature does not count.
type Error struct {
	Reason Reason
	// Key that the signature names, as in Signer; empty where it names none.
	Key string
	// Err is what was found.
	Err error
	// Hint is the next step for a person; Error does not print it.
	Hint string
}

// Error writes what was found.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Passing tells whether time alone may change the answer.
func (e *Error) Passing() bool { return e.Reason == NotYetValid }

// ReasonOf finds the Reason of an error of this package, however it is wrapped; empty for others.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func refuse(reason Reason, key, hint, format string, args ...any) *Error {
	return &Error{Reason: reason, Key: key, Hint: hint, Err: fmt.Errorf(format, args...)}
}

func malformed(format string, args ...any) *Error {
	return refuse(Malformed, "", "sign it again with git commit --amend -S, or git tag -s", format, args...)
}
