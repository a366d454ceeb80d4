package sync

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// errChanged ends a wait: a person has asked for another thing meanwhile.
var errChanged = errors.New("the Mooring was changed, or a pass was asked for")

// slots are how many passes work at a time. A pass that waits, for Git, for proxies or for istiod, has none: it would only keep others from
// working. A nil slots is no limit.
type slots chan struct{}

// take waits for a slot. It is held when ctx has ended as well, so that give is always right.
func (s slots) take() {
	if s != nil {
		s <- struct{}{}
	}
}

func (s slots) give() {
	if s != nil {
		<-s
	}
}

// waits are the passes that wait at a gate, and how to end that.
type waits struct {
	mu     sync.Mutex
	cancel map[types.NamespacedName]context.CancelCauseFunc // guarded by mu
}

func (w *waits) begin(name types.NamespacedName, cancel context.CancelCauseFunc) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel == nil {
		w.cancel = make(map[types.NamespacedName]context.CancelCauseFunc)
	}
	w.cancel[name] = cancel
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.cancel, name)
	}
}

// interrupt ends the wait of a Mooring's pass, if it waits.
func (w *waits) interrupt(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cancel := w.cancel[name]; cancel != nil {
		cancel(&report.GaveWay{Cause: errChanged})
	}
}

// ending is told of every change of a Mooring that asks for a pass, and of those that are gone or belong to another shard. It asks for none itself.
func (w *waits) ending() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			w.interrupt(client.ObjectKeyFromObject(e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			w.interrupt(client.ObjectKeyFromObject(e.Object))
		},
	}
}

// atGate waits without a slot, and no longer than there is use in it: not once Git has another commit, which is asked at each interval, nor once the
// Mooring is changed, deleted, or asked for a pass. The next pass plans from what lives then, so half a run is no loss.
func (p *pass) atGate(ctx context.Context, _ apply.Gate, wait func(context.Context) error) error {
	p.slots.give()
	defer p.slots.take()
	if p.removing {
		return wait(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	defer p.waits.begin(client.ObjectKeyFromObject(p.mooring), cancel)()
	// Only now is it certain that a change will end the wait. One that came before has not.
	if p.overtaken(ctx) {
		return &report.GaveWay{Cause: errChanged}
	}
	watch.Go(func() { p.watchGit(ctx, cancel) })
	err := wait(ctx)
	if gaveWay, ok := errors.AsType[*report.GaveWay](context.Cause(ctx)); ok {
		return gaveWay
	}
	return err
}

// overtaken is true when the Mooring asks for another pass than this one by now. The agent's client answers from its cache.
func (p *pass) overtaken(ctx context.Context) bool {
	if p.parent.client == nil {
		return false
	}
	now := &v1alpha1.Mooring{}
	err := p.parent.client.Get(ctx, client.ObjectKeyFromObject(p.mooring), now)
	return apierrors.IsNotFound(err) || err == nil && (now.UID != p.mooring.UID || asks(p.mooring, now))
}

// watchGit ends a wait when the ref is at another commit than the one that this pass has found. A question that fails is asked again. Where the ref does not say what is
// wanted, since a revision is pinned or another environment is followed, nobody asks.
func (p *pass) watchGit(ctx context.Context, cancel context.CancelCauseFunc) {
	if w := p.mooring.Spec.Promotion; p.mooring.Spec.Pin != nil || w != nil && w.Mode == v1alpha1.PromotionFollow {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(p.untilNewer()):
		}
		if !p.when.Windows.Open(time.Now()) {
			continue // a newer commit would not be taken up: this one is finished
		}
		remote, err := p.remote(ctx)
		if err != nil {
			continue
		}
		rev, err := p.source.Resolve(ctx, remote, ref(p.mooring))
		if err == nil && rev.Commit != p.out.Newest.Commit {
			cancel(&report.GaveWay{Newer: rev})
			return
		}
	}
}

// gaveWay notes that a run was ended so that a newer one may begin: that is no failure.
func (p *pass) gaveWay(err error) bool {
	_, ok := errors.AsType[*report.GaveWay](err)
	if ok {
		p.out.Err, p.out.Reason = err, v1alpha1.ReasonProgressing
		p.unit.newestAt = time.Time{} // the next pass asks Git
	}
	return ok
}
