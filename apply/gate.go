package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// pass waits at a gate. A gate that nothing was written before is open. An error stops the run.
func (r *runner) pass(ctx context.Context, gate Gate, steps []StepResult) error {
	if gate == "" || r.unit.AtGate == nil {
		return r.wait(ctx, gate, steps)
	}
	return r.unit.AtGate(ctx, gate, func(ctx context.Context) error { return r.wait(ctx, gate, steps) })
}

func (r *runner) wait(ctx context.Context, gate Gate, steps []StepResult) error {
	switch gate {
	case GateEstablished:
		r.established(ctx, steps)
	case GateReady:
		r.unready = r.controlPlaneReady(ctx, steps, time.Now().Add(r.gateTimeout))
	case GatePropagated:
		return r.propagated(ctx)
	}
	return nil
}

// propagated waits until what was written has reached the proxies, and what was there before as well: the run before may have been broken off
// between a write and this.
func (r *runner) propagated(ctx context.Context) error {
	if r.unit.Mesh == nil || ctx.Err() != nil || !r.ahead() {
		return nil
	}
	r.mu.Lock()
	written := slices.SortedFunc(maps.Values(r.stands), func(x, y Written) int { return compareIDs(x.ID, y.ID) })
	r.mu.Unlock()
	err := safely(func() error { return r.unit.Mesh.Propagated(ctx, written) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("wait until the proxies know what was written, before anything relies on it: %w", err)
	}
	return nil
}

// ahead says whether anything is left to be written.
func (r *runner) ahead() bool {
	return slices.ContainsFunc(r.result.Steps, func(s StepResult) bool { return s.State == NotReached && s.Err == nil && s.writes() })
}

// wrote notes an object as it stands after a write.
func (r *runner) wrote(s Step, uid types.UID, resourceVersion string) {
	if !reachesProxies(s.ID.GroupKind()) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stands[s.ID] = Written{ID: s.ID, UID: uid, ResourceVersion: resourceVersion, Deleted: resourceVersion == ""}
}

// reachesProxies is true for kinds that istiod makes configuration of.
func reachesProxies(gk schema.GroupKind) bool {
	return isMesh(gk) || gk == kindService
}

// established waits until the definitions that were written can be built upon: CRDs established, namespaces active. So does it for one that an earlier run
// wrote, when something that is still to be written relies on it. One that does not come so far has failed, and what depends on it is not reached.
func (r *runner) established(ctx context.Context, steps []StepResult) {
	until := time.Now().Add(r.gateTimeout)
	var wg sync.WaitGroup
	for i := range steps {
		s := &steps[i]
		if s.State != Done || !s.writes() && !r.awaited(s) {
			continue
		}
		r.changed[s.ID] = true
		wg.Go(func() {
			if err := safely(func() error { return r.ready(ctx, s, until) }); err != nil {
				r.fail(s, Failed, err)
			}
		})
	}
	wg.Wait()
	if len(r.changed) > 0 {
		// What is served has changed: the next plan asks anew.
		r.forgetCatalog()
	}
}

// awaited is true for a definition that is as it should be, but that the server has not taken up yet, and that something ahead relies on.
func (r *runner) awaited(s *StepResult) bool {
	return s.Action == Unchanged && s.health != nil && !s.health.Current() &&
		slices.ContainsFunc(r.result.Steps, func(o StepResult) bool { return o.State == NotReached && o.definition == s.ID && o.writes() })
}

func (r *runner) ready(ctx context.Context, s *StepResult, until time.Time) error {
	last, err := r.await(ctx, s, until, unready)
	if err != nil {
		return err
	}
	s.health = r.unit.healthOf(last)
	return nil
}

// await reads the object of a step until fault finds none in it. It gives the object as it was read last, also beside an error.
func (r *runner) await(ctx context.Context, s *StepResult, until time.Time, fault func(*unstructured.Unstructured) error) (last *unstructured.Unstructured, err error) {
	err = poll(ctx, until, func() (bool, error) {
		full, err := r.get(ctx, s.resource, s.ID.Namespace, s.ID.Name)
		if err != nil {
			return true, err
		}
		last = full
		err = fault(full)
		return err == nil, err
	})
	return last, err
}

// unready says why a definition cannot be built upon yet.
func unready(full *unstructured.Unstructured) error {
	if full.GetKind() == kindNamespace.Kind {
		phase, _, _ := unstructured.NestedString(full.Object, "status", "phase")
		if phase != "Active" {
			return fmt.Errorf("is %s, not Active", phase)
		}
		return nil
	}
	conditions, _, _ := unstructured.NestedSlice(full.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		switch condition["type"] {
		case "NamesAccepted":
			if condition["status"] == "False" {
				return fmt.Errorf("its names are not accepted: %v", condition["message"])
			}
		case "Established":
			if condition["status"] == "True" {
				return nil
			}
		}
	}
	return errors.New("is not established")
}

// poll asks until it is done or the time is over, at growing intervals, at least once. It gives the last error.
func poll(ctx context.Context, until time.Time, ask func() (done bool, err error)) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		done, err := ask()
		if done || err == nil || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}
