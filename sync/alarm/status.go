package alarm

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// maxOpen is how many open faults the status holds.
const maxOpen = 1000

// problem is why an Alarm is not Ready.
type problem struct{ reason, message string }

// Error makes a problem that a receiver has an error.
func (p *problem) Error() string { return p.message }

// problemOf an error. Its text goes to the status.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return &problem{p.reason, clip(err.Error(), maxError)}
	}
	return &problem{v1alpha1.AlarmReasonSendFailed, clip(err.Error(), maxError)}
}

// maxError is how long the text of an error in a status may be.
const maxError = 500

// statusBook is what an Alarm's status says, and what was written of it.
type statusBook struct {
	// blocked is why nothing is heard; trouble is why nothing could be sent; unfit is what is wrong and keeps nobody from sending.
	blocked, trouble, unfit *problem

	status, written v1alpha1.AlarmStatus
	// statusAt is when a write that failed is tried again; zero when none did.
	statusAt time.Time
}

// condition Ready, from what is known.
func (w *worker) condition() metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: w.alarm.Generation,
		Reason: v1alpha1.AlarmReasonListening, Message: "messages are sent as things happen",
	}
	if w.alarm.Spec.Suspend {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.AlarmReasonSuspended, "suspended: nothing is sent until spec.suspend is false"
		return c
	}
	for _, p := range []*problem{w.blocked, w.trouble, w.unfit} {
		if p != nil {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, p.reason, p.message
			break
		}
	}
	return c
}

// writeStatus writes the status when it changed. It is written after what it tells was sent.
func (w *worker) writeStatus(ctx context.Context) {
	w.mu.Lock()
	if n := w.book.dropped; n > 0 {
		w.book.dropped = 0
		w.Metrics.dropped.WithLabelValues(w.key.Namespace, w.key.Name).Add(float64(n))
	}
	if w.checkAt.IsZero() || w.trouble != nil || w.blocked != nil || w.alarm.Spec.Suspend { // else nobody knows yet
		meta.SetStatusCondition(&w.status.Conditions, w.condition())
		w.status.ObservedGeneration = w.alarm.Generation
	}
	w.status.Open, w.status.OpenCount = openFaults(w.book.open)
	before := &v1alpha1.Alarm{ObjectMeta: metav1.ObjectMeta{Namespace: w.key.Namespace, Name: w.key.Name}, Status: *w.written.DeepCopy()}
	after := before.DeepCopy()
	after.Status = *w.status.DeepCopy()
	w.statusAt = time.Time{}
	w.mu.Unlock()
	if reflect.DeepEqual(before.Status, after.Status) {
		return
	}
	wanted := *after.Status.DeepCopy()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := w.statuses.write(ctx, before, after)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.written = wanted
	case client.IgnoreNotFound(err) != nil && ctx.Err() == nil:
		w.Log.Error(err, "status of an Alarm could not be written", "alarm", w.key.String())
		fallthrough
	default:
		w.statusAt = time.Now().Add(firstPause)
	}
}

// statusClient writes to the API server. It asks for no version: nobody else writes this status.
type statusClient struct{ client.Client }

func (c statusClient) write(ctx context.Context, before, after *v1alpha1.Alarm) error {
	return c.Status().Patch(ctx, after, client.MergeFrom(before))
}

// openFaults as the status lists them.
func openFaults(open map[place]fault) (listed []v1alpha1.OpenFault, count int32) {
	for p, f := range open {
		listed = append(listed, v1alpha1.OpenFault{Mooring: p.mooring.String(), Event: f.event, Reason: f.reason, Since: metav1.NewTime(f.since.Truncate(time.Second))})
	}
	slices.SortFunc(listed, func(a, b v1alpha1.OpenFault) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Mooring, b.Mooring), cmp.Compare(a.Event, b.Event))
	})
	return listed[:min(len(listed), maxOpen)], int32(len(open))
}

// placeOf an open fault of a status; false when nobody of ours wrote it.
func placeOf(o v1alpha1.OpenFault) (place, bool) {
	namespace, name, ok := strings.Cut(o.Mooring, "/")
	return place{types.NamespacedName{Namespace: namespace, Name: name}, aspectOf(o.Event)}, ok
}

// clip cuts a text that is too long.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len("…")], "") + "…"
}
