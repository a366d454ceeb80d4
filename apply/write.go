package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// attempts bounds what is tried again because an object moved between reading and writing it.
const attempts = 5

// never is a resourceVersion that no object has. An apply that carries it creates, and never changes what is there: the
// server compares it only when there is something to compare it with.
const never = "1"

var errMoved = errors.New("changed since it was planned; the next pass looks at it again")

// do one step that writes.
func (r *runner) do(ctx context.Context, s *StepResult) error {
	switch {
	case s.Action == Delete:
		return r.remove(ctx, s.Step)
	case s.release:
		return r.letGo(ctx, s.Step)
	case s.heir.ID != "":
		return r.offer(ctx, s.Step)
	}
	if err := r.injects(ctx, s.Step); err != nil {
		return err
	}
	switch s.Action {
	case Replace:
		if err := r.removeAndWait(ctx, s.Step); err != nil {
			return err
		}
		return r.create(ctx, s)
	case Create:
		return r.create(ctx, s)
	default:
		return r.update(ctx, s)
	}
}

func (r *runner) create(ctx context.Context, s *StepResult) error {
	form := s.want.get().DeepCopy()
	form.SetResourceVersion(never)
	err := r.write(ctx, s, form)
	if apierrors.IsConflict(err) {
		if s.uid != "" && s.Action == Create {
			return errors.New("is being deleted; it is created again once it is gone")
		}
		return fmt.Errorf("somebody else created it: %w", errMoved)
	}
	return err
}

func (r *runner) update(ctx context.Context, s *StepResult) error {
	form := s.want.get().DeepCopy()
	if s.take {
		version, err := r.takeOver(ctx, s.Step)
		if err != nil {
			return fmt.Errorf("take over fields: %w", err)
		}
		if s.precondition != "" {
			s.precondition = version
		}
	}
	if s.uid != "" {
		form.SetUID(s.uid)
	}
	for range attempts {
		if len(s.leave) > 0 {
			var err error
			if form, err = r.leaving(ctx, s); err != nil {
				return err
			}
		} else if s.precondition != "" {
			form.SetResourceVersion(s.precondition)
		}
		err := r.write(ctx, s, form)
		if !apierrors.IsConflict(err) {
			return err
		}
		if len(s.leave) > 0 {
			continue // what is left to others has moved, or the status has
		}
		if s.precondition == "" {
			return errMoved
		}
		// It must still be nobody's when it becomes ours. A status that changes meanwhile does not matter.
		m, err := r.getMeta(ctx, s.resource, s.ID.Namespace, s.ID.Name)
		if err != nil {
			return err
		}
		if m.UID != s.uid || !mayWrite(m, r.unit.ID, s.Step) {
			return errMoved
		}
		s.precondition = m.ResourceVersion
	}
	return errMoved
}

// write applies a form and remembers the answer. An object whose definition this run changed is tried again for a while: the server takes up
// a new kind, or a new schema, a moment after it says that it has.
func (r *runner) write(ctx context.Context, s *StepResult, form *unstructured.Unstructured) error {
	until := time.Now()
	if r.changed[s.definition] {
		until = until.Add(min(r.gateTimeout, 10*time.Second))
	}
	var answer *unstructured.Unstructured
	err := poll(ctx, until, func() (bool, error) {
		var err error
		answer, err = r.apply(ctx, s.resource, form, false)
		again := apierrors.IsNotFound(err) || isSchemaError(err)
		return err == nil || !again, err
	})
	if hook, ok := asWebhookError(err); ok {
		return hook
	}
	if err != nil {
		return err
	}
	s.health = r.unit.healthOf(answer)
	r.wrote(s.Step, answer.GetUID(), answer.GetResourceVersion())
	r.memory.remember(r.unit.ID, s.ID, memo{
		uid: answer.GetUID(), resourceVersion: answer.GetResourceVersion(), hash: s.hash, status: s.health.Status, message: s.health.Message, checks: r.unit.Health.Key(),
	})
	return nil
}

