package sync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// An object that moves between Moorings is handed over (package apply says how). For that, a Mooring that drops an object must know who wants it:
//
//   - Of a Mooring that follows the same ref of the same repository: its path is rendered at the very commit. So it does not matter which of the two
//     is looked after first, what the agent remembers, or whether the other one is suspended. A path that once was in force and does not render
//     at this commit may stand for anything: nothing is deleted that it might have. Nor is what it claims: its last commit that could be planned wanted it, and the newer
//     one, which may be refused, is not in force.
//   - Of any other: what its own last pass wanted. Before its first pass since the agent started, what it claims: the objects that its plan was refused
//     for are written on the Mooring (ClaimsAnnotation) before anybody is told of the refusal.
//
// It costs nothing as long as nothing is dropped.

// lister lists the Moorings of the cluster.
type lister interface {
	List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error
}

// neighbours are the other Moorings as one pass sees them.
type neighbours struct {
	pass *pass
	at   []repos.Revision // which the pass plans for, and the newest that it knows

	once sync.Once
	list v1alpha1.MooringList // of one moment, for a plan
	err  error
}

// Heirs says who wants objects that the Mooring does not want.
func (n *neighbours) Heirs(ctx context.Context, unwanted []render.ID) (map[render.ID]apply.Heir, error) {
	all, err := n.others(ctx)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	heirs := make(map[render.ID]apply.Heir)
	for _, other := range all {
		known := n.wishesOf(ctx, other)
		for _, id := range unwanted {
			if n.pass.wanted.Has(id) { // what is not wanted by the plan may be by the newest commit
				continue
			}
			// One that surely wants it goes before one that may.
			if have, ok := heirs[id]; ok && have.Unsure == "" {
				continue
			}
			if heir, ok := heirOf(other, known, id); ok && (heir.Unsure == "" || heirs[id].ID == "") {
				heirs[id] = heir
			}
		}
	}
	return heirs, nil
}

func heirOf(m *v1alpha1.Mooring, known []wish, id render.ID) (apply.Heir, bool) {
	heir := apply.Heir{ID: ID(m), Name: m.Namespace + "/" + m.Name}
	if slices.ContainsFunc(known, func(w wish) bool { return w.has(id) }) {
		return heir, true
	}
	for _, w := range known {
		if w.unsure != "" && (!w.claimsOnly || claimed(m, id)) {
			heir.Unsure = w.unsure
			return heir, true
		}
	}
	return heir, false
}

// kept is what is kept in force of the target that was applied last. Where the newest commit is refused for nothing but objects that another Mooring still has, that
// one may be waiting for what the newest commit gives away here. So that is not kept, and package apply offers it. Else two Moorings that give each
// other an object would both be refused for ever.
func (p *pass) kept(t *target) *target {
	if p.wanted == nil || !foreignAlone(p.out.Err) {
		return t
	}
	set := *t.set
	set.Objects = slices.DeleteFunc(slices.Clone(set.Objects), func(o render.Object) bool { return !p.wanted.Has(o.ID()) })
	kept := *t
	kept.set = &set
	return &kept
}

// foreignAlone is true for a refusal for nothing but objects that other Moorings have.
func foreignAlone(refused error) bool {
	faults := apply.ObjectErrors(refused)
	return len(faults) > 0 && !slices.ContainsFunc(faults, func(e *apply.ObjectError) bool {
		_, foreign := errors.AsType[*apply.ForeignError](e.Err)
		return !foreign
	})
}

// Undecided says why the word of a Mooring that was offered something may not be its last.
func (n *neighbours) Undecided(ctx context.Context, id string) apply.Heir {
	all, err := n.others(ctx)
	if err != nil {
		return apply.Heir{ID: id, Name: id, Unsure: err.Error()}
	}
	for _, m := range all {
		if ID(m) != id {
			continue
		}
		heir := apply.Heir{ID: id, Name: m.Namespace + "/" + m.Name}
		if !n.decided(m) {
			heir.Unsure = "it was offered to it, and no newer commit of it is in force yet"
		}
		return heir
	}
	return apply.Heir{}
}

