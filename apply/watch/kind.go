package watch

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// longestPause between two tries of a watch that does not work. The default of client-go is 30 seconds, for clients that watch far more.
const longestPause = 10 * time.Second

// kind is the watch of one kind, and what it has told. It is the store of a reflector.
type kind struct {
	Kind
	client metadata.Interface
	opts   Options
	cancel context.CancelFunc

	mu        sync.RWMutex
	known     map[types.NamespacedName]Object              // guarded by mu
	owned     map[string]map[types.NamespacedName]struct{} // guarded by mu: the names of known by owner
	latest    string                                       // guarded by mu: the newest resourceVersion that was heard of
	synced    bool                                         // guarded by mu: known is complete
	broken    error                                        // guarded by mu: why nothing is heard
	scattered int                                          // guarded by mu: how many objects were put since their texts were gathered
}

var _ cache.TransformingStore = (*kind)(nil)

func newKind(k Kind, client metadata.Interface, opts Options) *kind {
	return &kind{Kind: k, client: client, opts: opts, known: map[types.NamespacedName]Object{}, owned: map[string]map[types.NamespacedName]struct{}{}}
}

// run watches until ctx ends.
func (k *kind) run(ctx context.Context) {
	quiet := logr.Discard() // whoever is told of broken watches logs them, once
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  k.list,
		WatchFuncWithContext: k.watch,
	}, k.client)
	r := cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, k, cache.ReflectorOptions{
		Name: "apply/watch", TypeDescription: k.Name, Logger: &quiet,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Cap: longestPause, Steps: 100},
	})
	r.RunWithContext(klog.NewContext(ctx, quiet))
}

func (k *kind) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	opts.LabelSelector = k.opts.Label
	found, err := k.client.Resource(k.GroupVersionResource).List(ctx, opts)
	if err != nil {
		k.heard(ctx, err)
		return nil, err // and no nil pointer in an interface
	}
	return found, nil // whether the watch works that follows is another question
}

func (k *kind) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.LabelSelector = k.opts.Label
	found, err := k.client.Resource(k.GroupVersionResource).Watch(ctx, opts)
	k.heard(ctx, err)
	return found, err
}

// heard notes whether a request was answered. A version that is too old is no fault: the reflector begins anew.
func (k *kind) heard(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		return // Invalid: a server that cannot stream lists, which is asked for one in the old way then
	}
	k.mu.Lock()
	was := k.broken
	k.broken = err
	k.mu.Unlock()
	if (was == nil) != (err == nil) && k.opts.Broken != nil {
		k.opts.Broken(k.Kind, err)
	}
}

// view is what is known of an owner's objects.
func (k *kind) view(owner string) (map[types.NamespacedName]Object, string, bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	if !k.synced || k.broken != nil {
		return nil, "", false
	}
	objects := make(map[types.NamespacedName]Object, len(k.owned[owner]))
	for name := range k.owned[owner] {
		objects[name] = k.known[name]
	}
	return objects, k.latest, true
}

// rest moves the texts of what is known together, where many are new.
func (k *kind) rest() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opts.Gather == nil || k.scattered <= len(k.known)/8 {
		return
	}
	all := make([]slimmed, 0, len(k.known))
	for name, o := range k.known {
		all = append(all, slimmed{o, name})
	}
	var texts []*string
	for i := range all {
		o := &all[i]
		texts = append(texts, &o.name.Namespace, &o.name.Name, (*string)(&o.UID), &o.Version, &o.owner)
	}
	k.opts.Gather(texts)
	k.scattered = 0
	k.known, k.owned = make(map[types.NamespacedName]Object, len(all)), map[string]map[types.NamespacedName]struct{}{}
	for _, o := range all {
		k.know(o)
	}
}

// know an object. Called with mu held.
func (k *kind) know(o slimmed) {
	k.known[o.name] = o.Object
	if k.owned[o.owner] == nil {
		k.owned[o.owner] = map[types.NamespacedName]struct{}{}
	}
	k.owned[o.owner][o.name] = struct{}{}
}

// Add and the rest are what the reflector calls, one at a time.
func (k *kind) Add(obj any) error {
	item := slim(k.opts.Label, obj)
	if item == nil {
		return nil
	}
	k.mu.Lock()
	changes := k.put(item)
	k.latest = item.Version
	k.mu.Unlock()
	k.tell(changes...)
	return nil
}

