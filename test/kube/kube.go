// Package kube gives tests, the demo and a newcomer a real Kubernetes control plane on loopback: etcd,
// kube-apiserver and four controllers, with Istio's and Mooring's CRDs. Nothing has to be installed and nothing is imitated.
//
// # In a test
//
//	func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		c := kube.Start(t)       // the package's one cluster, started by the first who asks
//		ns := c.Namespace(t)     // this test's own
//		…                        // c.Config(), c.ConfigFor(user), c.Kubectl(ctx, …), c.Requests(t), c.RestartAPIServer(ctx)
//	}
//
// A test that cannot have its cluster fails; it is never skipped. Run stops what Start started, and the kernel does when the
// test binary is killed. Whoever is no test calls Build and Launch; `make cluster-up` is Up.
//
// # Two modules
//
// This package belongs to the main module, because the product's tests import it. What it starts is built from
// server, a module of its own: k8s.io/kubernetes needs thirty replace lines and hundreds of modules, which
// a user of Mooring must not have to download or audit. The binary is the border between the two.
//
// # What it costs
//
// Measured on 27 November 2026 on 2 cores of an AMD EPYC, while other builds ran (load 3 to 6):
//
//   - First build: 11 min 13 s with an empty Go cache; 28 s when only linking is left; nothing once it is in the cache. 187 MB on disk.
//   - Start, CRDs included: 4.7 to 7.9 s, 5.7 s of processor time, most of it the API server's schemas for the sixteen CRDs.
//   - Memory of its own: API server 330 MB, etcd 35 MB, controllers 25 MB; beside that 130 MB of the binary, shared by all three.
//   - RestartAPIServer: 5 to 6 s, two of them an orderly end.
//   - A deleted namespace is gone after about 5 s: the controller waits that long by design.
//
// # Where the rules come from
//
// The flags are those of kube-apiserver 1.37 and etcd 3.7. The parts talk through Unix sockets, so that only one port is needed, and
// that one is reserved before the API server starts. Processes are found through /proc and bound to their owner by
// Pdeathsig: Linux only.
package kube