// decided is true when the newest commit of a Mooring that is known here is in force.
func (n *neighbours) decided(m *v1alpha1.Mooring) bool {
	if sameSource(n.pass.mooring, m) {
		rev, err := repos.ParseRevision(m.Status.LastAppliedRevision)
		return err == nil && rev.Commit == n.pass.out.Newest.Commit
	}
	return m.Status.LastAppliedRevision == m.Status.LastAttemptedRevision
}

// Name of the Mooring with an ApplySet id.
func (n *neighbours) Name(ctx context.Context, id string) string {
	if err := n.read(ctx); err != nil {
		// It is for a message. That it is none must not be said, because then it could be adopted from.
		return "(whose name cannot be read: " + err.Error() + ")"
	}
	for i := range n.list.Items { // one that is being deleted as well: it lets go by itself
		if m := &n.list.Items[i]; ID(m) == id {
			return m.Namespace + "/" + m.Name
		}
	}
	return ""
}

// read lists the Moorings, once for a plan. It is never answered out of a cache: one that was made a moment ago counts.
func (n *neighbours) read(ctx context.Context) error {
	n.once.Do(func() {
		n.err = n.pass.listMoorings(ctx, &n.list)
	})
	return n.err
}

// listMoorings of the cluster, as they are now.
func (p *pass) listMoorings(ctx context.Context, list *v1alpha1.MooringList) error {
	err := p.moorings.List(ctx, list)
	if apierrors.IsForbidden(err) && p.parent.client == nil {
		// A preview with the rights of a user, who may see one namespace only.
		err = p.moorings.List(ctx, list, client.InNamespace(p.mooring.Namespace))
	}
	if err != nil {
		return fmt.Errorf("list Moorings: %w", err)
	}
	return nil
}

