// Package istiod gives tests a real istiod beside the API server of test/kube, and proxies that are connected to it and carry no traffic.
//
//	func TestMain(m *testing.M) { os.Exit(istiod.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		cluster := kube.Start(t)
//		pilot := istiod.Start(t, cluster, istiod.Options{})
//		proxy := istiod.Connect(t, pilot, istiod.Proxy{Namespace: "apps"}, istiod.Behaviour{})
//		…                        // proxy.Snapshot().Clusters, pilot.HTTP + "/debug/syncz"
//	}
//
// # The process
//
// istiod is linked into the test's own binary, which starts itself anew with a word in its environment: [Run] is what finds that word. So no second
// binary is built, and what runs is pilot-discovery of the module that go.mod names, with its own informers, debounce and push queue. It reads the
// whole cluster, serves discovery without TLS on loopback, and has neither injector nor validator. It is ready within seconds and takes 150 MB.
//
// # The proxies
//
// A [Client] speaks the delta protocol, as Istio's proxies do, in the order in which Envoy asks: clusters, the endpoints of those that want
// some, listeners, the route configurations that the listeners name. It subscribes to what becomes needed and unsubscribes from what is no more,
// keeps all that it has been given, and connects anew when the stream breaks, saying what it has, as Envoy does.
// [Behaviour] says what it makes of a response: acknowledge it (the default), reject it, or never answer.
//
// # What is imitated
//
// Nobody compiles a filter chain or opens a socket: a resource that parses is accepted. A cluster counts as warm once istiod has named its endpoints, be
// there any or not; a listener at once. Secrets and extension configurations are not asked for.
package istiod
