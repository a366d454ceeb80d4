package repos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"weak"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// maxChain is how many packs a commit may be spread over before everything is fetched anew into one.
const maxChain = 20

// maxBases is how many commits the server is told of that we have.
const maxBases = 3

// base is a commit that is here, on which a fetch can build.
type base struct {
	commit Commit
	mark   mark
}

// fetch brings a commit into the store. It tries, in this order: what is new since the commits that are here; the whole
// commit; and, from servers that hand out only what a ref points at, the history down to it.
func (m *remote) fetch(ctx context.Context, rev Revision) error {
	if err := m.makeFolders(); err != nil { // whatever cleans up temporary files may have been here
		return storeTrouble(err)
	}
	bases := m.bases()
	if len(bases) > 0 {
		err := m.fetchOnce(ctx, rev, bases, func(adv *packp.AdvRefs) plan { return direct(adv, rev, bases) })
		switch KindOf(err) {
		case KindProtocol, KindCommitNotFound: // the server may stumble over what we have, or know nothing of it
		default:
			return err
		}
	}
	err := m.fetchOnce(ctx, rev, nil, func(adv *packp.AdvRefs) plan { return direct(adv, rev, nil) })
	if !errors.Is(err, errNotOurs) {
		return err
	}
	for _, depth := range []int{50, 1000, 0} {
		err = m.fetchOnce(ctx, rev, nil, func(adv *packp.AdvRefs) plan { return deepen(adv, rev, depth) })
		if !errors.Is(err, errTooShallow) {
			break
		}
	}
	if KindOf(err) == KindLimit {
		e, _ := errors.AsType[*Error](err)
		return fail(KindLimit, fmt.Errorf("fetch the history, as the server gives no commit by its id: %w", e.Err), "set uploadpack.allowReachableSHA1InWant on the server")
	}
	if errors.Is(err, errTooShallow) {
		return gone(rev)
	}
	return err
}

// gone is the error for a commit that the server does not have, or has no more.
func gone(rev Revision) error {
	of := "any branch"
	if rev.Ref != "" {
		of = strconv.Quote(rev.Ref)
	}
	return failf(KindCommitNotFound, "the ref may have moved meanwhile, which the next pass sees; otherwise the commit is gone from the server",
		"commit %s is not in the history of %s", rev.Commit, of)
}

// errTooShallow is a pack whose history ends before the commit.
var errTooShallow = errors.New("the commit lies deeper")

// bases are commits on which a fetch can build: used lately, not spread over too many packs, and with the same large
// files left out.
func (m *remote) bases() []base {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bases []base
	for _, c := range m.commitsByUse() {
		k, err := m.readMark(c.commit)
		if err != nil || len(k.Packs) >= maxChain || (k.BlobLimit != 0 && k.BlobLimit != m.opts.Limits.BlobBytes) {
			continue
		}
		// All bases are used at once, so together they must not be spread too far.
		if packs := packsOf(append(bases, base{c.commit, k})); len(packs) >= maxChain {
			continue
		}
		if bases = append(bases, base{c.commit, k}); len(bases) == maxBases {
			break
		}
	}
	return bases
}

