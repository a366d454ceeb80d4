package sync_test

import (
	"errors"
	"testing"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// A commit with its submodules is another target than the same commit without them: what was remembered of the one says nothing about the other.
func TestSubmodulesMakeAnotherTarget(t *testing.T) {
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if w.recursed {
		t.Error("submodules were asked for, unasked")
	}
	w.head = rev("b")
	w.renderErr[rev("b").Commit] = errors.New("sub is a submodule")
	want(t, w.pass(t), v1alpha1.ReasonRenderFailed)
	delete(w.renderErr, rev("b").Commit)
	want(t, w.pass(t), v1alpha1.ReasonRenderFailed) // remembered
	w.m.Spec.Source.RecurseSubmodules = true
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if !w.recursed {
		t.Error("submodules were not asked for")
	}
	renders := w.renders
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if w.renders != renders {
		t.Error("at rest it was rendered again")
	}
}
