// Package traffic proves that no proxy is ever told to send traffic to a cluster that it does not have.
//
// A real API server, a real istiod, a proxy that is a sidecar and one that is a gateway, and a mesh that changes at random, one commit after another
// (package random). After every single response of istiod to either of the proxies [Uses] finds all that its routes lead to, and a [Watch] notes
// what is not there. The same commits are then applied by kubectl apply -k --prune, to the same API server in other namespaces, before an istiod of their own,
// and counted the same way.
//
// # What is counted
//
//   - [Dangling]: a route of a VirtualService (weighted clusters and mirrors included, and what TCP proxies lead to) names a cluster that the
//     proxy has not been given, or that was taken from it. Requests get a 503.
//   - [Retired]: the default route of a host and port, which no VirtualService made, in the moment between the response that takes its cluster and the one
//     that takes the route, where the proxy has neither in the end. istiod makes both out of one object and sends clusters first, so
//     whoever deletes a Service makes such a moment. Nothing that the mesh's own routes lead to is concerned: those had been moved before.
//   - [Hidden]: a Sidecar takes a host away from the proxies of its namespace, and the host has a VirtualService, which stays or is new. The Sidecar is one
//     object that says all at once, and istiod again sends clusters first.
//   - [Cold]: a route of a VirtualService, for a host that the proxy had before, leads to a cluster whose endpoints have not come
//     yet: to Envoy that is a cluster which it does not have yet.
//   - [Unserved]: a host that is served before the commit and after it has no virtual host in between.
//   - [Bare]: a host that has a VirtualService before the commit and after it has only its default route in between.
//
// One route that leads to one missing cluster is one fault of a commit, however many responses it lasts. What is missing still when all is at rest would be a
// fault of the mesh itself, and fails the proof for either.
package traffic
