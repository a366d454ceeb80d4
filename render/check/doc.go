// Package check finds faults in a rendered set before anything is planned from it.
//
// It owns the rules: what is looked for, under which stable code, how bad it is and how it is mended. It knows no
// cluster and no file system; it reads a [render.Set] and changes nothing in it. [Rules] lists all rules. MOOR codes are
// Mooring's own; IST codes are Istio's, with Istio's meaning (https://istio.io/latest/docs/reference/config/analysis/).
//
// # Three layers
//
// The rules on single objects look at structure: fields, values, names, versions, Istio's validation, and the schemas and CEL rules of the definitions
// ([github.com/mooring-dev/mooring/render/check/schema]). What they say of an object is remembered for as long as the object lives.
//
// Istio's analyzers ([github.com/mooring-dev/mooring/render/check/analysis]) and the rules on several objects look at a
// [world.World]: the set laid over what lives in the cluster. Rules about what a proxy would do ask Istio's generator of its configuration
// ([github.com/mooring-dev/mooring/render/check/proxy]) instead of imitating it.
//
// Policies of the house ([github.com/mooring-dev/mooring/render/check/policy]) are the user's own, in CEL.
//
// # What blocks
//
// A commit is refused for what it makes worse. The rules are run over the living mesh too: a finding that it has already is Known, one about an object that is not of the commit
// is Foreign, and one that somebody accepted is Suppressed; all are shown, and none blocks. What a rule could not know is a [Gap], which is neither fine nor a fault.
//
// # Why not leave it to the API server
//
// Istio's own decoding is lenient: a field that it does not know is dropped, and so is a null. A route whose weight is
// spelled "weighting" is accepted by istioctl and by istiod's webhook, and then carries no weight. Here every field of
// every Istio kind is compared with Istio's protobuf descriptors, all the way down and in one go, so that one commit shows
// all its faults. Two spellings that the protobuf JSON reader takes but the custom resource definitions do not (snake_case
// names, numbers for enums and quoted numbers) are faults too, because the API server would drop or refuse them. What
// remains is given to Istio's own ValidateConfig. Objects that already have a decoding fault are not: the
// consequences would hide the cause.
//
// The fields of Kubernetes' own kinds are not looked at beyond metadata: the API server's dry run knows them best. A
// few of their facts are known here all the same, namely which kinds live in namespaces and what they may be called.
//
// # Errors
//
// A fault of the user's is a [Finding], never an error. [Check] returns an error only when it could not check at all. A
// panic in the library is a finding (MOOR001) about the object that caused it. Findings never hold a value from a Secret
// or an annotation.
//
// # Concurrency
//
// A [Checker] is safe for concurrent use. The rules on single objects run side by side: the validators of Istio 1.31 are pure functions (istiod's webhook
// calls them from many requests at once) and the descriptors are read-only. Analyzers and generators keep globals, so one check at a time
// runs them in a process, and the others wait, each for as long as its context allows. The library's loggers write to standard output, which belongs to the caller, so they
// are silenced; what they would say is in the findings.
//
// # Pages
//
// Each code has a page in pages/, an archive whose text is its documentation and whose examples are its tests ([PageOf]).
package check
