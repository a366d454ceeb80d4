// Package witness sees everything that becomes of a cluster's objects: which came, which changed and above all which went, each with
// its UID and the resourceVersion at which it happened. A proof of "never deleted" cannot be had from an end state: an
// object that was deleted and made anew looks as if nothing had been.
//
// It watches metadata, one watch for each kind, from the moment that Watch or Follow returns. Resource versions are revisions
// of the one etcd, so events of different kinds have an order, and so have events and a Now.
//
// A watch that breaks off is taken up where it was. Where that is not possible, which is so when the definition of a kind changes, all is
// listed anew: what is not there any more was deleted at some time since the watch broke off. Such an event says between which two
// revisions it happened (After). What came and went again in between was not seen.
package witness

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/test/poll"
)

// Event is what happened to one object.
type Event struct {
	Type watch.EventType
	ID   render.ID
	UID  types.UID
	// Version is the revision at which it happened. Where that is not known, it happened after After, and not after Version.
	After, Version uint64
	// Part is the value of the label that says whose the object is.
	Part string
	// Ours means that Mooring's field manager has applied it.
	Ours bool
	// Going means that it is being deleted, and waits for a finalizer or, if it is a namespace, for what is in it.
	Going bool
}

// String writes "DELETED ConfigMap/apps/settings (uid …, at revision 123)".
func (e Event) String() string {
	return fmt.Sprintf("%s %s (uid %s, at revision %d)", e.Type, e.ID, e.UID, e.Version)
}

// Kind is a kind and how the API server calls its resource.
type Kind struct {
	schema.GroupVersionResource
	Kind string
}

func (k Kind) groupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// Witness watches some kinds. It is safe for concurrent use.
type Witness struct {
	client metadata.Interface

	mu     sync.Mutex
	kinds  map[Kind]context.CancelFunc
	events []Event
	live   map[types.UID]Event // the last event of what is there
	lost   error
}

// Watch begins to watch. What is there already counts as ADDED. It ends with ctx.
func Watch(ctx context.Context, cfg *rest.Config, kinds ...Kind) (*Witness, error) {
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("watch the cluster: %w", err)
	}
	w := &Witness{client: client, kinds: make(map[Kind]context.CancelFunc), live: make(map[types.UID]Event)}
	for _, kind := range kinds {
		if err := w.Follow(ctx, kind); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Follow watches one more kind, until ctx ends. When the kind is not served it waits a minute for it.
func (w *Witness) Follow(ctx context.Context, kind Kind) error {
	patient, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	var version string
	err := poll.Until(patient, "it can be listed", func() (err error) {
		version, err = w.list(patient, kind)
		return err
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.Resource, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	w.kinds[kind] = cancel
	w.mu.Unlock()
	go w.follow(ctx, kind, version)
	return nil
}

// follow watches from a revision on, and lists anew where a watch cannot go on.
func (w *Witness) follow(ctx context.Context, kind Kind, version string) {
	for {
		w.read(ctx, kind, version)
		if ctx.Err() != nil {
			return
		}
		err := poll.Until(ctx, "it can be listed", func() (err error) {
			version, err = w.list(ctx, kind)
			return err
		})
		if err != nil {
			return // ctx has ended
		}
	}
}

// list compares what is there with what is known, and gives the revision to watch from. A kind that is not served has no objects.
func (w *Witness) list(ctx context.Context, kind Kind) (string, error) {
	list, err := w.client.Resource(kind.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", err
	}
	there := make(map[types.UID]bool)
	version := uint64(0)
	if err == nil {
		for i := range list.Items {
			there[list.Items[i].UID] = true
			w.saw(kind, watch.Added, &list.Items[i])
		}
		if version, err = strconv.ParseUint(list.ResourceVersion, 10, 64); err != nil {
			return "", err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, last := range w.live {
		if last.ID.GroupKind() == kind.groupKind() && !there[uid] {
			if version == 0 {
				version = last.Version + 1 // no better is known of a kind that is not served
			}
			last.Type, last.After, last.Version = watch.Deleted, last.Version, version
			delete(w.live, uid)
			w.events = append(w.events, last)
		}
	}
	if err != nil {
		return "", err
	}
	return list.ResourceVersion, nil
}

// Unfollow ends the watch of a kind, before its definition goes.
func (w *Witness) Unfollow(kind Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.kinds[kind]; cancel != nil {
		cancel()
		delete(w.kinds, kind)
	}
}

// read a watch to its end.
func (w *Witness) read(ctx context.Context, kind Kind, version string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	where := w.client.Resource(kind.GroupVersionResource)
	events, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return where.Watch(ctx, options)
		},
	})
	if err != nil {
		return
	}
	for event := range events.ResultChan() {
		o, ok := event.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			return // an error, such as "too old"
		}
		w.saw(kind, event.Type, o)
	}
}

func (w *Witness) blind(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lost = errors.Join(w.lost, err)
}

func (w *Witness) saw(kind Kind, what watch.EventType, o *metav1.PartialObjectMetadata) {
	version, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		w.blind(fmt.Errorf("watch %s: resourceVersion %q: %w", kind.Resource, o.ResourceVersion, err))
		return
	}
	e := Event{
		Type: what, UID: o.UID, After: version - 1, Version: version, Part: o.Labels[apply.PartOfLabel], Ours: Ours(o), Going: o.DeletionTimestamp != nil,
		ID: render.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name},
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch what {
	case watch.Added, watch.Modified:
		if w.live[o.UID].Version >= version {
			return // listed again
		}
		w.live[o.UID] = e
	case watch.Deleted:
		if _, known := w.live[o.UID]; !known {
			return // missed by a list before
		}
		delete(w.live, o.UID)
	default: // a bookmark
		return
	}
	w.events = append(w.events, e)
}

