// Package mesh answers what istiod would tell the proxies of a cluster that holds a given set of objects.
//
// It runs Istio's own discovery server, Kubernetes service registry and generators of Envoy configuration in the test's process
// (istio.io/istio/pilot/test/xds), over an API server that is only a store. So hosts, subsets, exportTo, Sidecar scoping, merging on gateways, mutual TLS
// and policies are decided by Istio, and nothing of that is imitated. A mesh of forty objects takes some 200 ms.
// That this is what a real istiod says is a test of its own, which asks one ([Ask]) over the wire, with the same objects in a real API server.
//
// # What is imitated
//
// There is no kubelet and no controller, so for each Deployment of the set one Pod is made up, with an address, the labels and the service account of its
// template, and an EndpointSlice for every Service that selects it. Where a set holds a networking.istio.io Gateway, Istio's ingress gateway, as the
// default profile installs it, is there too: a Service and a Pod in istio-system.
//
// # What a configuration is
//
// [Config] is what one proxy gets: listeners with their filters, routes, clusters and endpoints, as JSON values, so that go-cmp can say what differs.
// What only tells where a setting came from is left out, so that two ways to write the same thing compare equal:
//
//   - filter_metadata.istio.config, the path of the VirtualService, DestinationRule or Gateway behind a route, cluster or listener.
//     Envoy shows it in a config dump and acts on nothing in it.
//   - The names of the rules of an RBAC filter, which hold the name and namespace of the AuthorizationPolicy. Their meaning is the
//     disjunction of all rules, in any order; the names appear in debug logs. The rules themselves stay, sorted.
//
// Virtual hosts and resources are put by name, because their order means nothing to Envoy. All else is kept as it is, and so are names that a
// user sees in access logs and metrics: those of routes, of route configurations, of clusters.
package mesh
