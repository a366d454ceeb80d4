package repos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/mooring-dev/mooring/repos/signature"
)

// VerifyMode says what of a revision must be signed.
type VerifyMode string

// The modes.
const (
	// VerifyHead : the commit.
	VerifyHead VerifyMode = "Head"
	// VerifyTag : the annotated tag that the revision was found by.
	VerifyTag VerifyMode = "Tag"
	// VerifyTagAndHead : both.
	VerifyTagAndHead VerifyMode = "TagAndHead"
)

// Signers are those whose signatures count.
type Signers struct {
	keys *signature.Keys
}

// SignersFromSecret reads the data of a Kubernetes Secret: OpenPGP and SSH public keys, as signature.ParseKeys says. The error names the key that is wrong and never its value.
func SignersFromSecret(data map[string][]byte) (*Signers, error) {
	keys, err := signature.ParseKeys(data)
	if e, ok := errors.AsType[*signature.KeysError](err); ok {
		return nil, fail(KindCredentials, err, e.Hint)
	}
	if err != nil {
		return nil, fail(KindCredentials, err, "")
	}
	return &Signers{keys: keys}, nil
}

// Digest stands for all that was in the Secret.
func (s *Signers) Digest() string { return s.keys.Digest() }

// Signed is who signed a revision.
type Signed struct {
	// Commit and Tag are zero where the mode does not ask for them.
	Commit, Tag signature.Signer
}

// String names who signed.
func (s Signed) String() string {
	var who []string
	for _, signer := range []signature.Signer{s.Tag, s.Commit} {
		if text := signer.String(); signer != (signature.Signer{}) && (len(who) == 0 || who[0] != text) {
			who = append(who, text)
		}
	}
	return strings.Join(who, "; ")
}

// Verify tells who signed a revision. The commit is fetched if need be, the tag always asked for. A signature that does not count is an error of
// KindVerification, whose words are about the revision and do not name it; all others are of the way to it.
//
// A tag counts for the revision when it is the one of this name, says so itself, and points at this very commit: so nobody
// can let an old signed tag stand under a new name.
func (s *Store) Verify(ctx context.Context, r Remote, rev Revision, mode VerifyMode, by *Signers) (Signed, error) {
	const op = "verify"
	var signed Signed
	m, err := s.remote(r)
	switch {
	case err != nil:
	case !rev.Commit.valid():
		err = failf(KindRef, "ask Resolve for the commit first", "%q is not a commit id", clean(string(rev.Commit)))
	case mode != VerifyHead && mode != VerifyTag && mode != VerifyTagAndHead:
		err = failf(KindRef, "it is Head, Tag or TagAndHead", "%q is no mode of verification", clean(string(mode)))
	case mode != VerifyHead && rev.Ref == "":
		err = failf(KindRef, "name a tag in the source, or let the commit be verified (mode Head)", "%s was not found by a tag, so that there is no tag to verify", rev)
	}
	if err != nil {
		return signed, locate(op, redact(r.URL), err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if mode != VerifyHead {
		if signed.Tag, err = m.verifyTag(ctx, rev, by); err != nil {
			return Signed{}, m.unverified(ctx, op, err)
		}
	}
	if mode != VerifyTag {
		of := ""
		if mode == VerifyTagAndHead {
			of = "its commit: "
		}
		if signed.Commit, err = m.verifyCommit(ctx, rev, of, by); err != nil {
			return Signed{}, m.unverified(ctx, op, err)
		}
	}
	return signed, nil
}

// unverified leaves an answer as it is, which is the same wherever the commit came from, and completes what went wrong on the way to it.
func (m *remote) unverified(ctx context.Context, op string, err error) error {
	if KindOf(err) == KindVerification {
		return err
	}
	return within(ctx, op, m.url, m.opts.Timeout, err)
}

func (m *remote) verifyCommit(ctx context.Context, rev Revision, of string, by *Signers) (signature.Signer, error) {
	snap, err := m.snapshot(ctx, rev)
	if err != nil {
		return signature.Signer{}, err
	}
	o, _, _ := snap.tree.here()
	raw, err := o.read(rev.Commit.hash(), plumbing.CommitObject, maxCommitBytes)
	if err != nil {
		return signature.Signer{}, failf(KindStore, "it is fetched anew", "read commit %s: %w", rev.Commit, err)
	}
	who, err := by.keys.VerifyCommit(raw, time.Now())
	return who, notCounting(of, err)
}

func (m *remote) verifyTag(ctx context.Context, rev Revision, by *Signers) (signature.Signer, error) {
	raw, err := m.tag(ctx, rev)
	if err != nil {
		return signature.Signer{}, err
	}
	who, err := by.keys.VerifyTag(raw, time.Now())
	if err != nil {
		return signature.Signer{}, notCounting("its tag: ", err)
	}
	if err := tagIsOf(raw, rev); err != nil {
		return signature.Signer{}, failf(KindVerification, "make the tag anew: git tag -s "+rev.Ref, "its tag: %w", err)
	}
	return who, nil
}

// notCounting is the error of a signature that does not count.
func notCounting(what string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	if e, ok := errors.AsType[*signature.Error](err); ok {
		hint = e.Hint
	}
	return fail(KindVerification, fmt.Errorf("%s%w", what, err), hint)
}

// tagIsOf reads the first lines of a tag, which say what it is of and what it is called.
func tagIsOf(raw []byte, rev Revision) error {
	header, _, _ := bytes.Cut(raw, []byte("\n\n"))
	lines := append(strings.SplitN(string(header), "\n", 4), "", "", "")
	switch object, kind, name := lines[0], lines[1], lines[2]; {
	case kind != "type commit":
		return fmt.Errorf("it is not of a commit but says %q", clean(kind))
	case object != "object "+string(rev.Commit):
		return fmt.Errorf("it is not of commit %s but says %q", rev.Commit, clean(object))
	case name != "tag "+rev.Ref:
		return fmt.Errorf("it was signed under another name: it says %q", clean(name))
	}
	return nil
}

// maxTagBytes is how large a tag may be, its message included.
const maxTagBytes = 1 << 20

// tags are the last ones that were asked for. Their names are those of their content, so that they never change.
type tags struct {
	mu   sync.Mutex
	last []tagObject
}

type tagObject struct {
	id  plumbing.Hash
	raw []byte
}

const keepTags = 16

func (t *tags) get(id plumbing.Hash) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range t.last {
		if o.id == id {
			return o.raw
		}
	}
	return nil
}

func (t *tags) put(id plumbing.Hash, raw []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.last) == keepTags {
		t.last = append(t.last[:0], t.last[1:]...)
	}
	t.last = append(t.last, tagObject{id, raw})
}

