// Package policy evaluates policies of the house: what a platform team demands of its mesh beyond what Istio and Mooring do.
//
// A policy is a document, in the repository or in a ConfigMap:
//
//	apiVersion: mooring.dev/v1alpha1
//	kind: CheckPolicy
//	metadata: {name: no-envoyfilter-in-prod}
//	spec:
//	  code: ACME001
//	  level: Error                # Error, Warning or Info; Error when left out
//	  match: {groups: [networking.istio.io], kinds: [EnvoyFilter], namespaces: [shop-*]}
//	  matchConditions:
//	  - {name: prod, expression: mooring.name == 'prod'}
//	  variables:
//	  - {name: owner, expression: "object.metadata.?labels['owner'].orValue('')"}
//	  validations:
//	  - expression: variables.owner != ''
//	    message: an EnvoyFilter in prod has an owner
//	    field: metadata.labels
//	    mend: label it with owner, or write a Telemetry instead
//
// The names and their meaning are those of Kubernetes' ValidatingAdmissionPolicy
// (https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/): an object passes when every expression is true, and the
// functions of the API server's CEL are there (https://kubernetes.io/docs/reference/using-api/cel/). In scope are
//
//	object     the object that the commit wants
//	old        the one that lives; null when none does, and when no cluster was asked
//	mooring    name, namespace, path, revision, branch, url, labels and annotations of the Mooring; empty where there is none
//	variables  the variables above
//
// A match has lists of patterns, in which * stands for any run of characters but a slash; an empty list matches all. The expressions of matchConditions decide further; they do not
// know the variables.
//
// # Errors
//
// [Parse] compiles: a policy with a mistake is an error that names file, policy, expression and position. An expression that fails while it is evaluated,
// such as one that reads a field that is not there, is no pass: [Policy.Check] returns an error, as with failurePolicy Fail. An evaluation has a
// bounded cost, the API server's limit for one call, and stops with its context.
//
// # Secrets
//
// The values in data and stringData of a Secret are replaced before an expression sees them, so that no message can hold one. Its keys are there.
package policy
