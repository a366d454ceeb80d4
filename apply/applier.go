// Package apply plans and makes the difference between what Git wants and what a cluster has.
package apply

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/render"
)

// Options of an Applier. The zero value is right for production.
type Options struct {
	// Concurrency is the number of requests at a time for one unit; 0 means 32.
	Concurrency int
	// GateTimeout bounds the wait for definitions to be established, for namespaces to be active and for a
	// replaced object to be gone; 0 means a minute.
	GateTimeout time.Duration
}

// Applier plans and runs against one cluster with one identity. It is safe for concurrent use; units do not wait for each other.
type Applier struct {
	mapper meta.RESTMapper
}

type resource struct{}

// New makes an Applier that uses cfg's identity for every request.
func New(cfg *rest.Config, opts Options) (*Applier, error) {
	return nil, errors.ErrUnsupported
}

// Plan compares the set with the unit's live objects.
func (a *Applier) Plan(ctx context.Context, u Unit, set *render.Set, p Policy) (*Plan, error) {
	return nil, errors.ErrUnsupported
}

// PlanDelete plans that everything of the unit goes; CRDs and namespaces are kept, and the plan says so.
func (a *Applier) PlanDelete(ctx context.Context, u Unit) (*Plan, error) {
	return nil, errors.ErrUnsupported
}

// Orphan makes nothing of the unit ours any more; the objects stay.
func (a *Applier) Orphan(ctx context.Context, u Unit) (*Result, error) {
	return nil, errors.ErrUnsupported
}

// Run does what the plan says.
func (a *Applier) Run(ctx context.Context, p *Plan) (*Result, error) {
	return nil, errors.ErrUnsupported
}

// Forget drops the memory of a unit.
func (a *Applier) Forget(id string) {}
