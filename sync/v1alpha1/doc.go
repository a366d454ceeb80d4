// Package v1alpha1 is what the user of Mooring writes and reads: the API types of group mooring.dev.
//
// A Mooring keeps one path of one Git ref on one cluster. The CRD in deploy/crds and the deep copies are
// generated from these types (`make generate`). What can be known from an object alone is refused by the API
// server itself, through the OpenAPI schema and the CEL rules on the types; a rule that needs Git or the cluster
// becomes a condition instead.
//
// Field names follow Flux and Kubernetes where they have a word for the thing. Durations are Go durations
// ("5m", "1h30m"), percentages are whole numbers from 0 to 100, revisions are written "branch@sha1:<id>".
//
// The parent of an ApplySet is the Mooring itself (KEP-3659), which is why the CRD carries the label
// applyset.kubernetes.io/is-parent-type.
//
// +kubebuilder:object:generate=true
// +groupName=mooring.dev
package v1alpha1
