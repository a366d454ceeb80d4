package report

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// recorder sends Kubernetes Events: events.EventRecorder of client-go.
type recorder interface {
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// Reporter tells the cluster and Prometheus what became of a pass.
type Reporter struct {
	Client  client.Client
	Events  recorder
	Metrics *Metrics
}

// Report writes the status of m when it changed, sends the Events, and counts. m is left as it was given.
// An error means that the status could not be written; Events were not sent then, so that the next try sends them.
func (r *Reporter) Report(ctx context.Context, m *v1alpha1.Mooring, out Outcome) error {
	after := m.DeepCopy()
	after.Status = Status(m, out)
	if !reflect.DeepEqual(m.Status, after.Status) {
		if err := r.Client.Status().Patch(ctx, after.DeepCopy(), client.MergeFrom(m)); err != nil {
			return fmt.Errorf("write status of Mooring %s/%s: %w", m.Namespace, m.Name, err)
		}
	}
	for _, e := range Events(m.Status, after.Status, out) {
		r.Events.Eventf(m, nil, e.Type, e.Reason, e.Action, "%s", clip(e.Note))
	}
	r.Metrics.Observe(m.Namespace, m.Name, out)
	return nil
}
