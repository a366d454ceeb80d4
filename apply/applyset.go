package apply

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/render"
)

// FieldManager is the name under which every field is applied.
const FieldManager = "mooring"

// PartOfLabel is the label that every object of a unit carries; its value is the unit's ApplySet id (KEP-3659).
const PartOfLabel = "applyset.kubernetes.io/part-of"

// Annotations that a user sets on an object, in Git or on the live object, to be treated differently.
const (
	// PruneAnnotation with the value "disabled" keeps an object that Git no longer has.
	PruneAnnotation = "mooring.dev/prune"
	// DriftAnnotation with the value "ignore": changed by commits alone; what others change is left as it is.
	DriftAnnotation = "mooring.dev/drift"
	// ReconcileAnnotation with the value "disabled": Mooring does not touch the object at all.
	ReconcileAnnotation = "mooring.dev/reconcile"
	// ForceAnnotation with the value "enabled": delete and create again when an immutable field changes.
	ForceAnnotation = "mooring.dev/force"
	// AppliedAnnotation is ours: the hash of what was applied last to an object whose drift is ignored. It tells a
	// commit from a drift also after a restart.
	AppliedAnnotation = "mooring.dev/applied"
)

// ApplySetID of a parent object, as KEP-3659 defines it.
func ApplySetID(name, namespace, kind, group string) string {
	sum := sha256.Sum256([]byte(name + "." + namespace + "." + kind + "." + group))
	return "applyset-" + base64.RawURLEncoding.EncodeToString(sum[:]) + "-v1"
}

// Unit says whose objects they are: it is the ApplySet, and its parent is a Mooring.
type Unit struct {
	// ID is the ApplySet id, the value of PartOfLabel.
	ID string
	// Name is "namespace/name" of the Mooring, for messages.
	Name string
	// Kinds of which the parent says that it may have objects (its contains-group-kinds annotation).
	Kinds []schema.GroupKind
	// Record makes the parent say other kinds. Run calls it before the first write with every kind that there was or
	// will be, so that an object can never exist whose kind nobody would look for; and after a complete run with the kinds
	// that are left. It is not called when the parent says the right kinds already. Nil where nobody keeps them (a diff).
	Record func(ctx context.Context, kinds []schema.GroupKind) error
	// Mesh says when what was written has reached the proxies. Nil where nobody asks: then nothing is waited for.
	Mesh Mesh
	// AtGate is called where a run is about to wait at a gate, and calls wait. It may end the wait by ending the context that it
	// gives to it: then the run stops with the error that AtGate answers, and what was done is kept. Nil waits.
	AtGate func(ctx context.Context, gate Gate, wait func(context.Context) error) error
	// Health judges the health of kinds by expressions; nil where there are none.
	Health *HealthChecks
	// Moorings knows the other Moorings: who has an object, and who wants one that goes. Nil where there is no other.
	Moorings Moorings
}

// Mesh knows how far a change has come on its way to the proxies.
type Mesh interface {
	// Propagated returns once every connected proxy has acknowledged what was written, and all before it. The error names the
	// proxy that did not, and what it said.
	Propagated(ctx context.Context, written []Written) error
}

// Written is one object as a run left it.
type Written struct {
	ID  render.ID
	UID types.UID
	// ResourceVersion that the API server answered with; empty for a deleted object.
	ResourceVersion string
	Deleted         bool
}
