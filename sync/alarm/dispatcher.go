package alarm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Options of a Dispatcher.
type Options struct {
	// Client reads Alarms and Moorings, and writes the status of Alarms.
	Client client.Client
	// Live reads Secrets and, once, each Alarm straight from the API server.
	Live client.Reader
	// Metrics may be nil.
	Metrics *Metrics
	// Log gets what cannot be told otherwise.
	Log logr.Logger
	// Across are the namespaces whose Alarms may look at Moorings of other namespaces; "*" stands for all.
	Across []string
}

// Dispatcher keeps the Alarms of a cluster. It is report's Notifier, the Reconciler of Alarms, and a Runnable.
type Dispatcher struct {
	Options
	receivers receivers
	statuses  statuses

	mu       sync.Mutex
	idle     bool                              // guarded by mu: there never was an Alarm, so nothing is remembered of Moorings
	seeded   bool                              // guarded by mu: whether the Moorings are known that there were before that
	ended    bool                              // guarded by mu: nothing new begins
	moorings map[types.NamespacedName]*mooring // guarded by mu: as they were seen last
	workers  map[types.NamespacedName]*worker  // guarded by mu
	running  sync.WaitGroup
}

// receivers finds where the messages of an Alarm go.
type receivers interface {
	receiver(ctx context.Context, a *v1alpha1.Alarm) (receiver, error)
}

// receiver is where the messages of an Alarm go, as its spec and its Secret are now.
type receiver interface {
	send(ctx context.Context, j *job) error
}

// statuses writes the status of an Alarm.
type statuses interface {
	write(ctx context.Context, before, after *v1alpha1.Alarm) error
}

// New makes a Dispatcher.
func New(o Options) *Dispatcher {
	if o.Metrics == nil {
		o.Metrics = NewMetrics(prometheus.NewRegistry())
	}
	return &Dispatcher{
		Options:   o,
		receivers: &secrets{live: o.Live},
		statuses:  statusClient{o.Client},
		moorings:  map[types.NamespacedName]*mooring{},
		workers:   map[types.NamespacedName]*worker{},
	}
}

// Start waits until ctx ends, then ends what the Alarms do, and returns when that is over. What was not told by then is told by the next agent.
func (d *Dispatcher) Start(ctx context.Context) error {
	<-ctx.Done()
	d.mu.Lock()
	d.ended = true
	for _, w := range d.workers {
		w.stop()
	}
	d.mu.Unlock()
	d.running.Wait()
	return nil
}

// rest where there is no Alarm: what is known of Moorings goes, and nothing is remembered until one comes.
func (d *Dispatcher) rest(ctx context.Context) error {
	alarms := &v1alpha1.AlarmList{}
	if err := d.Client.List(ctx, alarms); err != nil {
		return fmt.Errorf("list Alarms: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle = len(alarms.Items) == 0 && !d.seeded; d.idle {
		clear(d.moorings)
	}
	return nil
}

// Passed hears of a Mooring after a pass. It makes no request and waits for nobody.
func (d *Dispatcher) Passed(m *v1alpha1.Mooring, out report.Outcome, events []report.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle {
		return
	}
	seen := look(m)
	happened := notes(seen.name, out, events, time.Now())
	d.moorings[seen.name] = seen
	for _, w := range d.workers {
		w.hear(seen, happened)
	}
}

// Forget closes what is open about a Mooring that is gone.
func (d *Dispatcher) Forget(namespace, name string) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.moorings, key)
	for _, w := range d.workers {
		w.forget(key)
	}
}

// seed makes the Moorings known that there are, so that the first Alarm needs not wait for their next passes. A status that was written within the last moment may
// not be in the cache; the next pass of its Mooring tells.
func (d *Dispatcher) seed(ctx context.Context) error {
	d.mu.Lock()
	seeded := d.seeded
	d.idle = false
	d.mu.Unlock()
	if seeded {
		return nil
	}
	list := &v1alpha1.MooringList{}
	if err := d.Client.List(ctx, list); err != nil {
		return fmt.Errorf("list Moorings: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range list.Items {
		if seen := look(&list.Items[i]); d.moorings[seen.name] == nil { // one that had a pass meanwhile is newer
			d.moorings[seen.name] = seen
		}
	}
	d.seeded, d.idle = true, false
	return nil
}

// set takes an Alarm up, or its new spec.
func (d *Dispatcher) set(ctx context.Context, a *v1alpha1.Alarm) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.ObjectKeyFromObject(a)
	w := d.workers[key]
	if w != nil && w.alarm.UID != a.UID {
		d.drop(key)
		w = nil
	}
	if w == nil {
		if d.ended {
			return
		}
		w = newWorker(d, a)
		d.workers[key] = w
		ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx)) // ends with the Alarm or with Start, not with this call
		d.running.Go(func() { w.run(ctx) })
	}
	w.set(a)
}

// remove ends an Alarm that is gone.
func (d *Dispatcher) remove(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(key)
	d.Metrics.forget(key)
}

func (d *Dispatcher) drop(key types.NamespacedName) {
	if w := d.workers[key]; w != nil {
		w.stop()
		delete(d.workers, key)
	}
}

// across says whether Alarms of a namespace may look at others.
func (d *Dispatcher) across(namespace string) bool {
	return slices.Contains(d.Across, namespace) || slices.Contains(d.Across, v1alpha1.AnyNamespace)
}
