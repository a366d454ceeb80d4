package apply

import (
	"iter"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mooring-dev/mooring/render"
)

// Policy is what a Mooring's spec and a human's word say about a plan.
type Policy struct {
	// Prune deletes what Git no longer has. When false such objects are kept, and stay the unit's.
	Prune bool
	// MaxPercent of the unit's live objects, and MaxObjects, may be deleted by one plan; more waits for a human's word. 0 means no limit.
	MaxPercent, MaxObjects int
	// WholeKinds holds a plan that takes the last object of a kind of which it deletes at least this many, so that Git has none of the kind
	// any more. 0 means no limit.
	WholeKinds int
	// HollowFiles holds a plan that deletes anything while Git has files that should hold objects and hold none (render.Set.Hollow).
	HollowFiles bool
	// Confirmed means that a human let this very plan through, and ConfirmedDeletes how many deletes the human knew of. More are held
	// again; 0 means that no number was named.
	Confirmed        bool
	ConfirmedDeletes int
	// Adopt are the tools that a human said to take objects over from, in this very plan.
	Adopt []Tool
	// Ignore are the fields that are left to others.
	Ignore []IgnoreRule
	// Drift says what is drift, and what is done about it.
	Drift DriftPolicy
}

// Plan is what a Run would do: data, to be printed, held, compared or refused.
type Plan struct {
	Unit Unit
	// Waves in the order in which they run, without the empty ones.
	Waves []Wave
	// Guard is nil when the plan may run.
	Guard *Guard
	// Kinds that the unit has or will have objects of while the plan runs: what Record is called with first.
	Kinds []schema.GroupKind
	// Live is the number of the unit's objects when the plan was made.
	Live int
	// Health of the objects that exist, as far as the plan saw it, sorted by ID.
	Health []Health
	// Notes are what a reader should know of the order: a cycle that had to be broken, and where.
	Notes []string
	// Fights are the tools at work that would put back what the plan adopts from them, and how to stop each.
	Fights []string

	// unlisted are recorded kinds that the API server does not serve today. They stay recorded: objects of theirs may come back with
	// the server of that kind.
	unlisted []schema.GroupKind
}

// Wave is a number of steps that run together, after the ones before are done.
type Wave struct {
	Name  string
	Steps []Step
	// Gate is what is waited for once the steps are done, before the next wave begins; empty for nothing.
	Gate Gate
}

// Gate is what a wave ends with.
type Gate string

// The gates.
const (
	// GateEstablished waits until definitions can be built upon: CRDs established, namespaces active.
	GateEstablished Gate = "established"
	// GateReady waits until istiod is ready, and its injector and validator are armed.
	GateReady Gate = "ready"
	// GatePropagated waits until the proxies have acknowledged what was written (Unit.Mesh).
	GatePropagated Gate = "propagated"
)

// The waves, in their order. One may come more than once, where its objects depend on each other.
const (
	// WaveDefinitions holds CRDs and namespaces.
	WaveDefinitions = "definitions"
	// WaveConfiguration holds what workloads read: accounts, roles, ConfigMaps, Secrets.
	WaveConfiguration = "configuration"
	// WaveControlPlane holds istiod and its webhooks.
	WaveControlPlane = "control plane"
	// WaveWorkloads holds workloads, Services, and every kind that has no place of its own, in the order of kinds.
	WaveWorkloads = "workloads"
	// WaveLoosened holds policies that let more through than before.
	WaveLoosened = "loosened policies"
	// WaveDestinations holds what routes lead to and through: ServiceEntry, DestinationRule, Gateway, Sidecar and their like. What they have
	// in the cluster and not in Git is kept until no route leads to it.
	WaveDestinations = "destinations"
	// WaveRoutes holds VirtualServices and the routes of the Gateway API.
	WaveRoutes = "routes"
	// WavePolicies holds policies that let less through.
	WavePolicies = "policies"
	// WaveWebhooks holds admission webhook configurations: what they call must be there first.
	WaveWebhooks = "webhooks"
	// WaveRetired holds the deletes of routes.
	WaveRetired = "retired routes"
	// WaveFinal gives objects their final form: what they kept for routes that have gone meanwhile goes.
	WaveFinal = "final forms"
	// WavePrune holds the other deletes, in reverse order of kinds.
	WavePrune = "prune"
)

// Action is what a step does.
type Action string

// The actions.
const (
	Create    Action = "create"
	Update    Action = "update"
	Replace   Action = "replace" // delete and create, because an immutable field changes
	Delete    Action = "delete"
	Unchanged Action = "unchanged"
	Skip      Action = "skip"
)

