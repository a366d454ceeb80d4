package sync

import (
	"context"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	kubesource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/mooring-dev/mooring/apply"
)

// waker asks for a pass of a Mooring: an object of it moved, or another Mooring did what it waits for.
type waker struct {
	log   logr.Logger
	units *units

	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request] // guarded by mu; nil until the controller has started
}

// source gives the controller's queue to the waker.
func (w *waker) source() kubesource.Source {
	return kubesource.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		return nil
	})
}

// offered wakes the Moorings that a pass offered something to.
func (w *waker) offered(plan *apply.Plan, result *apply.Result) {
	if plan == nil || result == nil {
		return
	}
	for _, heir := range plan.Heirs() {
		w.wake(heir)
	}
}

// decided wakes the Moorings that keep something until another one has decided whether it wants it, because one has. Those that
// another shard's agent works for look when their own pause is over.
func (w *waker) decided(who types.NamespacedName) {
	for _, name := range w.units.keepers() {
		if name != who {
			w.wake(name.String())
		}
	}
}

// ready wakes the Moorings that wait for one to be ready.
func (w *waker) ready(who types.NamespacedName) {
	for _, name := range w.units.dependents(who) {
		w.wake(name.String())
	}
}

// fared wakes the Moorings that follow one whose revision, or health, is another one than before.
func (w *waker) fared(who types.NamespacedName) {
	for _, name := range w.units.followers(who) {
		w.wake(name.String())
	}
}

// wake a Mooring by namespace/name. However often that happens while a pass is under way, it is one more pass.
func (w *waker) wake(name string) {
	namespace, name, _ := strings.Cut(name, "/")
	unit := types.NamespacedName{Namespace: namespace, Name: name}
	w.units.wake(unit)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: unit})
	}
}

func (w *waker) broken(kind schema.GroupKind, err error) {
	if err == nil {
		w.log.Info("the watch works again", "kind", kind.String())
		return
	}
	w.log.Error(err, "a kind cannot be watched: drift of its objects is found at each interval only, until it can", "kind", kind.String())
}
