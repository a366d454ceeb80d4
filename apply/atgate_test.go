package apply_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/apply"
)

// silent is a mesh in which no proxy ever acknowledges anything.
type silent struct{ asked chan []apply.Written }

func (s silent) Propagated(ctx context.Context, written []apply.Written) error {
	s.asked <- written
	<-ctx.Done()
	return errors.New("no proxy has acknowledged anything")
}

// Who calls Run may end the wait at a gate: what was done is kept, what is left is not reached, and the next plan goes on from there.
func TestWaitAtAGateCanBeEnded(t *testing.T) {
	f := newFixture(t)
	f.istio()
	newer := errors.New("another commit is newer")
	s := silent{asked: make(chan []apply.Written, 1)}
	f.unit.Mesh = s
	var gates []apply.Gate
	f.unit.AtGate = func(ctx context.Context, gate apply.Gate, wait func(context.Context) error) error {
		gates = append(gates, gate)
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			<-s.asked
			cancel(newer)
		}()
		return wait(ctx)
	}
	r, err := f.applier.Run(t.Context(), f.plan(mesh))
	if !errors.Is(err, newer) || strings.Contains(err.Error(), "no proxy") {
		t.Fatalf("the run ended with %v", err)
	}
	if len(gates) == 0 || gates[len(gates)-1] != apply.GatePropagated {
		t.Fatalf("gates: %v", gates)
	}
	missed := r.NotReached()
	if len(missed) != 1 || f.short(missed[0].ID) != "VirtualService/reviews" || len(r.Failed()) != 0 {
		t.Fatalf("not reached %v, failed %v", missed, r.Failed())
	}
	f.get("networking.istio.io", "v1", "destinationrules", "reviews")

	f.unit.Mesh, f.unit.AtGate = nil, nil
	p, _ := f.sync(mesh)
	f.want(p, "create VirtualService/reviews")
	f.settled(mesh)
}
