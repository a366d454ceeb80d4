package deletes_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/test/proof/witness"
)

// place is where one sequence is played: a namespace, two Moorings, and the repository.
type place struct {
	testing.TB
	*stage
	ns       string
	moorings [2]*mooring
	commits  []commit
	since    []uint64 // the revision of the cluster at which each commit became the newest
	seen     []bool   // a pass came while it was the newest
	copies   map[render.ID]bool

	applier *apply.Applier
	wire    *wire
	told    []string // what came of each op
}

// stage is what all sequences share.
type stage struct {
	config  *rest.Config
	objects dynamic.Interface
	witness *witness.Witness
	judged  atomic.Int64 // deletions
}

// quietPasses of each Mooring after which nothing may change any more.
const quietPasses = 3

// play a sequence in a namespace, and give what is wrong.
func play(ctx context.Context, t testing.TB, s *stage, ns string, all sequence) (faults, told []string, err error) {
	p := &place{TB: t, stage: s, ns: ns, copies: make(map[render.ID]bool), wire: &wire{left: -1}}
	for i := range p.moorings {
		p.moorings[i] = &mooring{place: p, index: i, id: apply.ApplySetID(names[i], ns, "Mooring", "mooring.dev"), inForce: -1, had: -1}
	}
	if err := p.newAgent(); err != nil {
		return nil, nil, err
	}
	if err := p.push(ctx, commit{folders: [2]folder{{}, {}}}); err != nil {
		return nil, nil, err
	}
	for i, o := range all {
		if err := p.do(ctx, o); err != nil {
			return nil, p.told, fmt.Errorf("step %d, %s: %w", i+1, o, err)
		}
	}
	faults, err = p.judge(ctx)
	return faults, p.told, err
}

func (p *place) tell(format string, args ...any) {
	p.told = append(p.told, fmt.Sprintf(format, args...))
}

func (p *place) newAgent() (err error) {
	p.applier, err = apply.New(p.wire.config(p.config), apply.Options{GateTimeout: 20 * time.Second})
	return err
}

func (p *place) newest() commit { return p.commits[len(p.commits)-1] }

// push makes a commit the newest one.
func (p *place) push(ctx context.Context, c commit) error {
	now, err := p.witness.Now(ctx)
	if err != nil {
		return err
	}
	p.commits, p.since, p.seen = append(p.commits, c), append(p.since, now), append(p.seen, false)
	return nil
}

func (p *place) do(ctx context.Context, o op) error {
	if slices.Contains([]verb{pass, cut, together}, o.verb) {
		p.seen[len(p.seen)-1] = true
	}
	switch o.verb {
	case pass:
		p.pass(ctx, o)
	case together:
		var g errgroup.Group
		told := [2]string{}
		for i, m := range p.moorings {
			g.Go(func() error { told[i] = fmt.Sprintf("%s: %s", names[i], word(m.pass(ctx, p.applier))); return nil })
		}
		_ = g.Wait() // no goroutine returns an error
		p.tell("%s: %s; %s", o, told[0], told[1])
	case cut:
		p.wire.cut(o.n)
		p.pass(ctx, o)
		p.wire.cut(-1)
		return p.newAgent()
	case restart:
		p.tell("%s", o)
		return p.newAgent()
	case copied:
		return p.copy(ctx, o)
	case sabotage, strip, plant:
		return p.fault(ctx, o)
	default:
		p.tell("%s", o)
		return p.push(ctx, p.newest().then(o))
	}
	return ctx.Err()
}

func (p *place) pass(ctx context.Context, o op) {
	p.tell("%s: %s", o, word(p.moorings[o.unit].pass(ctx, p.applier)))
}

func word(err error) string {
	if err == nil {
		return "well"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// live gives the object of the pool as it is in the cluster, under either name, or nil.
func (p *place) live(ctx context.Context, object string) (*unstructured.Unstructured, dynamic.ResourceInterface, error) {
	for _, renamed := range []bool{false, true} {
		set, err := folder{objects: map[string]form{object: {renamed: renamed}}}.set(p.ns)
		if err != nil {
			return nil, nil, err
		}
		u := set.Objects[0].Unstructured()
		var where dynamic.ResourceInterface = p.objects.Resource(gvrs[set.Objects[0].ID().GroupKind()])
		if u.GetNamespace() != "" {
			where = p.objects.Resource(gvrs[set.Objects[0].ID().GroupKind()]).Namespace(u.GetNamespace())
		}
		list, err := where.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + u.GetName()})
		if err != nil {
			return nil, nil, err
		}
		if len(list.Items) > 0 {
			return &list.Items[0], where, nil
		}
	}
	return nil, nil, nil
}

