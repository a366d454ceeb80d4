package report

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// controller is the name under which Events are reported.
const controller = "mooring.dev/agent"

// Reporter tells the cluster and Prometheus what became of a pass.
type Reporter struct {
	Client  client.Client
	Metrics *Metrics
	// Instance tells the agents of a cluster apart in Events, such as the name of the pod.
	Instance string
	// Notifier hears of each pass as well; nil when nobody does.
	Notifier Notifier

	mu      sync.Mutex
	written map[types.NamespacedName]written // guarded by mu: what Report wrote last, until the cache has it
}

// Notifier hears what became of a pass, once the status says so, and when a Mooring is gone. It must not keep the caller waiting.
type Notifier interface {
	// Passed gets the Mooring with the status that was written, and what of the pass was worth an Event.
	Passed(m *v1alpha1.Mooring, out Outcome, events []Event)
	Forget(namespace, name string)
}

// written is a status and the version of the object that it made.
type written struct {
	uid     types.UID
	version string
	status  v1alpha1.MooringStatus
}

// Report writes the status of m when it changed, sends the Events, and counts. m is left as it was given.
// An error means that the status could not be written; Events were not sent then, so that the next try sends them.
func (r *Reporter) Report(ctx context.Context, m *v1alpha1.Mooring, out Outcome) error {
	r.Metrics.Observe(m.Namespace, m.Name, out) // first: the pass was made, whatever becomes of the status
	m = r.newest(m)
	after := m.DeepCopy()
	after.Status = Status(m, out)
	events := Events(m.Status, after.Status, out)
	if !equality.Semantic.DeepEqual(m.Status, after.Status) {
		sent := after.DeepCopy()
		if err := r.Client.Status().Patch(ctx, sent, client.MergeFrom(m)); err != nil {
			return fmt.Errorf("write status of Mooring %s/%s: %w", m.Namespace, m.Name, err)
		}
		r.remember(m, written{uid: m.UID, version: sent.ResourceVersion, status: after.Status})
	}
	if r.Notifier != nil {
		r.Notifier.Passed(after, out, events)
	}
	for _, e := range events {
		if err := r.send(ctx, m, e); err != nil { // no reason to make the pass again: the status has it
			log.FromContext(ctx).Error(err, "event is lost", "note", e.Note)
		}
	}
	return nil
}

// Forget drops what is remembered of a Mooring that is gone, and its metrics.
func (r *Reporter) Forget(namespace, name string) {
	r.Metrics.Forget(namespace, name)
	if r.Notifier != nil {
		r.Notifier.Forget(namespace, name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, types.NamespacedName{Namespace: namespace, Name: name})
}

// newest is m with the status that was written last. A pass that begins at once after another finds in the cache what was
// there before; it would tell everything twice.
func (r *Reporter) newest(m *v1alpha1.Mooring) *v1alpha1.Mooring {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(m)
	last, ok := r.written[key]
	if !ok || last.uid != m.UID {
		return m
	}
	if order, err := resourceversion.CompareResourceVersion(m.ResourceVersion, last.version); err != nil || order >= 0 {
		delete(r.written, key) // it has done its service, and the statuses of many Moorings are large
		return m
	}
	m = m.DeepCopy()
	m.Status = *last.status.DeepCopy()
	return m
}

func (r *Reporter) remember(m *v1alpha1.Mooring, w written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written == nil {
		r.written = map[types.NamespacedName]written{}
	}
	r.written[client.ObjectKeyFromObject(m)] = w
}

// send writes an Event. client-go's recorder is of no use here: it takes two Events with the same reason for one, whatever
// their notes say, so that of two corrections only the first would ever be told.
func (r *Reporter) send(ctx context.Context, m *v1alpha1.Mooring, e Event) error {
	now := time.Now()
	err := r.Client.Create(ctx, &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: fmt.Sprintf("%.230s.%x", m.Name, now.UnixNano())},
		EventTime:  metav1.NewMicroTime(now),
		Type:       e.Type, Reason: e.Reason, Action: e.Action, Note: clip(e.Note),
		ReportingController: controller, ReportingInstance: r.Instance,
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind,
			Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		},
	})
	if err != nil {
		return fmt.Errorf("send Event %s of Mooring %s/%s: %w", e.Reason, m.Namespace, m.Name, err)
	}
	return nil
}
