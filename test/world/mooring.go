package world

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/poll"
)

// Key names a Mooring.
type Key = types.NamespacedName

// Mooring reads a Mooring.
func (w *World) Mooring(ctx context.Context, key Key) (*v1alpha1.Mooring, error) {
	m := &v1alpha1.Mooring{}
	if err := w.client.Get(ctx, key, m); err != nil {
		return nil, fmt.Errorf("read Mooring %s: %w", key, err)
	}
	return m, nil
}

// Ready is the Ready condition of a Mooring; the zero Condition when no agent has looked at it yet.
func Ready(m *v1alpha1.Mooring) metav1.Condition {
	if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		return *ready
	}
	return metav1.Condition{}
}

// Ask asks for a pass now, without waiting for it, and gives the word by which the answer is known.
func (w *World) Ask(ctx context.Context, key Key) (string, error) {
	word := time.Now().UTC().Format(time.RFC3339Nano)
	m := &v1alpha1.Mooring{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ReconcileAnnotation, word)
	if err := w.client.Patch(ctx, m, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return "", fmt.Errorf("annotate Mooring %s: %w", key, err)
	}
	return word, nil
}

// Sync asks for a pass now and waits until one that began after the question is over.
func (w *World) Sync(ctx context.Context, key Key) (*v1alpha1.Mooring, error) {
	word, err := w.Ask(ctx, key)
	if err != nil {
		return nil, err
	}
	return w.Until(ctx, key, "the pass that was asked for is over", func(m *v1alpha1.Mooring) error {
		if m.Status.LastHandledReconcileAt != word {
			return fmt.Errorf("Ready is %s, %s", Ready(m).Reason, Ready(m).Message)
		}
		return nil
	})
}

// Until reads a Mooring until right has no error, and gives it as it was then.
func (w *World) Until(ctx context.Context, key Key, what string, right func(*v1alpha1.Mooring) error) (*v1alpha1.Mooring, error) {
	var m *v1alpha1.Mooring
	err := poll.Until(ctx, fmt.Sprintf("%s (Mooring %s)", what, key), func() (err error) {
		if m, err = w.Mooring(ctx, key); err != nil {
			return err
		}
		return right(m)
	})
	return m, err
}

// HasReason is a condition for Until: the newest pass ended with this Ready reason.
func HasReason(reason string) func(*v1alpha1.Mooring) error {
	return func(m *v1alpha1.Mooring) error {
		ready := Ready(m)
		if ready.Reason != reason || ready.ObservedGeneration != m.Generation {
			return fmt.Errorf("Ready is %s %q (generation %d of %d), not %s: %s",
				ready.Status, ready.Reason, ready.ObservedGeneration, m.Generation, reason, ready.Message)
		}
		return nil
	}
}

// InForce is a condition for Until: the commit is applied, and nothing is left to do.
func InForce(commit string) func(*v1alpha1.Mooring) error {
	return func(m *v1alpha1.Mooring) error {
		if err := HasReason(v1alpha1.ReasonApplied)(m); err != nil {
			return err
		}
		if !strings.HasSuffix(m.Status.LastAppliedRevision, commit) || commit == "" {
			return fmt.Errorf("%s is applied, not %s", m.Status.LastAppliedRevision, commit)
		}
		return nil
	}
}

// Event is one Event about a Mooring.
type Event struct {
	Type, Reason, Action, Note string
	// Count is how often it was seen.
	Count int
	// At is when it was seen last.
	At time.Time
}

// Events about a Mooring, the oldest first.
func (w *World) Events(ctx context.Context, key Key) ([]Event, error) {
	list := &eventsv1.EventList{}
	if err := w.client.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Events of Mooring %s: %w", key, err)
	}
	var events []Event
	for _, e := range list.Items {
		if e.Regarding.Kind != v1alpha1.Kind || e.Regarding.Name != key.Name {
			continue
		}
		event := Event{Type: e.Type, Reason: e.Reason, Action: e.Action, Note: e.Note, Count: 1, At: e.EventTime.Time}
		if e.Series != nil {
			event.Count, event.At = int(e.Series.Count), e.Series.LastObservedTime.Time
		}
		events = append(events, event)
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Note, b.Note)) })
	return events, nil
}

// Describe writes all that is known about a Mooring, for the message of a failure.
func (w *World) Describe(ctx context.Context, key Key) string {
	var b strings.Builder
	m, err := w.Mooring(ctx, key)
	if err != nil {
		fmt.Fprintf(&b, "--- %v\n", err)
	} else {
		m.ManagedFields = nil
		text, err := yaml.Marshal(m)
		fmt.Fprintf(&b, "--- Mooring %s:\n%s", key, text)
		if err != nil {
			fmt.Fprintf(&b, "%v\n", err)
		}
	}
	events, err := w.Events(ctx, key)
	fmt.Fprintf(&b, "--- its Events:\n")
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s %s ×%d: %s\n", e.At.Format(time.TimeOnly), e.Type, e.Reason, e.Count, e.Note)
	}
	if err != nil {
		fmt.Fprintf(&b, "%v\n", err)
	}
	return b.String()
}
