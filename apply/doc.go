// Package apply makes the difference between what Git wants and what a cluster has, first as a plan, then as a run.
//
// Plan looks and decides and writes nothing; Run does what the plan says and decides nothing. A plan is data: a command prints it, a window
// holds it, a guard refuses it, a preview throws it away.
//
// # What is ours
//
// The objects of a Mooring are an ApplySet (KEP-3659). Each carries the label PartOfLabel with the set's id on the very request that
// creates it, and the parent says of which kinds there may be objects: Unit.Record, called before the first write. So an agent that dies at any instant
// leaves nothing that the next one would not find. Deleted is only what is ours twice: by the label, and by FieldManager among the managers that applied it. A label
// can be copied with an object; a field manager is what the API server saw.
//
// # Looking
//
// One LIST of metadata for each kind, selected by the label, says what there is; with a watch (Options.Wake, package watch) even that is not needed, but for
// once an hour, and of what moved the metadata is read (watching.go). What has the resourceVersion in which it was right, and is still
// wanted as it was, needs no further request: at rest that LIST is all. What moved is tried: a server-side apply as a dry-run, strict and forced. The object itself is read only
// when its metadata says that something would change, or cannot say (kinds without a generation). What does not carry the label is found by the same dry-run, which
// answers without a resourceVersion when the object is not there: a creation costs its dry-run and its apply, and no GET.
//
// An answer is never made up from an error: discovery of a group, a LIST, a GET that fail mean that there is no plan (a 404 for a kind
// means "none" only when a complete discovery says so too). A recorded kind that is not served today stays recorded.
//
// Surroundings is another look, for the check of a commit and only then: what lives there whoever it belongs to, Pods and Secrets as metadata alone. What cannot be
// listed is said to be unread.
//
// # Deciding
//
// A difference is what people write: labels, annotations, finalizers, owners and everything but metadata and status. Fields that other
// controllers own and Git does not say are theirs. Fields that people set with kubectl and Git does not say are taken over and removed (takeover.go says why
// and which). What istiod must write into its own webhooks is left to it (form.go). Immutable fields are an error with a hint, or a replacement where
// ForceAnnotation asks for one and the server objects to nothing else. DriftAnnotation leaves alone what others change, until a commit changes the object, which
// then is applied whole. What somebody changed and what a commit changes are told apart by what was in force (drift.go); Policy.Drift says which drift is only
// told of, and which has to wait.
//
// What an autoscaler, Argo Rollouts or Flagger writes is left to it, and so is what Policy.Ignore names (leave.go, shared.go). An object that another tool
// keeps is refused until a human says whom to adopt it from (adopt.go). One that moves between Moorings is handed over, never deleted and made
// anew, in whichever order the two are looked after (handover.go says how, and what is promised).
//
// What cannot be tried yet, because its namespace or its definition is written by the same plan, is planned untried, and the step's reason says so. So is what
// an admission webhook would have to judge that does not answer: that is the cluster's fault and not the commit's (WebhookError), the rest goes on, and the plan may be
// the one that mends it.
//
// # The order
//
// A route that reaches a proxy before the subset that it leads to, or a subset that goes before the route does, answers 503 for as long as that lasts. Istio says to
// make before one breaks (istio.io, Traffic Management Best Practices); a plan does so by itself. Each object offers things (a host, a port, a subset, a
// host at a gateway, a delegate) and each route needs some (thing.go). From what lives and what is wanted follows who comes before whom:
//
//   - What offers something new is written before the route that needs it, and has reached the proxies by then (GatePropagated). That gate is also there when
//     nothing is left to be written before it: the run before may have died between the two.
//   - What an object loses, it keeps until no live route needs it: the update is two steps, the first with the old things beside the new ones, the second,
//     behind a gate, without them. A rule that gets another host cannot be both, and gets a stand-in of another name for that time.
//   - What a route that is not the plan's own needs is kept for as long as that route is there, and the step says so.
//   - A VirtualService that takes a host over from another is there before that one drops it; what a root hands on to is there before the root does.
//   - Policies that let more through come first, those that let less through last: who is believed, who may come in, who may not. Mutual TLS is PERMISSIVE between
//     DISABLE and STRICT.
//   - A host that moves to the ServiceEntry of another namespace has its rule there before the entry, and here until the old entry is gone (moved.go).
//   - Sidecars come late: a proxy knows what its routes lead to, whether its Sidecar names that or not, but only for as long as it has the route.
//
// Where two wait for each other one goes first, and Plan.Notes says so. All other kinds come in waves: definitions, what workloads read, Istio's
// control plane, workloads, the mesh, admission webhooks; deletes last, routes before what they led to, and the rest in reverse order of kinds.
//
// # Running
//
// Wave by wave. A failed object stops what depends on it and nothing else; deletes begin only when all else went well. A gate that is not passed stops the run, with what
// was done kept: what lives then is no accident but the state that the next plan begins with. Each write is bound to what the plan saw: a creation only
// creates, an update meets the same UID, an adoption and a delete the same resourceVersion or the same standing. Nothing is thrown away on an error: Result
// names what was done, what failed, what was not reached.
//
// # Health
//
// How an object is, is read from the answers that planning and running get anyway, and remembered with its resourceVersion. For most kinds that is kstatus;
// for Istio's and those of the Gateway API what their controllers write (meshhealth.go says which conditions, and why a status about an earlier
// generation is no reason to wait for istiod); for kinds that a unit names, its own expressions in CEL (HealthChecks).
//
// # Errors
//
// Faults of single objects are *ObjectError, joined, each with the object, its file and line; ObjectErrors takes them apart. Other errors are about the
// whole (the API server, a LIST, the parent) and begin with "plan NAME" or "run NAME". ErrGuarded marks a refused plan. Errors about Secrets never hold the server's words
// where these could hold a value.
//
// # Why not ssa.ResourceManager
//
// Of fluxcd/pkg/ssa the parts are used (kinds' order, managedFields, normalisation of dry-runs), not its manager: that takes a GET which fails for "not
// there", answers nothing about what it did before an error, takes every Invalid and Conflict for an immutable field, and needs three requests for each object of
// each pass.
package apply
