// Package check finds faults in a rendered set before anything is planned from it.
//
// It owns the rules: what is looked for, under which stable code, how bad it is and how it is mended. It knows no
// cluster and no file system; it reads a [render.Set] and changes nothing in it. [Rules] lists all rules. MOOR codes are
// Mooring's own; IST codes are Istio's, with Istio's meaning (https://istio.io/latest/docs/reference/config/analysis/).
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
// [Check] is safe for concurrent use: the validators of Istio 1.31 are pure functions (istiod's webhook calls them from
// many requests at once) and the descriptors are read-only. The library's logger writes to standard output, which belongs to the
// caller, so Check silences the one scope that validators log to; everything said there is in the findings.
package check
