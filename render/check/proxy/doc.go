// Package proxy says what istiod would tell a proxy of a mesh: which routes it gets, in which order, made by which entry of which VirtualService, and
// which of the clusters that they lead to exist.
//
// It asks Istio's own generator of Envoy configuration (istio.io/istio/pilot/pkg/networking/core) in process, over the objects of a [world.World]. Hosts,
// subsets, exportTo, the scope of a Sidecar, delegates and the merging on gateways are decided by Istio's code, and nothing of that is imitated.
//
// # What is imitated
//
// istiod learns of services from informers, which want an API server. Here a Service is converted by Istio's own function, and a ServiceEntry by
// [serviceEntry], which reads what routes and clusters depend on: hosts, addresses, ports, resolution, exportTo and endpoints. There are no Pods: whether
// a cluster has endpoints is not looked at, but for clusters that Envoy resolves by DNS, which istiod leaves out where no endpoint has the subset's labels.
// Objects of the Gateway API are not read: a controller of istiod translates them, and it wants a cluster.
//
// # How a route is traced
//
// The library gets copies of the VirtualServices in which the name of each http entry and of each match is a marker. istiod hands names on into the
// configuration, and joins them where a root delegates, so each [Route] knows its [Source] for certain.
//
// # Cost
//
// A [Mesh] holds the goroutines of Istio's collections until [Mesh.Close]. Nothing is registered in the library's global tables. The library keeps other
// globals, so the caller lets one Mesh live at a time. [Mesh.Proxies] names one proxy for all that would be told the same, so that a mesh of a thousand
// alike namespaces is asked once.
package proxy