// copy does what a program does that copies an object: all of it goes along, our label and the managers of the fields too.
func (p *place) copy(ctx context.Context, o op) error {
	kind, _, _ := strings.Cut(o.object, "/")
	if definition(schema.GroupKind{Kind: kind}) {
		return nil
	}
	u, where, err := p.live(ctx, o.object)
	if err != nil || u == nil {
		return err
	}
	name := fmt.Sprintf("%s-copy-%d", u.GetName(), len(p.copies))
	u.SetName(name)
	u.SetUID("")
	u.SetResourceVersion("")
	made, err := where.Create(ctx, u, metav1.CreateOptions{FieldManager: "somebody"})
	if err != nil {
		return err
	}
	p.tell("%s to %s", o, name)
	p.copies[render.ID{Group: made.GroupVersionKind().Group, Kind: made.GetKind(), Namespace: made.GetNamespace(), Name: name}] = true
	return nil
}

// fault does by hand what no agent may.
func (p *place) fault(ctx context.Context, o op) error {
	p.tell("%s", o)
	u, where, err := p.live(ctx, o.object)
	switch {
	case err != nil:
		return err
	case o.verb == plant:
		set, err := folder{objects: map[string]form{o.object: {}}}.set(p.ns)
		if err != nil {
			return err
		}
		u := set.Objects[0].Unstructured()
		u.SetLabels(map[string]string{apply.PartOfLabel: p.moorings[0].id})
		where := p.objects.Resource(gvrs[set.Objects[0].ID().GroupKind()]).Namespace(p.ns)
		_, err = where.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: apply.FieldManager})
		return err
	case u == nil:
		return nil
	case o.verb == strip:
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, apply.PartOfLabel)
		_, err = where.Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "somebody"})
		return err
	}
	return where.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
}

// here says whether an object belongs to the place.
func (p *place) here(id render.ID) bool {
	return id.Namespace == p.ns || id.Namespace == "" && id.Name != p.ns && strings.Contains(id.Name, p.ns)
}

// wanted gives what the newest good commit of each folder has at the time of a commit: id to the index of the Mooring. A folder that does not render, that
// is empty and was not, or that holds what cannot be, takes nothing back of what was wanted before. A commit that no pass ever saw, because another one
// came before, has never been.
func (p *place) wanted(at int) (map[render.ID]int, error) {
	all := make(map[render.ID]int)
	for i, m := range p.moorings {
		for c := at; c >= 0; c-- {
			f := p.commits[c].folders[i]
			if f.empty() && (m.had < 0 || m.had > c) {
				break // it has never had anything
			}
			if !f.good() || !p.seen[c] && c < at {
				continue
			}
			set, err := p.commits[c].folders[i].set(p.ns)
			if err != nil {
				return nil, err
			}
			for _, o := range set.Objects {
				all[o.ID()] = i
			}
			break
		}
	}
	return all, nil
}

