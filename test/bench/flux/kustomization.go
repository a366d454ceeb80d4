package flux

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/test/poll"
)

// requestAnnotation asks for a pass, as `flux reconcile` does.
const requestAnnotation = "reconcile.fluxcd.io/requestedAt"

// Kustomization is a folder of the source that the controller keeps in force.
type Kustomization struct {
	Name   string
	client client.Client
}

// NewKustomization makes one for a folder.
func NewKustomization(ctx context.Context, c client.Client, name, path string, interval time.Duration) (Kustomization, error) {
	k := Kustomization{Name: name, client: c}
	u := k.object()
	u.Object["spec"] = map[string]any{
		"sourceRef": map[string]any{"kind": "GitRepository", "name": sourceName}, "path": "./" + path,
		"interval": interval.String(), "timeout": "10m", "prune": true,
	}
	return k, c.Create(ctx, u)
}

func (k Kustomization) object() *unstructured.Unstructured {
	return object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", k.Name, nil)
}

// Labels of its metrics.
func (k Kustomization) Labels() []string {
	return []string{fmt.Sprintf("name=%q", k.Name), fmt.Sprintf("namespace=%q", Namespace)}
}

// Applied waits until a revision is applied and the Kustomization is Ready.
func (k Kustomization) Applied(ctx context.Context, revision string) error {
	return k.until(ctx, "applied "+revision, func(u *unstructured.Unstructured) error {
		applied, _, _ := unstructured.NestedString(u.Object, "status", "lastAppliedRevision")
		observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
		if state, message := ready(u); state != "True" || applied != revision || observed != u.GetGeneration() {
			return fmt.Errorf("its Ready is %s: %s; %q is applied", state, message, applied)
		}
		return nil
	})
}

// WithoutArtifact waits until the controller has seen it and waits for the source.
func (k Kustomization) WithoutArtifact(ctx context.Context) error {
	return k.until(ctx, "waits for its source", func(u *unstructured.Unstructured) error {
		if state, message := ready(u); state != "False" {
			return fmt.Errorf("its Ready is %q: %s", state, message)
		}
		return nil
	})
}

// Sync asks for a pass and waits until it is over.
func (k Kustomization) Sync(ctx context.Context) error {
	word := time.Now().UTC().Format(time.RFC3339Nano)
	if err := k.patch(ctx, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, requestAnnotation, word)); err != nil {
		return err
	}
	return k.until(ctx, "did what it was asked to", func(u *unstructured.Unstructured) error {
		handled, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt")
		if state, message := ready(u); handled != word || state != "True" {
			return fmt.Errorf("its Ready is %s: %s; it was asked at %s and answered to %s", state, message, word, handled)
		}
		return nil
	})
}

// Every sets its interval.
func (k Kustomization) Every(ctx context.Context, interval time.Duration) error {
	return k.patch(ctx, fmt.Appendf(nil, `{"spec":{"interval":%q}}`, interval))
}

func (k Kustomization) patch(ctx context.Context, patch []byte) error {
	return k.client.Patch(ctx, k.object(), client.RawPatch(types.MergePatchType, patch))
}

func (k Kustomization) until(ctx context.Context, what string, right func(*unstructured.Unstructured) error) error {
	return poll.Until(ctx, fmt.Sprintf("Kustomization %s %s", k.Name, what), func() error {
		u := k.object()
		if err := k.client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		return right(u)
	})
}

// ready is the status and the message of the Ready condition.
func ready(u *unstructured.Unstructured) (state, message string) {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			state, _ = c["status"].(string)
			message, _ = c["message"].(string)
		}
	}
	return state, message
}