// tag gives the object of the tag that a revision was found by, as Git stores it.
func (m *remote) tag(ctx context.Context, rev Revision) ([]byte, error) {
	var err error
	for _, filter := range []packp.Filter{packp.FilterTreeDepth(0), packp.FilterBlobNone(), ""} { // servers may allow some only
		var raw []byte
		raw, err = m.askTag(ctx, rev, filter)
		if KindOf(err) != KindProtocol || !strings.Contains(err.Error(), "filter") {
			return raw, err
		}
	}
	return nil, err
}

func (m *remote) askTag(ctx context.Context, rev Revision, filter packp.Filter) ([]byte, error) {
	var id plumbing.Hash
	var known []byte
	answer, err := m.ask(ctx, func(adv *packp.AdvRefs) (want, error) {
		name := "refs/tags/" + rev.Ref
		of, annotated := adv.Peeled[name]
		there := false
		id, there = adv.References[name]
		known = m.tags.get(id)
		switch {
		case !there:
			return want{}, fail(KindRefNotFound, Ref{Tag: rev.Ref}.missing(adv), "create it, or correct the name in the source")
		case !annotated:
			return want{}, failf(KindVerification, "make a signed one: git tag -s -f "+rev.Ref, "its tag is no annotated one, and only these can be signed")
		case of != rev.Commit.hash():
			return want{}, failf(KindVerification, "", "its tag points at commit %s by now", of)
		case known != nil:
			return want{}, errNothing
		}
		return want{objects: []plumbing.Hash{id}, have: []plumbing.Hash{of}, filter: filter, standing: true}, nil
	})
	if errors.Is(err, errNothing) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	defer answer.close()
	raw, err := readTagObject(ctx, answer, id, m.opts.Limits)
	if err != nil {
		return nil, err
	}
	answer.drain()
	m.tags.put(id, raw)
	return raw, nil
}

// readTagObject takes one tag out of a pack while it comes in.
func readTagObject(ctx context.Context, r io.Reader, id plumbing.Hash, limits Limits) ([]byte, error) {
	wire := &io.LimitedReader{R: r, N: limits.TotalBytes + 1}
	scan := packfile.NewScanner(wire)
	damaged := func(err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case wire.N <= 0:
			return failf(KindLimit, historyHint, "the server sends more than %s", size(limits.TotalBytes))
		}
		return failf(KindProtocol, "", "the pack is damaged: %w", err)
	}
	_, count, err := scan.Header()
	if err != nil {
		return nil, damaged(err)
	}
	for range count {
		h, err := scan.NextObjectHeader()
		if err != nil {
			return nil, damaged(err)
		}
		var b bytes.Buffer
		into := io.Discard
		if h.Type == plumbing.TagObject {
			if h.Length > maxTagBytes {
				return nil, failf(KindLimit, "", "a tag has more than %s", size(maxTagBytes))
			}
			into = &atMost{w: &b, left: maxTagBytes}
		}
		if _, _, err := scan.NextObject(into); err != nil {
			return nil, damaged(err)
		}
		if h.Type == plumbing.TagObject && plumbing.ComputeHash(plumbing.TagObject, b.Bytes()) == id {
			return b.Bytes(), nil
		}
	}
	return nil, failf(KindProtocol, "", "the server left the tag out")
}

// atMost refuses what is longer than it was announced to be.
type atMost struct {
	w    io.Writer
	left int
}

func (a *atMost) Write(p []byte) (int, error) {
	if a.left -= len(p); a.left < 0 {
		return 0, errors.New("an object is longer than announced")
	}
	return a.w.Write(p)
}
