// Package proof looks at every state that a mesh is in while a plan runs, and finds the routes that lead to nothing in one of them.
//
// A proxy that holds a route to a cluster that it was never given, or that was taken from it, answers 503. The end of a plan may be right and the way to it
// wrong: a subset that is gone before the last route to it, a route that is there before its subset. [Plan] asks Istio's own generator of
// Envoy configuration (render/check/proxy) what each proxy of the mesh would be told in each of the states between the writes. Nothing is written, and
// no cluster is asked: what lives is handed in.
//
// # The states
//
// The steps of a wave run concurrently, so within a wave any of its writes may be done while any other is not. The API server has the writes of one
// wave before those of the next, but proxies learn of them through istiod, which watches each kind by itself: the writes of one kind arrive in their order,
// and how far one kind has come says nothing about another. Only a gate of [apply.GatePropagated] waits until all that was written has reached
// the proxies. So a plan falls into stretches, each ending with such a gate or with the plan, and in a stretch the proxies may be told of any set of its writes in which a
// write of one kind comes with all writes of that kind in earlier waves, and a second write of one object with the first. Each such set is a state; its objects are
// those that live, with what all earlier stretches and the writes of the set have put in their place. A [apply.Replace] is two writes, and a
// namespace that is deleted takes its objects along one by one.
//
// istiod sends a proxy its clusters first, then its listeners and routes, also when it takes something away. So a proxy on the way from one state to
// a later one of the same stretch has, for a moment, the clusters of the later with the routes of the earlier: a state looked at is also
// compared with all earlier ones that were looked at ([Report.Pairs]).
//
// # How many
//
// A stretch of few writes is looked at in all its states. The number of states grows exponentially, so beyond [Options.Limit] there is a choice, and the
// Report says so. Chosen are, in this order: the begin and the end of each stretch, the state after each write in the order of the plan, those in which some kinds are
// complete and others have not begun, for each write the state with the fewest others that have it and the one with the most that lack it, and then states at
// random, by seed. With the fewest and the most, any two writes of which one breaks something while the other is missing are met twice, whatever the rest does.
// Where even these are too many, they are drawn at random too.
//
// # What counts
//
// A route is told apart by proxy, virtual host, VirtualService and cluster. One that leads to nothing in a state is the plan's fault unless
// it led to nothing before the plan ([Report.Known]), or was not there before and leads to nothing when the plan is through
// (known as well: that is what the commit wants, and for a check to refuse). Where only the moment between clusters and routes is bad, and the virtual
// host is one that the proxy no longer has after the plan, nobody should call it any more: [Report.Retired].
//
// # What is not looked at
//
// Only routes that VirtualServices make are: the one that a Service has by itself goes with the Service. A plan of which a step fails goes on with what does not depend on it; such states are not among those above. What an earlier plan wrote behind its last gate
// counts as arrived. A change of istiod's own configuration counts as not made.
// An object is what the plan's dry-run said. Where a step was not tried, it is the form that is applied, and fields that others own and that the
// step's differences do not name are taken to stay: [Report.After] has what the proof takes to be there in the end.
package proof