// Ours says whether Mooring's field manager has applied an object.
func Ours(o metav1.Object) bool {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == apply.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return true
		}
	}
	return false
}

// Events so far of those objects that which says yes to, in the order in which they were heard of: within one kind that is
// the order in which they happened.
func (w *Witness) Events(which func(render.ID) bool) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return those(slices.Values(w.events), which)
}

// Deletions are the events by which objects began to go, one for each UID: the deletion itself, or what made it certain.
func Deletions(events []Event) []Event {
	var found []Event
	going := make(map[types.UID]bool)
	for _, e := range events {
		if (e.Type == watch.Deleted || e.Going) && !going[e.UID] {
			going[e.UID] = true
			found = append(found, e)
		}
	}
	return found
}

// Live are those objects that are there as far as the witness has heard.
func (w *Witness) Live(which func(render.ID) bool) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return those(maps.Values(w.live), which)
}

func those(events iter.Seq[Event], which func(render.ID) bool) []Event {
	var found []Event
	for e := range events {
		if which(e.ID) {
			found = append(found, e)
		}
	}
	return found
}

// Forget drops the events of those objects: a long proof would keep them all.
func (w *Witness) Forget(which func(render.ID) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = slices.DeleteFunc(w.events, func(e Event) bool { return which(e.ID) })
}

// Now is the revision that the cluster is at: all that happens after the call has a greater one.
func (w *Witness) Now(ctx context.Context) (uint64, error) {
	list, err := w.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("ask for the revision: %w", err)
	}
	return strconv.ParseUint(list.ResourceVersion, 10, 64)
}

// CaughtUp waits until the witness has heard of all that happened before the call to those objects. It is an error when the server's
// answers could not be understood.
func (w *Witness) CaughtUp(ctx context.Context, which func(render.ID) bool) error {
	w.mu.Lock()
	kinds := slices.Collect(maps.Keys(w.kinds))
	w.mu.Unlock()
	for _, kind := range kinds {
		if err := poll.Until(ctx, "all is heard of", func() error { return w.compare(ctx, kind, which) }); err != nil {
			return fmt.Errorf("hear of all that happened to %s: %w", kind.Resource, err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// compare is an error as long as what lives, and what the witness believes to live, differ.
func (w *Witness) compare(ctx context.Context, kind Kind, which func(render.ID) bool) error {
	list, err := w.client.Resource(kind.GroupVersionResource).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // not found: the definition is gone, and with it all objects
		return err
	}
	there := make(map[types.UID]string)
	if list != nil {
		for _, o := range list.Items {
			if which(render.ID{Group: kind.Group, Kind: kind.Kind, Namespace: o.Namespace, Name: o.Name}) {
				there[o.UID] = o.ResourceVersion
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != nil {
		return nil // CaughtUp says so
	}
	for uid, e := range w.live {
		if e.ID.GroupKind() != kind.groupKind() || !which(e.ID) {
			continue
		}
		if version, ok := there[uid]; !ok || version != strconv.FormatUint(e.Version, 10) {
			return fmt.Errorf("the last that was heard of %s is %s", e.ID, e)
		}
		delete(there, uid)
	}
	if len(there) > 0 {
		return fmt.Errorf("%d objects were not heard of yet", len(there))
	}
	return nil
}
