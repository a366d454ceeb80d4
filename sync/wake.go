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
)

// waker asks for a pass of a Mooring of which an object moved.
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