func packsOf(bases []base) []string {
	var names []string
	for _, b := range bases {
		for _, name := range b.mark.Packs {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// plan is what to ask a server for; without objects there is nothing to ask.
type plan struct {
	want
	deepening bool
}

// direct asks for the commit itself, at depth 1.
func direct(adv *packp.AdvRefs, rev Revision, bases []base) plan {
	hash := rev.Commit.hash()
	p := plan{want: want{objects: []plumbing.Hash{tagOf(adv, hash)}}}
	if adv.Capabilities.Supports(capability.Shallow) {
		p.depth = 1
		for _, b := range bases {
			p.have = append(p.have, b.commit.hash())
		}
	}
	return p
}

// tagOf gives the id of an annotated tag on a commit that no branch points at: servers that hand out only what a ref
// points at want to be asked for the tag.
func tagOf(adv *packp.AdvRefs, commit plumbing.Hash) plumbing.Hash {
	for _, h := range adv.References {
		if h == commit {
			return commit
		}
	}
	for name, h := range adv.Peeled {
		if tag, ok := adv.References[name]; ok && h == commit {
			return tag
		}
	}
	return commit
}

// deepen asks for the history of the ref, or of all branches when the commit came without one.
func deepen(adv *packp.AdvRefs, rev Revision, depth int) plan {
	p := plan{want: want{depth: depth}, deepening: true}
	for _, name := range []string{"refs/heads/" + rev.Ref, "refs/tags/" + rev.Ref, rev.Ref} {
		if h, ok := adv.References[name]; ok && rev.Ref != "" {
			p.objects = []plumbing.Hash{h}
			return p
		}
	}
	const enough = 256
	for _, prefix := range []string{"refs/heads/", "refs/"} {
		for name, h := range adv.References {
			if strings.HasPrefix(name, prefix) && len(p.objects) < enough {
				p.objects = append(p.objects, h)
			}
		}
	}
	return p
}

// fetchOnce holds one conversation and, if the commit is complete afterwards, marks it so.
func (m *remote) fetchOnce(ctx context.Context, rev Revision, bases []base, makePlan func(*packp.AdvRefs) plan) error {
	older, err := m.openBases(bases)
	if err != nil {
		return err
	}
	s, err := m.transport.open(ctx, toFetch)
	if err != nil {
		return err
	}
	defer s.close()
	adv, err := s.refs(ctx)
	if err != nil {
		return err
	}
	p := makePlan(adv)
	if len(p.objects) == 0 {
		return errTooShallow
	}
	blobLimit := int64(0)
	if adv.Capabilities.Supports(capability.Filter) {
		blobLimit = m.opts.Limits.BlobBytes
		p.filter = packp.FilterBlobLimit(uint64(blobLimit)+1, packp.BlobLimitPrefixNone) // Git counts from "at least"
	}
	request, err := p.encode(adv.Capabilities)
	if err != nil {
		return err
	}
	body, err := s.ask(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	answer, err := newPackReader(body, p.depth, m.auth.scrub)
	if err != nil {
		return err
	}
	received, err := receivePack(ctx, m.packDir(), answer, older, m.opts.Limits)
	if err != nil {
		return err
	}
	err = m.complete(rev.Commit, received, older, max(blobLimit, blobLimitOf(bases)))
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		if p.deepening && answer.shallow {
			return errTooShallow
		}
		if p.deepening {
			return gone(rev)
		}
		return failf(KindProtocol, "", "the server left something out: %w", err)
	}
	if err != nil && KindOf(err) == "" {
		return failf(KindContent, "the ref must point at a commit that git fsck finds nothing wrong with", "read what was fetched: %w", err)
	}
	return err
}

// openBases opens the packs that a fetch builds on.
func (m *remote) openBases(bases []base) (objects, error) {
	if len(bases) == 0 {
		return objects{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	older, err := m.openAll(packsOf(bases))
	if err != nil {
		m.discard()
		return objects{}, failf(KindProtocol, "", "open what this builds on: %w", err) // so that the whole is fetched
	}
	return older, nil
}

func blobLimitOf(bases []base) int64 {
	var limit int64
	for _, b := range bases {
		limit = max(limit, b.mark.BlobLimit)
	}
	return limit
}

// complete checks that everything of a commit is in the new pack and the older ones, and marks the commit.
func (m *remote) complete(c Commit, received *pack, older objects, blobLimit int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, err := stampOf(filepath.Join(m.packDir(), received.name+".pack")); err == nil {
		m.packs[received.name], m.checked[received.name] = weak.Make(received), at
	}
	all := objects{packs: append([]*pack{received}, older.packs...)}
	info, err := readCommit(all, c)
	if err != nil {
		return err
	}
	k := mark{BlobLimit: blobLimit}
	w := walker{objects: all, limit: m.opts.Limits.TreeEntries, filtered: blobLimit > 0, counts: map[plumbing.Hash]int{}}
	if k.Entries, err = w.count(info.tree, 0); err != nil {
		return err
	}
	for _, p := range all.packs {
		if !slices.Contains(k.Packs, p.name) {
			k.Packs = append(k.Packs, p.name)
		}
	}
	if err := writeFile(m.markFile(c), func(w io.Writer) error { return json.NewEncoder(w).Encode(k) }); err != nil {
		return storeTrouble(err)
	}
	m.prune()
	return nil
}