// others are the other Moorings that are not being deleted, by name.
func (n *neighbours) others(ctx context.Context) ([]*v1alpha1.Mooring, error) {
	if err := n.read(ctx); err != nil {
		return nil, err
	}
	var all []*v1alpha1.Mooring
	for i := range n.list.Items {
		m := &n.list.Items[i]
		if m.DeletionTimestamp.IsZero() && client.ObjectKeyFromObject(m) != client.ObjectKeyFromObject(n.pass.mooring) {
			m.Default()
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(x, y *v1alpha1.Mooring) int {
		return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
	})
	return all, nil
}

// wishesOf another Mooring.
func (n *neighbours) wishesOf(ctx context.Context, m *v1alpha1.Mooring) []wish {
	p := n.pass
	own, passed := p.wishes.own(m)
	if !sameSource(p.mooring, m) {
		switch {
		case !passed:
			own = wish{unsure: "it claims it, and was not looked at since the agent started", claimsOnly: true}
		case own.set == nil || own.orUnsure(m).unsure != "":
			own = wish{unsure: "it claims it, and its newest commit does not render, or is empty", claimsOnly: true}
		}
		return []wish{own}
	}
	leaving := !p.mooring.DeletionTimestamp.IsZero()
	var known []wish
	for _, rev := range n.at {
		if rev.IsZero() || slices.ContainsFunc(known, func(w wish) bool { return w.key.commit == rev.Commit }) {
			continue
		}
		w, err := p.wishAt(ctx, m, rev)
		switch {
		case err == nil:
			known = append(known, w)
		case !leaving: // a Mooring can be deleted while Git is away
			known = append(known, wish{key: targetKey{commit: rev.Commit}, unsure: err.Error()})
		}
	}
	if leaving && passed {
		known = append(known, own)
	}
	if m.Annotations[v1alpha1.ClaimsAnnotation] != "" {
		// The claim stands until a newer commit of it is in force: until then, that the commit at hand does not have the object is no word.
		known = append(known, wish{unsure: "it claims it, and no newer commit of it is in force yet", claimsOnly: true})
	}
	return known
}

// sameSource is true for Moorings that follow the same ref of the same repository.
func sameSource(x, y *v1alpha1.Mooring) bool {
	return plainURL(x.Spec.Source.URL) == plainURL(y.Spec.Source.URL) && reflect.DeepEqual(x.Spec.Source.Ref, y.Spec.Source.Ref)
}

func plainURL(url string) string {
	return strings.TrimSuffix(strings.TrimRight(url, "/"), ".git")
}

// wishAt is what another Mooring of the same source wants at a revision.
func (p *pass) wishAt(ctx context.Context, m *v1alpha1.Mooring, rev repos.Revision) (wish, error) {
	key := keyOf(m, rev.Commit)
	if w, ok := p.wishes.at(m, key); ok {
		return w.orUnsure(m), nil
	}
	remote, err := p.remote(ctx)
	if err != nil {
		return wish{}, err
	}
	remote.RecurseSubmodules = key.modules
	t := &target{key: key, rev: rev}
	snapshot, err := p.snapshot(ctx, remote, rev, m.Spec.Path)
	if err == nil {
		t.unfit = p.read(ctx, report.StagePlan, snapshot, func(files fs.FS) (err error) {
			t.set, err = p.renderer.Render(ctx, files, m.Spec.Path)
			return err
		})
	}
	if ctx.Err() != nil {
		return wish{}, context.Cause(ctx)
	}
	if err := errors.Join(err, t.unfit); !final(err) { // what went wrong on the way says nothing about the commit
		return wish{}, fmt.Errorf("read what it has at %s: %w", rev, err)
	}
	w := wishOf(t)
	p.wishes.noteFor(m, w)
	return w.orUnsure(m), nil
}

// wish is what a Mooring wants at a commit.
type wish struct {
	key targetKey
	// set that it wants; nil when the commit does not render.
	set *render.Set
	// unsure is why it is not known what it wants, and claimsOnly says that this is so of the objects that it claims alone.
	unsure     string
	claimsOnly bool
	fault      string
}

func wishOf(t *target) wish {
	if t.unfit != nil {
		return wish{key: t.key, fault: t.unfit.Error()}
	}
	return wish{key: t.key, set: t.set}
}

func (w wish) has(id render.ID) bool { return w.set.Has(id) }

// orUnsure says of a commit that does not render, or that renders to nothing where there was something, that nobody knows what it wants. One that
// never worked holds nobody up.
func (w wish) orUnsure(m *v1alpha1.Mooring) wish {
	switch {
	case w.set == nil && m.Status.LastAppliedRevision != "":
		w.unsure = "its path does not render at this commit: " + w.fault
	case w.set != nil && len(w.set.Objects) == 0 && m.Status.Inventory != nil && m.Status.Inventory.Objects > 0:
		w.unsure = "its path is empty at this commit, and was not"
	}
	return w
}

// wishes are what Moorings want, as far as this agent rendered it. They are safe for concurrent use.
type wishes struct {
	mu     sync.Mutex
	latest map[types.NamespacedName]wish // guarded by mu: by their own last pass
	asked  map[types.NamespacedName]wish // guarded by mu: rendered for another Mooring
}

// note what the Mooring's own pass wants.
func (ws *wishes) note(m *v1alpha1.Mooring, t *target) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.latest == nil {
		ws.latest = make(map[types.NamespacedName]wish)
	}
	name := client.ObjectKeyFromObject(m)
	if have, ok := ws.latest[name]; !ok || have.key != t.key {
		ws.latest[name] = wishOf(t)
	}
}

func (ws *wishes) noteFor(m *v1alpha1.Mooring, w wish) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.asked == nil {
		ws.asked = make(map[types.NamespacedName]wish)
	}
	ws.asked[client.ObjectKeyFromObject(m)] = w
}

// own is what the Mooring's own last pass wanted.
func (ws *wishes) own(m *v1alpha1.Mooring) (wish, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w, ok := ws.latest[client.ObjectKeyFromObject(m)]
	return w, ok
}

// at is what the Mooring wants at a commit, whoever rendered it.
func (ws *wishes) at(m *v1alpha1.Mooring, key targetKey) (wish, bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	name := client.ObjectKeyFromObject(m)
	for _, known := range []map[types.NamespacedName]wish{ws.latest, ws.asked} {
		if w, ok := known[name]; ok && w.key == key {
			return w, true
		}
	}
	return wish{}, false
}

func (ws *wishes) forget(name types.NamespacedName) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.latest, name)
	delete(ws.asked, name)
}