// judge gives everything that is not as it must be.
func (p *place) judge(ctx context.Context) ([]string, error) {
	faults, err := p.settle(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.witness.CaughtUp(ctx, p.here); err != nil {
		return nil, err
	}
	deleted, err := p.wronglyDeleted()
	return append(faults, deleted...), err
}

// wronglyDeleted looks at every single deletion there was.
func (p *place) wronglyDeleted() (faults []string, err error) {
	events := p.witness.Events(p.here)
	for _, e := range events {
		if p.copies[e.ID] && e.Type != watch.Added {
			faults = append(faults, fmt.Sprintf("the copy of a user was touched: %s", e))
		}
		if e.Ours && !p.copies[e.ID] && e.Part != p.moorings[0].id && e.Part != p.moorings[1].id {
			faults = append(faults, fmt.Sprintf("untracked: %s carries the label %q", e, e.Part))
		}
	}
	for _, e := range witness.Deletions(events) {
		p.judged.Add(1)
		if definition(e.ID.GroupKind()) {
			faults = append(faults, fmt.Sprintf("a definition was deleted: %s", e))
		}
		at := slices.IndexFunc(p.since, func(rev uint64) bool { return rev >= e.Version }) - 1
		if at < 0 {
			at = len(p.since) - 1
		}
		wanted, err := p.wanted(at)
		if err != nil {
			return nil, err
		}
		if i, ok := wanted[e.ID]; ok && !p.copies[e.ID] {
			faults = append(faults, fmt.Sprintf("wrongly deleted: %s, which the newest good commit of %s has (commit %d)", e, names[i], at))
		}
	}
	return faults, nil
}

// settle mends the repository, lets passes come until nothing changes, and looks at what is there then.
func (p *place) settle(ctx context.Context) (faults []string, err error) {
	last, err := p.mended(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.push(ctx, last); err != nil {
		return nil, err
	}
	p.tell("everything is mended: %v", last)
	p.seen[len(p.seen)-1] = true
	for range quietPasses {
		for i := range p.moorings {
			p.pass(ctx, op{verb: pass, unit: i})
		}
	}
	before, err := p.witness.Now(ctx)
	if err != nil {
		return nil, err
	}
	for i, m := range p.moorings {
		if err := m.pass(ctx, p.applier); err != nil {
			faults = append(faults, fmt.Sprintf("%s does not come to rest: %s", names[i], word(err)))
		}
	}
	if err := p.witness.CaughtUp(ctx, p.here); err != nil {
		return nil, err
	}
	wanted, err := p.wanted(len(p.commits) - 1)
	if err != nil {
		return nil, err
	}
	for _, e := range p.witness.Live(p.here) {
		i, ok := wanted[e.ID]
		delete(wanted, e.ID)
		switch {
		case p.copies[e.ID] || !ok && !e.Ours:
		case !ok:
			faults = append(faults, fmt.Sprintf("left over: %s: nobody wants it", e))
		case e.Part != p.moorings[i].id:
			faults = append(faults, fmt.Sprintf("%s is not of %s, which is the one that wants it", e, names[i]))
		case e.Version > before:
			faults = append(faults, fmt.Sprintf("written at rest: %s", e))
		}
	}
	for id, i := range wanted {
		faults = append(faults, fmt.Sprintf("missing: %s, which %s wants", id, names[i]))
	}
	slices.Sort(faults)
	return faults, nil
}

// mended is a commit that everybody can live with: both folders are good, nothing is in both, and every definition that lives is in one.
func (p *place) mended(ctx context.Context) (commit, error) {
	c := p.newest()
	c = commit{folders: [2]folder{c.folders[0].clone(), c.folders[1].clone()}}
	for i := range c.folders {
		c.folders[i].state = ""
	}
	for name := range c.folders[1].objects {
		if _, both := c.folders[0].objects[name]; !both {
			continue
		}
		u, _, err := p.live(ctx, name)
		if err != nil {
			return commit{}, err
		}
		delete(c.folders[1-p.ownerOf(u)].objects, name)
	}
	for _, object := range pool(true) {
		kind, _, _ := strings.Cut(object, "/")
		_, left := c.folders[0].objects[object]
		_, right := c.folders[1].objects[object]
		if !definition(schema.GroupKind{Kind: kind}) || left || right {
			continue
		}
		u, _, err := p.live(ctx, object)
		if err != nil {
			return commit{}, err
		}
		if u != nil {
			c.folders[p.ownerOf(u)].objects[object] = form{}
		}
	}
	for i := range c.folders {
		if len(c.folders[i].objects) == 0 {
			c.folders[i].objects[[]string{"ConfigMap/last-left", "ConfigMap/last-right"}[i]] = form{}
		}
	}
	return c, nil
}

// ownerOf is the index of the Mooring that has an object; the first where there is none.
func (p *place) ownerOf(u *unstructured.Unstructured) int {
	if u != nil && u.GetLabels()[apply.PartOfLabel] == p.moorings[1].id {
		return 1
	}
	return 0
}

// String of a commit, for a reader.
func (c commit) String() string {
	var parts []string
	for i, f := range c.folders {
		parts = append(parts, fmt.Sprintf("%s %v%s", names[i], slices.Sorted(maps.Keys(f.objects)), f.state))
	}
	return strings.Join(parts, ", ")
}

// wipe takes away what the sequence left that has no namespace, and what was seen of it.
func (s *stage) wipe(ctx context.Context, ns string) error {
	p := &place{stage: s, ns: ns}
	var errs []error
	for _, e := range s.witness.Live(p.here) {
		if e.ID.Namespace == "" {
			errs = append(errs, s.objects.Resource(gvrs[e.ID.GroupKind()]).Delete(ctx, e.ID.Name, metav1.DeleteOptions{}))
		}
	}
	s.witness.Forget(p.here)
	return errors.Join(errs...)
}
