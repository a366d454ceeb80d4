package repos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// maxChain is how many packs a commit may be spread over before everything is fetched anew into one. One of which only
// some files are here gets there never: tidy makes one pack of many before.
const maxChain = 20

// maxBases is how many commits the server is told of that we have.
const maxBases = 3

// base is a commit that is here, on which a fetch can build.
type base struct {
	commit Commit
	mark   mark
}

// fetch brings a commit into the store. It tries, in this order: what is new since the commits that are here; the commit
// alone; and, from servers that hand out only what a ref points at, the history down to it. Where the server can leave
// files out they stay away, but for those that are likely to be read; unless the whole commit is asked for.
func (m *remote) fetch(ctx context.Context, rev Revision, whole bool) error {
	if err := m.withRoom(m.makeFolders); err != nil { // whatever cleans up temporary files may have been here
		return storeTrouble(err)
	}
	a := &attempt{rev: rev, whole: whole, build: true}
	err := m.try(ctx, a, m.askAgain)
	if kind := KindOf(err); len(a.bases) > 0 && (kind == KindProtocol || kind == KindCommitNotFound) {
		// The server may stumble over what we have, or know nothing of it.
		a = &attempt{rev: rev, whole: whole}
		err = m.try(ctx, a, m.askAgain)
	}
	if errors.Is(err, errNotOurs) {
		err = m.deepen(ctx, rev)
	}
	if err == nil && a.sparse {
		return m.prefetch(ctx, rev)
	}
	return err
}

// deepen brings the history of the ref down to a commit.
func (m *remote) deepen(ctx context.Context, rev Revision) error {
	var err error
	for _, depth := range []int{50, 1000, 0} {
		err = m.try(ctx, &attempt{rev: rev, whole: true, deepen: true, depth: depth}, m.ask)
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

// bases are commits on which a fetch can build: used lately, not spread over too many packs, and with the same files left
// out. What is fetched without files can build on any commit, since no file comes that could build on a file.
func (m *remote) bases(sparse bool) []base {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bases []base
	commits, _ := m.commitsByUse() // at worst everything comes anew
	for _, c := range commits {
		k, err := m.readMark(c.commit)
		fits := sparse || !k.Sparse && (k.BlobLimit == 0 || k.BlobLimit == m.opts.Limits.BlobBytes)
		if err != nil || !fits || len(k.Packs) >= maxChain {
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

// attempt is one way to fetch a commit.
type attempt struct {
	rev    Revision
	whole  bool // with all files
	build  bool // on what is here
	deepen bool // with the history of the ref, as far as depth
	depth  int

	// What was chosen by what the server can.
	sparse    bool
	blobLimit int64
	bases     []base
	older     objects
}

// choose writes the request.
func (a *attempt) choose(m *remote, adv *packp.AdvRefs) (want, error) {
	a.sparse, a.blobLimit, a.bases, a.older = !a.whole && m.canBeSparse(adv.Capabilities), 0, nil, objects{}
	var filter packp.Filter
	switch {
	case a.sparse:
		filter = packp.FilterBlobNone()
	case adv.Capabilities.Supports(capability.Filter):
		a.blobLimit = m.opts.Limits.BlobBytes
		filter = packp.FilterBlobLimit(uint64(a.blobLimit)+1, packp.BlobLimitPrefixNone) // Git counts from "at least"
	}
	if a.deepen {
		return a.history(adv, filter)
	}
	w := want{objects: []plumbing.Hash{tagOf(adv, a.rev.Commit.hash())}, filter: filter}
	if adv.Capabilities.Supports(capability.Shallow) {
		w.depth = 1
		if a.build {
			a.bases = m.bases(a.sparse)
		}
		for _, b := range a.bases {
			w.have = append(w.have, b.commit.hash())
			a.blobLimit = max(a.blobLimit, b.mark.BlobLimit)
		}
	}
	var err error
	a.older, err = m.openBases(a.bases)
	return w, err
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

// history asks for that of the ref, or of all branches when the commit came without one.
func (a *attempt) history(adv *packp.AdvRefs, filter packp.Filter) (want, error) {
	w := want{depth: a.depth, filter: filter}
	for _, name := range []string{"refs/heads/" + a.rev.Ref, "refs/tags/" + a.rev.Ref, a.rev.Ref} {
		if h, ok := adv.References[name]; ok && a.rev.Ref != "" {
			w.objects = []plumbing.Hash{h}
			return w, nil
		}
	}
	const enough = 256
	for _, prefix := range []string{"refs/heads/", "refs/"} {
		for name, h := range adv.References {
			if strings.HasPrefix(name, prefix) && len(w.objects) < enough {
				w.objects = append(w.objects, h)
			}
		}
	}
	if len(w.objects) == 0 {
		return w, errTooShallow
	}
	return w, nil
}

// try holds one conversation and, if the commit is complete afterwards, marks it so; two, if room had to be made for it.
func (m *remote) try(ctx context.Context, a *attempt, ask func(context.Context, wanting) (*answer, error)) error {
	return m.withRoom(func() error { return m.converse(ctx, a, ask) })
}

func (m *remote) converse(ctx context.Context, a *attempt, ask func(context.Context, wanting) (*answer, error)) error {
	answer, err := ask(ctx, func(adv *packp.AdvRefs) (want, error) { return a.choose(m, adv) })
	if err != nil {
		return err
	}
	defer answer.close()
	received, err := receivePack(ctx, m.packDir(), answer, a.older, packLimits{Limits: m.opts.Limits})
	if err != nil {
		return err
	}
	answer.drain()
	err = m.complete(a, received)
	if err != nil {
		m.drop(received) // tries may be many, and each may bring another one
	}
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		if a.deepen && answer.shallow {
			return errTooShallow
		}
		if a.deepen {
			return gone(a.rev)
		}
		return failf(KindProtocol, "", "the server left something out: %w", err)
	}
	if passes(err) && KindOf(err) == "" {
		return storeTrouble(err)
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
		if !passes(err) {
			m.discard()
		}
		return objects{}, failf(KindProtocol, "", "open what this builds on: %w", err) // so that the whole is fetched
	}
	return older, nil
}

// complete checks that everything of a commit is in the new pack and the older ones, and marks the commit.
func (m *remote) complete(a *attempt, received *pack) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shelve(received)
	all := objects{packs: append([]*pack{received}, a.older.packs...)}
	info, err := readCommit(all, a.rev.Commit)
	if err != nil {
		return err
	}
	k := mark{Sparse: a.sparse, BlobLimit: a.blobLimit}
	known := m.counted
	m.counted = counted{}
	if !slices.ContainsFunc(a.bases, func(b base) bool { return b.commit == known.commit }) || len(known.trees) > maxCounted {
		known.trees = map[plumbing.Hash]int{}
	}
	w := walker{objects: all, limit: m.opts.Limits.TreeEntries, filtered: a.sparse || a.blobLimit > 0, counts: known.trees}
	if k.Entries, err = w.count(info.tree, 0); err != nil {
		return err
	}
	for _, p := range all.packs {
		if !slices.Contains(k.Packs, p.name) {
			k.Packs = append(k.Packs, p.name)
		}
	}
	if err := m.writeMark(a.rev.Commit, k); err != nil {
		return err
	}
	m.counted = counted{a.rev.Commit, w.counts}
	m.prune()
	return nil
}

func (m *remote) writeMark(c Commit, k mark) error {
	if err := writeFile(m.markFile(c), func(w io.Writer) error { return json.NewEncoder(w).Encode(k) }); err != nil {
		return storeTrouble(err)
	}
	return nil
}
