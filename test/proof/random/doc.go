// Package random makes up meshes and what people do to them: a valid set of objects out of a seed, and one valid commit after another.
//
//	mesh := random.New(seed)
//	for range 500 {
//		set, err := mesh.Set(ctx)    // or mesh.Objects(), mesh.Files()
//		…
//		said := mesh.Change()        // "canary of orders: v3 with 20; route carts leads to orders.ext.example"
//	}
//
// The same seed gives the same mesh and the same commits, whatever is done with them in between. Another [Options.Prefix] gives the same in other namespaces, so
// that two ways to apply them can be compared in one cluster.
//
// # What there is
//
// Namespaces, some with a Sidecar and a PeerAuthentication; services, as Service with a Deployment for each version, or as ServiceEntry with static endpoints
// that carry the version; HTTP and TCP; DestinationRules with subsets; VirtualServices of the mesh, of Gateways, and delegates, with weights, several rules and
// mirrors; AuthorizationPolicies.
//
// # What changes
//
// What a commit of people changes, with all that hangs on it in the same commit: who renames a subset changes the routes that name it, who retires a
// service moves its routes and takes its rule, its policies and its workloads away. See changes in the files change*.go. Half of the commits make one change, the
// others two or three. Every state is valid: package render/check finds no Error in it, which is a test.
package random
