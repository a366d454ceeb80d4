// Package schema says what the API server would refuse of a custom resource, without an API server.
//
// It owns the definitions that Istio ships (CustomResourceDefinitions, those of the release that this module is built on) and reads
// others that it is given. An object is held against the definition of its kind and version with the API server's own library: the types
// and limits of the schema, lists that are sets or maps, and the rules in CEL that stand beside them
// (https://kubernetes.io/docs/reference/using-api/cel/), with the API server's limits on their cost. Rules on a transition are left out,
// since there is no older object to compare with, as on a create.
//
// # Cost
//
// The definitions are nearly a megabyte of YAML. They are cut into versions as text, and a version is parsed and its rules compiled when the first object of
// it comes; a [Library] keeps what it compiled. It is safe for concurrent use.
//
// # Errors
//
// What is wrong with an object is a [Fault]. An error means that a definition could not be read or that the context is done.
package schema