// remove deletes a live object, unless it changed into one that is not ours to delete.
func (r *runner) remove(ctx context.Context, s Step) error {
	version := s.precondition
	if s.again {
		r.mu.Lock()
		s.uid = r.stands[s.ID].UID // this run made it
		r.mu.Unlock()
	}
	for range attempts {
		background := metav1.DeletePropagationBackground
		conditions := &metav1.Preconditions{UID: &s.uid}
		if version != "" {
			conditions.ResourceVersion = &version
		}
		err := r.metaResource(s.resource, s.ID.Namespace).Delete(ctx, s.ID.Name,
			metav1.DeleteOptions{Preconditions: conditions, PropagationPolicy: &background})
		if err == nil || isGone(err) {
			r.memory.drop(r.unit.ID, s.ID)
			r.wrote(s, s.uid, "")
			return nil
		}
		if !apierrors.IsConflict(err) {
			return discreet(s.ID.GroupKind(), err)
		}
		m, err := r.getMeta(ctx, s.resource, s.ID.Namespace, s.ID.Name)
		if isGone(err) || err == nil && m.UID != s.uid {
			// Ours is gone; who took its name since is not ours.
			r.memory.drop(r.unit.ID, s.ID)
			return nil
		}
		if err != nil {
			return err
		}
		if s.Action == Delete {
			if now := unwanted(s.ID, liveObject{Object: m, resource: s.resource}); now.Action != Delete || m.Labels[PartOfLabel] != r.unit.ID {
				return errMoved
			}
		}
		version = m.ResourceVersion
	}
	return errMoved
}

// removeAndWait deletes an object that is to be created again.
func (r *runner) removeAndWait(ctx context.Context, s Step) error {
	if err := r.remove(ctx, s); err != nil {
		return fmt.Errorf("delete it to create it again: %w", err)
	}
	err := poll(ctx, time.Now().Add(r.gateTimeout), func() (bool, error) {
		m, err := r.getMeta(ctx, s.resource, s.ID.Namespace, s.ID.Name)
		if isGone(err) || err == nil && m.UID != s.uid {
			return true, nil
		}
		if err != nil {
			return true, err
		}
		return false, fmt.Errorf("it is not gone after %s, finalizers: %v", r.gateTimeout, m.Finalizers)
	})
	if err != nil {
		return fmt.Errorf("wait for the old one to be gone: %w", err)
	}
	return nil
}

// takeOver makes what was set by hand ours, so that the apply that follows removes what of it Git does not say.
// It gives the resourceVersion that the object then has.
func (r *runner) takeOver(ctx context.Context, s Step) (string, error) {
	return r.patchMetadata(ctx, s, func(m *metav1.PartialObjectMetadata) ([]patch, error) {
		if !mayWrite(m, r.unit.ID, s) {
			return nil, errMoved
		}
		fields, err := takenOver(m.ManagedFields, s.From, s.leave)
		return append([]patch{{"replace", "/metadata/managedFields", fields}}, strip(m, s)...), err
	})
}

// letGo makes an object nobody's: it stays as it is, without our label and without our field manager.
func (r *runner) letGo(ctx context.Context, s Step) error {
	_, err := r.patchMetadata(ctx, s, func(m *metav1.PartialObjectMetadata) ([]patch, error) {
		if m.Labels[PartOfLabel] != r.unit.ID {
			return nil, nil
		}
		patches := []patch{{"remove", "/metadata/labels/" + escape(PartOfLabel), nil}}
		for _, name := range []string{AppliedAnnotation, HandoverAnnotation} {
			if _, ok := m.Annotations[name]; ok {
				patches = append(patches, patch{"remove", "/metadata/annotations/" + escape(name), nil})
			}
		}
		return append(patches, patch{"replace", "/metadata/managedFields", withoutOurs(m.ManagedFields)}), nil
	})
	if isGone(err) {
		err = nil
	}
	if err == nil {
		r.memory.drop(r.unit.ID, s.ID)
	}
	return err
}

// patch is one operation of RFC 6902.
type patch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// patchMetadata reads an object's metadata and patches it, as long as nobody writes in between.
func (r *runner) patchMetadata(ctx context.Context, s Step, change func(*metav1.PartialObjectMetadata) ([]patch, error)) (string, error) {
	where := r.metaResource(s.resource, s.ID.Namespace)
	for range attempts {
		m, err := where.Get(ctx, s.ID.Name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if m.UID != s.uid {
			return "", errMoved
		}
		patches, err := change(m)
		if err != nil || len(patches) == 0 {
			return m.ResourceVersion, err
		}
		body, err := json.Marshal(append(patches, patch{"replace", "/metadata/resourceVersion", m.ResourceVersion}))
		if err != nil {
			return "", err
		}
		after, err := where.Patch(ctx, s.ID.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
		if err == nil {
			return after.ResourceVersion, nil
		}
		if !apierrors.IsConflict(err) {
			return "", discreet(s.ID.GroupKind(), err)
		}
	}
	return "", errMoved
}

// withoutOurs gives managedFields without our entry. An empty list would be taken for "as before": a list of one empty entry clears it.
func withoutOurs(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Manager != FieldManager {
			kept = append(kept, entry)
		}
	}
	if len(kept) == 0 {
		return []metav1.ManagedFieldsEntry{{}}
	}
	return kept
}

func isGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsGone(err)
}