// Update of an object.
func (k *kind) Update(obj any) error { return k.Add(obj) }

// Delete of an object, or of its label.
func (k *kind) Delete(obj any) error {
	item := slim(k.opts.Label, obj)
	if item == nil {
		return nil
	}
	k.mu.Lock()
	change := k.drop(item.name, item.Version)
	k.latest = item.Version
	k.mu.Unlock()
	k.tell(change)
	return nil
}

// Replace is called when a watch begins, and when it had to begin anew.
func (k *kind) Replace(all []any, version string) error {
	var changes []*Change
	there := make(map[types.NamespacedName]bool, len(all))
	k.mu.Lock()
	for _, obj := range all {
		if item := slim(k.opts.Label, obj); item != nil {
			there[item.name] = true
			changes = append(changes, k.put(item)...)
		}
	}
	for name := range k.known {
		if !there[name] {
			changes = append(changes, k.drop(name, version))
		}
	}
	k.latest, k.synced = version, true
	k.mu.Unlock()
	k.tell(changes...)
	return nil
}

// Bookmark says how far the watch has come.
func (k *kind) Bookmark(version string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = version
	return nil
}

// Resync has nothing to do.
func (k *kind) Resync() error { return nil }

// Transformer makes objects small while they stream in.
func (k *kind) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if item := slim(k.opts.Label, obj); item != nil {
			return item, nil
		}
		return obj, nil
	}
}

// put notes an object and gives the change, if it is one. An object that changes its owner is gone for the one before. Called with mu held.
func (k *kind) put(item *slimmed) []*Change {
	before, was := k.known[item.name]
	if was && before.UID == item.UID && before.Version == item.Version {
		return nil
	}
	var changes []*Change
	if was && before.owner != item.owner {
		changes, was = append(changes, k.drop(item.name, item.Version)), false
	}
	change := &Change{Owner: item.owner, Kind: k.Kind, NamespacedName: item.name, UID: item.UID, Version: item.Version}
	if was && before.UID == item.UID {
		change.Before = before.Version
		change.Quiet = before.Generation == item.Generation && item.Generation > 0 && before.digest == item.digest
	}
	k.know(*item)
	k.scattered++
	return append(changes, change)
}

// drop forgets an object and gives the change; nil when it was not known. Called with mu held.
func (k *kind) drop(name types.NamespacedName, version string) *Change {
	before, was := k.known[name]
	if !was {
		return nil
	}
	delete(k.known, name)
	if delete(k.owned[before.owner], name); len(k.owned[before.owner]) == 0 {
		delete(k.owned, before.owner)
	}
	return &Change{Owner: before.owner, Kind: k.Kind, NamespacedName: name, UID: before.UID, Before: before.Version, Version: version, Gone: true}
}

func (k *kind) tell(changes ...*Change) {
	for _, c := range changes {
		if c != nil && k.opts.Changed != nil {
			k.opts.Changed(*c)
		}
	}
}

// slimmed is what remains of an object's metadata.
type slimmed struct {
	Object
	name types.NamespacedName
}

// GetObjectMeta is for the reflector, which keys what streams in by namespace and name.
func (s *slimmed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.name.Namespace, Name: s.name.Name, ResourceVersion: s.Version}
}

// slim gives what remains of an object; nil for what is none.
func slim(label string, obj any) *slimmed {
	switch o := obj.(type) {
	case *slimmed:
		return o
	case *metav1.PartialObjectMetadata:
		return &slimmed{
			name: types.NamespacedName{Namespace: o.Namespace, Name: o.Name},
			Object: Object{
				UID: o.UID, Version: o.ResourceVersion, Generation: o.Generation,
				owner: o.Labels[label], digest: digest(o),
			},
		}
	default:
		return nil
	}
}

// digest of all metadata that is written by people or controllers on purpose: not what the server counts, and not who wrote a subresource.
func digest(o *metav1.PartialObjectMetadata) uint64 {
	h := fnv.New64a()
	fields := make([]metav1.ManagedFieldsEntry, 0, len(o.ManagedFields))
	for _, entry := range o.ManagedFields {
		if entry.Subresource == "" {
			fields = append(fields, entry)
		}
	}
	// Of these types nothing fails to marshal, and maps are sorted.
	_ = json.NewEncoder(h).Encode([]any{o.Labels, o.Annotations, o.Finalizers, o.OwnerReferences, o.DeletionTimestamp, fields})
	return h.Sum64()
}
