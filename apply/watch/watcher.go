package watch

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// Kind is one that can be watched.
type Kind struct {
	schema.GroupVersionResource
	Name string // such as ConfigMap
}

// Object is what is known of an object that carries the label.
type Object struct {
	UID types.UID
	// Version is its resourceVersion.
	Version    string
	Generation int64

	owner  string // the label's value
	digest uint64
}

// Change of one object.
type Change struct {
	// Owner is the value of the label, of a Gone object the last one.
	Owner string
	Kind  Kind
	types.NamespacedName
	UID types.UID
	// Before is the resourceVersion that was known; empty when the object was not known.
	Before string
	// Version is the resourceVersion now. Of a Gone object it is that of the change which took it away, as far as that is known.
	Version string
	// Gone objects are deleted, or carry the label no more.
	Gone bool
	// Quiet changes wrote a subresource, such as status, and nothing else.
	Quiet bool
}

// Options of a Watcher.
type Options struct {
	// Label that selects the objects. Its value names their owner.
	Label string
	// Changed is told of each change, of one kind after the other. It must not wait for long. What is there when a watch begins is told as well.
	Changed func(Change)
	// Broken is told when a watch does not work, and, with nil, when it works again.
	Broken func(Kind, error)
	// Gather moves texts together in memory, for Rest; nil leaves them where they are.
	Gather func([]*string)
}

// Watcher keeps the watches. It is safe for concurrent use.
type Watcher struct {
	client metadata.Interface
	opts   Options

	mu      sync.Mutex
	running context.Context          // guarded by mu: that of Run; nil before and after
	owners  map[string]map[Kind]bool // guarded by mu: who wants what
	kinds   map[Kind]*kind           // guarded by mu
	wg      sync.WaitGroup           // the reflectors
}

// New makes a Watcher that does nothing until Run.
func New(client metadata.Interface, opts Options) *Watcher {
	return &Watcher{client: client, opts: opts, owners: map[string]map[Kind]bool{}, kinds: map[Kind]*kind{}}
}

// Run watches until ctx ends, and returns when the last watch has.
func (w *Watcher) Run(ctx context.Context) {
	w.mu.Lock()
	w.running = ctx
	for _, k := range w.kinds {
		w.start(k)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	w.running = nil
	clear(w.kinds)
	w.mu.Unlock()
	w.wg.Wait()
}

// Want says which kinds an owner has objects of, in place of what it said before. A watch that nobody wants ends.
func (w *Watcher) Want(owner string, kinds []Kind) {
	wanted := make(map[Kind]bool, len(kinds))
	for _, k := range kinds {
		wanted[k] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.owners[owner]
	if w.owners[owner] = wanted; len(wanted) == 0 {
		delete(w.owners, owner)
	}
	for k := range wanted {
		if w.kinds[k] == nil {
			w.kinds[k] = newKind(k, w.client, w.opts)
			w.start(w.kinds[k])
		}
	}
	for k := range before {
		if !w.wanted(k) {
			w.stop(k)
		}
	}
}

// wanted says whether anybody wants the kind. Called with mu held.
func (w *Watcher) wanted(k Kind) bool {
	for _, kinds := range w.owners {
		if kinds[k] {
			return true
		}
	}
	return false
}

// start is called with mu held.
func (w *Watcher) start(k *kind) {
	if w.running == nil || w.running.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.running)
	k.cancel = cancel
	w.wg.Go(func() { k.run(ctx) })
}

// stop is called with mu held.
func (w *Watcher) stop(k Kind) {
	if found := w.kinds[k]; found != nil && found.cancel != nil {
		found.cancel()
	}
	delete(w.kinds, k)
}

// Rest moves what is known together in memory. It may be called at any time.
func (w *Watcher) Rest() {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.kinds))
	w.mu.Unlock()
	for _, k := range all {
		k.rest()
	}
}

// Objects of an owner, and the newest resourceVersion of the kind that was heard of. Not ok means that it is not known: nobody wants the kind, or its
// watch has not begun, or it is broken.
func (w *Watcher) Objects(k Kind, owner string) (objects map[types.NamespacedName]Object, latest string, ok bool) {
	w.mu.Lock()
	found := w.kinds[k]
	w.mu.Unlock()
	if found == nil {
		return nil, "", false
	}
	return found.view(owner)
}
