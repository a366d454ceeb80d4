package apply

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/mooring-dev/mooring/apply/watch"
	"github.com/mooring-dev/mooring/render"
)

// With a watch (Options.Wake) a plan need not list what is there: the watch has told of it. What has the resourceVersion in which it was right is
// settled without a request; of everything else the metadata is read. And what moves without our doing wakes its unit at once.

// auditInterval is how long a unit is believed to be what the watches say, before everything is listed once more. A watch that tells nothing wrong
// costs one LIST for each kind and hour.
const auditInterval = time.Hour

// fetchLimit is how many objects of a kind are read one by one; beyond it the kind is listed.
const fetchLimit = 30

// Watch runs the watches until ctx ends. It does nothing for an Applier without Options.Wake.
func (a *Applier) Watch(ctx context.Context) error {
	if a.watch == nil {
		return nil
	}
	a.watch.Run(ctx)
	return nil
}

// kindOf a resource for the watch.
func kindOf(r resource) watch.Kind {
	return watch.Kind{GroupVersionResource: r.GVR(), Name: r.Kind}
}

// keepWatching says to the watch which kinds the unit has objects of.
func (a *Applier) keepWatching(u Unit, kinds []schema.GroupKind, c *catalog) {
	if a.watch == nil {
		return
	}
	var wanted []watch.Kind
	for _, gk := range kinds {
		if r, ok, err := c.kind(gk); ok && err == nil {
			wanted = append(wanted, kindOf(r))
		}
	}
	a.watch.Want(u.ID, wanted)
}

// changed is told by the watch. Our own writes are known by the resourceVersion that they returned.
func (a *Applier) changed(c watch.Change) {
	id := render.ID{Group: c.Kind.Group, Kind: c.Kind.Name, Namespace: c.Namespace, Name: c.Name}
	if a.memory.moved(c.Owner, id, c) {
		a.wake(c.Owner)
	}
}

func (a *Applier) wake(unit string) {
	if name := a.name(unit); name != "" { // else nobody here has planned for it yet, and will look at everything then
		a.woken(name)
	}
}

// audits remember when everything of a unit was listed.
type audits struct {
	mu   sync.Mutex
	next map[string]time.Time // guarded by mu, by ApplySet id
}

func (a *audits) due(unit string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !time.Now().Before(a.next[unit])
}

func (a *audits) made(unit string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = make(map[string]time.Time)
	}
	a.next[unit] = time.Now().Add(auditInterval + time.Duration(rand.Float64()*float64(auditInterval)/10))
}

func (a *audits) forget(unit string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.next, unit)
}

// watched gives the unit's objects of a kind as the watch knows them: sketches, with what tells whether they moved. Our own writes that the watch has not
// told of yet are in it.
func (a *Applier) watched(u Unit, r resource) (map[render.ID]liveObject, bool) {
	if a.watch == nil || a.audits.due(u.ID) {
		return nil, false
	}
	found, latest, ok := a.watch.Objects(kindOf(r), u.ID)
	if !ok {
		return nil, false
	}
	objects := make(map[render.ID]liveObject, len(found))
	for name, o := range found {
		id := render.ID{Group: r.Group, Kind: r.Kind, Namespace: name.Namespace, Name: name.Name}
		objects[id] = sketch(id, o.UID, o.Version, r)
	}
	for id, known := range a.memory.newer(u.ID, r.GroupKind(), latest) {
		objects[id] = sketch(id, known.uid, known.resourceVersion, r)
	}
	return objects, true
}

func sketch(id render.ID, uid types.UID, version string, r resource) liveObject {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, UID: uid, ResourceVersion: version}}
	return liveObject{Object: m, resource: r, sketch: true}
}

// fill reads the metadata of what the watch has only sketched and of which more must be known: everything but what is as it was left.
func (p *planner) fill(ctx context.Context, all []wanted) error {
	hashes := make(map[render.ID]string, len(all))
	for _, w := range all {
		hashes[w.id] = w.hash
	}
	open := make(map[schema.GroupKind][]render.ID)
	for id, m := range p.live.objects {
		if m.sketch && !p.asLeft(id, m, hashes[id]) {
			open[id.GroupKind()] = append(open[id.GroupKind()], id)
		}
	}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(p.concurrency)
	for gk, ids := range open {
		if len(ids) > fetchLimit {
			g.Go(func() error { return p.relist(ctx, &mu, gk, p.live.objects[ids[0]].resource) })
			continue
		}
		for _, id := range ids {
			g.Go(func() error { return p.refetch(ctx, &mu, id) })
		}
	}
	return g.Wait()
}

// asLeft is true for an object that is in memory in just this version, with the form that Git wants.
func (p *planner) asLeft(id render.ID, m liveObject, hash string) bool {
	known, ok := p.memory.recall(p.unit.ID, id)
	return ok && hash != "" && known.hash == hash && known.uid == m.GetUID() && known.resourceVersion == m.GetResourceVersion() && known.checks == p.unit.Health.Key()
}

// relist replaces the sketches of a kind. mu guards the live objects.
func (p *planner) relist(ctx context.Context, mu *sync.Mutex, gk schema.GroupKind, r resource) error {
	items, err := p.listKind(ctx, p.unit, r)
	if err != nil {
		return fmt.Errorf("list %s: %w", gk, err)
	}
	mu.Lock()
	defer mu.Unlock()
	maps.DeleteFunc(p.live.objects, func(id render.ID, _ liveObject) bool { return id.GroupKind() == gk })
	for _, item := range items {
		p.live.objects[render.ID{Group: r.Group, Kind: r.Kind, Namespace: item.Namespace, Name: item.Name}] = liveObject{Object: item, resource: r}
	}
	return nil
}

// refetch replaces one sketch. An object that is gone, or is the unit's no more, is no live object of it.
func (p *planner) refetch(ctx context.Context, mu *sync.Mutex, id render.ID) error {
	mu.Lock()
	r := p.live.objects[id].resource
	mu.Unlock()
	item, err := p.getMeta(ctx, r, id.Namespace, id.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read %s: %w", id, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if err != nil || item.Labels[PartOfLabel] != p.unit.ID {
		delete(p.live.objects, id)
		return nil
	}
	p.live.objects[id] = liveObject{Object: item, resource: r}
	return nil
}

// isNewer says whether a resourceVersion is later than another. What cannot be compared is not.
func isNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order > 0
}