// Step is what a plan does with one object.
type Step struct {
	Action Action
	ID     render.ID
	// APIVersion that the object is written (or was found) in.
	APIVersion string
	// Origin of a wanted object; the zero Origin for a deleted one.
	Origin render.Origin
	// Reason says why where the action does not say it by itself.
	Reason string
	// Diff of an Update or Replace.
	Diff []FieldDiff
	// From are the tools that the object is adopted from.
	From []Holder
	// Drift says what somebody made of the object; empty where it is a commit that changes it, and where nothing differs.
	Drift Drift

	want         *form     // as it is applied
	resource     resource  // where it is applied, or deleted
	hash         string    // of what Git says, to be remembered
	uid          types.UID // of the live object; empty when there is none
	precondition string    // resourceVersion that the live object must still have
	counted      bool      // the live object is ours
	definition   render.ID // the CRD of the same set that defines the kind
	unwanted     bool      // Git does not have it
	take         bool      // what was set by hand is taken over first
	release      bool      // it is let go: it stays, and is ours no more
	heir         Heir      // whom it is offered to
	leave        []path    // what is left to others
	held         bool      // another tool manages it as well
	inherits     bool      // another unit may take it: it is kept until that is settled
	version      string    // resourceVersion that the live object had
	health       *Health

	// What the order is made of.
	live    *unstructured.Unstructured // as it was, where the plan read it
	applied *unstructured.Unstructured // as the dry-run says it will be
	stage   stage
	level   int         // inside the stage, the lowest first
	needs   []render.ID // what must have been done before, or this is not reached
	settle  bool        // all that was written before must have reached the proxies
	again   bool        // the second step of an object
	taken   []FieldDiff // those of Diff that come of a take-over
}

// Form is a copy of what the step applies; nil for a step that applies nothing. An object may have two steps in a plan: on the way to its
// final form it keeps what a route still needs.
func (s Step) Form() *unstructured.Unstructured {
	if s.want == nil || s.Action == Skip || s.Action == Delete {
		return nil
	}
	return s.want.get().DeepCopy()
}

// Again says that an earlier step of the plan is about the same object: a list that names each object once leaves this one out.
func (s Step) Again() bool {
	return s.again
}

// After is a copy of the object as an update leaves it, with what others own of it, as the API server said when the plan tried it. It is nil
// for other steps, and where that is not known: the plan could not try it, or takes fields over before.
func (s Step) After() *unstructured.Unstructured {
	if s.Action != Update || s.applied == nil || s.take || len(s.taken) > 0 {
		return nil
	}
	return s.applied.DeepCopy()
}

func (s Step) skip(reason string) Step {
	s.Action, s.Reason = Skip, reason
	return s
}

// over says that the step is about a live object.
func (s Step) over(m liveObject) Step {
	s.uid, s.version, s.counted = m.GetUID(), m.GetResourceVersion(), isOurs(m)
	return s
}

// FieldDiff is one field that differs. Values of Secrets are masked.
type FieldDiff struct {
	// Path is a JSON pointer.
	Path string
	// Want and Live are the values; nil means absent.
	Want, Live any
	// Manager owns the live value, or what it lies in: FieldManager when it is a commit that changes it, somebody else when it drifted; empty when
	// nobody says so: what was removed leaves no name behind.
	Manager string
	// Operation and ChangedAt are how and when the manager wrote, Update or Apply; the time is that of the manager's last write to the object.
	Operation string
	ChangedAt time.Time
}

// Who wrote the live value, as in "kubectl-edit (Update, 2026-01-02T03:04:05Z)"; empty for nobody but us.
func (d FieldDiff) Who() string {
	if d.Manager == "" || d.Manager == FieldManager {
		return ""
	}
	var how []string
	if d.Operation != "" {
		how = append(how, d.Operation)
	}
	if !d.ChangedAt.IsZero() {
		how = append(how, d.ChangedAt.UTC().Format(time.RFC3339))
	}
	if len(how) == 0 {
		return d.Manager
	}
	return d.Manager + " (" + strings.Join(how, ", ") + ")"
}

// GuardReason says why a guard holds a plan.
type GuardReason string

// The reasons of a guard.
const (
	GuardEmpty      GuardReason = "Empty"      // an empty render never prunes, whoever confirms
	GuardDefinition GuardReason = "Definition" // a CRD or a namespace would go
	GuardHollow     GuardReason = "Hollow"     // something would go while a file in Git that was read for objects holds none
	GuardKind       GuardReason = "Kind"       // every object of a kind would go, of several
	GuardLimit      GuardReason = "Limit"      // more would go than the policy allows, or than was confirmed
)

// Guard is the verdict on a plan that must not run as it is.
type Guard struct {
	Reason GuardReason
	// Message says what would go and how to mend it. It is the same as long as the plan is.
	Message string
}

// Counts of steps by action.
type Counts struct {
	Create, Update, Replace, Delete, Unchanged, Skip int
}

// Steps of all waves, in order.
func (p *Plan) Steps() iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for _, w := range p.Waves {
			for _, s := range w.Steps {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// Counts the objects by what is done with them; one that has two steps counts once.
func (p *Plan) Counts() Counts {
	var c Counts
	for s := range p.Steps() {
		if !s.again {
			c.add(s.Action)
		}
	}
	return c
}

// Changes is true when Run would write something.
func (p *Plan) Changes() bool {
	return p.Counts().Changes() > 0
}

// Unhealthy objects that the plan saw: all that are not Current.
func (p *Plan) Unhealthy() []Health {
	return unhealthy(p.Health)
}

// Changes is the number of steps that write.
func (c Counts) Changes() int {
	return c.Create + c.Update + c.Replace + c.Delete
}

func (c *Counts) add(a Action) {
	switch a {
	case Create:
		c.Create++
	case Update:
		c.Update++
	case Replace:
		c.Replace++
	case Delete:
		c.Delete++
	case Unchanged:
		c.Unchanged++
	case Skip:
		c.Skip++
	}
}

func unhealthy(all []Health) []Health {
	return slices.DeleteFunc(slices.Clone(all), func(h Health) bool { return h.Current() })
}
