// Package signature tells who signed a commit or a tag, and whether that is somebody who is trusted.
//
// ParseKeys reads the keys from the data of a Secret; Keys.VerifyCommit and Keys.VerifyTag look at an object in the form
// in which Git stores it. The answer is a Signer, or an *Error whose Reason says why it is not one. What cannot be
// understood is refused: there is no answer in between.
//
// # What is signed
//
// A commit has its signature in the header gpgsig, and what is signed is the commit without that header. The header
// gpgsig-sha256, which belongs to the same commit in a repository with other ids, is left out as well. A tag has its
// signature at the end of its message. Git takes several signatures for none that is good, and so does this package: a
// second header, a second packet, and text around the signature are refused.
//
// # OpenPGP
//
// Signatures of version 4 over binary data, as gpg makes them for Git, by the primary key or by a subkey that may sign and
// that both keys have bound to each other. A key must be valid now, as for gpg and git verify-commit: once it has
// expired, or was revoked for whatever reason, it vouches for nothing, also not for what it signed before; one whose
// expiry was moved is valid again when the new form of the key is given. Where a key is given several times, all that is
// known of it counts together, a revocation certificate of its own included. SHA-1, MD5 and DSA are not accepted for
// signatures; gpg accepts some of these.
//
// # SSH
//
// Signatures of PROTOCOL.sshsig for the namespace git with SHA-256 or SHA-512, and RSA not with SHA-1. Who may sign
// stands in a file of allowed signers as in ssh-keygen(1), with the options cert-authority, namespaces, valid-after and
// valid-before. Such a signature does not say when it was made, so the times of these options and of certificates are
// compared with the committer's or tagger's clock, as git verify-commit does. Whoever has the key can put that back:
// a key that was stolen must be taken out, or written to revoked_keys.
//
// X.509 signatures are not supported, and refused by that name.
package signature
