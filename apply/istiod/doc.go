// Package istiod knows when a change has reached the proxies: it is the apply.Mesh of a cluster with Istio.
//
//	client, err := istiod.New(cfg, istiod.Options{})
//	mesh := client.Mesh(istiod.Policy{Ask: istiod.PortForward})
//	err = mesh.Propagated(ctx, written)   // nil, or a *LateError that names the proxy and what it said
//	mesh.Unasked()                        // why istiod was not asked, where the pause had to do
//
// # What istiod says
//
// Read in the sources of Istio 1.31 (pilot/pkg/xds/debug.go, delta.go, ads.go, discovery.go, pushqueue.go). Each istiod knows only the proxies that are connected
// to it, so all that are ready are asked, of every revision.
//
//   - /debug/configz shows the Istio objects that it has read, with their resourceVersions. What it shows is in every push that begins later: both
//     come from one store. /debug/registryz shows Services.
//   - /debug/syncz shows for each proxy the nonces that it was sent and that it acknowledged last, by kind of resources, and why it refused. A nonce is
//     the push's time and number, and a UUID.
//   - /metrics counts the events that lead to a push (pilot_inbound_updates of type config), the pushes that have been computed
//     (pilot_pushcontext_init_seconds), and the proxies that have been taken out of the queue of pushes, needed or not (pilot_proxy_queue_time).
//
// # The rule
//
// An event is held for 100 ms, and for ten seconds at most when others follow; then a push is computed, and all proxies are queued for it. One that it does not
// concern is skipped, and nothing in its nonces tells that from one whose turn has not come. So an acknowledged nonce is not enough. For
// each istiod that has proxies:
//
//  1. It shows each written object at the version that was written, or a newer one, and no longer shows what was deleted. Not waited for is what it is
//     right not to show: another revision's, or in a namespace that its discoverySelectors leave out. A Service is waited for one second at most.
//  2. From then on, at rest: every proxy has acknowledged all that it was sent, and for 300 ms and twice the time that it takes to compute a push nothing has
//     moved: no nonce, no event, no push, nothing taken out of the queue; and the events that came in have been followed by a push. Where no push has been
//     seen since (a change of labels makes none), or there are no metrics, it is a second instead of the 300 ms.
//  3. Or, where there is no rest: two pushes have been computed since (one may have been under way, so the second has begun later), or eleven seconds are over;
//     since then twice as many proxies have been taken out of the queue as there are, so that whoever waited in it has had
//     his turn; and what each proxy had been sent by then it has acknowledged, or something of the same push or a later one.
//
// The push's number alone (acknowledged > number when it was written) would wait for ever for a proxy that the change does not concern. To ask for a push of everything
// (/debug/adsz?push=true) would make it exact, and cost a large mesh a push of everything at every gate.
//
// Counted are clusters, endpoints, listeners, routes, extension configurations, and a ztunnel's addresses and policies. An istiod without proxies is done at once. The
// proxies of one that goes away in the middle are waited for, for the length of the pause, until they have come to another, which then is
// asked from the beginning. One that goes away before it has once told of its proxies has none that is waited for: nobody knows whose it had. A proxy that refuses or never answers holds until the timeout.
//
// # What cannot be known
//
// A proxy that is not connected to anybody has the configuration of then and will be given everything at once when it comes back. An istiod whose store is ahead of
// its own events by more than the second would be taken to be at rest. An acknowledgement says that a proxy accepted a configuration, not that it has warmed it.
//
// # The ways to ask
//
// The debug interface answers its own machine, or who shows a token.
//
//   - PortForward: through the API server into the Pod, with the identity of the unit. It needs list on pods, and get and create on pods/portforward
//     (deploy/rbac/propagation.yaml). One connection for each istiod, for the length of one call; no port is opened on our side.
//   - Service: straight to the Pod's address, or to given URLs, with a token of the audience istio-ca. That way is plain HTTP, and istiod answers only namespaces
//     that its DEBUG_ENDPOINT_AUTH_ALLOWED_NAMESPACES names, and its own.
//   - Never.
//
// Where an istiod cannot be asked (a right is missing, the way is closed, it answers 401, 403 or 404, or not at all for the length of the
// pause), the pause is waited for instead, and Unasked says why. That is no fault: so much is known everywhere that a pause makes before break likely, as people do it by
// hand. Where there is neither an istiod nor an injection webhook nobody reads the objects, and nothing is waited for.
//
// # Errors
//
// *LateError when the time is over: first the proxies that said why, then by name; the text is the same for the same state. Istiods that are there
// and not ready are an error as well: to go on would be to change a mesh that nobody tells anything.
package istiod
