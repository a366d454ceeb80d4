package apply

import (
	"strconv"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// Health of one live object, in kstatus' words: Current, InProgress, Failed, Terminating, Unknown. It is read from answers that
// were needed anyway, and remembered as long as the object does not move, so to wait for health costs no request.
//
// What is asked, in this order: the unit's own expressions (HealthChecks); for Istio's kinds and those of the Gateway API what their
// controllers write (meshhealth.go); kstatus for everything else.
type Health struct {
	ID      render.ID
	Status  status.Status
	Message string
}

// Current is true when the object is as its spec wants it.
func (h Health) Current() bool {
	return h.Status == status.CurrentStatus
}

// healthOf a complete object.
func (u Unit) healthOf(full *unstructured.Unstructured) *Health {
	h := &Health{ID: render.IDOf(full)}
	if full.GetDeletionTimestamp() != nil {
		return terminating(h.ID)
	}
	full = numbered(full)
	if check := u.Health.of(h.ID.GroupKind()); check != nil {
		h.Status, h.Message = check.judge(full)
		return h
	}
	if judge := meshHealth(h.ID.GroupKind()); judge != nil {
		h.Status, h.Message = judge(full)
		return h
	}
	result, err := status.Compute(full)
	if err != nil {
		h.Status, h.Message = status.UnknownStatus, err.Error()
		return h
	}
	h.Status = result.Status
	if !h.Current() {
		h.Message = result.Message
	}
	return h
}

// numbered gives an object whose observedGeneration is a number: protobuf's JSON writes 64-bit numbers as strings, and
// so does Istio's status.
func numbered(u *unstructured.Unstructured) *unstructured.Unstructured {
	text, found, err := unstructured.NestedString(u.Object, "status", "observedGeneration")
	if err != nil || !found {
		return u
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return u
	}
	u = u.DeepCopy()
	_ = unstructured.SetNestedField(u.Object, number, "status", "observedGeneration")
	return u
}

func terminating(id render.ID) *Health {
	return &Health{ID: id, Status: status.TerminatingStatus, Message: "is being deleted"}
}

// remember keeps what an answer of the server says about an object that is right, in the version that it then had.
func (p *planner) remember(step *Step, full *unstructured.Unstructured, resourceVersion string) {
	step.health = p.unit.healthOf(full)
	if full.GetResourceVersion() != resourceVersion {
		return // it moved between two requests: the next pass looks again
	}
	p.memory.remember(p.unit.ID, step.ID, memo{
		uid: full.GetUID(), resourceVersion: resourceVersion, hash: step.hash, status: step.health.Status, message: step.health.Message, checks: p.unit.Health.Key(),
	})
}
