package mesh

import (
	"maps"
	"slices"
	"strings"
	"testing"

	envoycore "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/config/constants"
	meshdefaults "istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/log"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// istioVersion is what the proxies say that they are: the release that go.mod names.
const istioVersion = "1.31.0"

// Mesh is a cluster that holds a set of objects, as istiod sees it.
type Mesh struct {
	t      testing.TB
	server *xds.FakeDiscoveryServer
	pods   []*corev1.Pod
	world  *world
}

// Options are what an installation decides.
type Options struct {
	// MeshConfig is YAML that is merged over Istio's defaults, as spec.meshConfig of an IstioOperator is.
	MeshConfig string
}

// Of gives the mesh of a set of objects. Kinds that istiod does not read are left aside. It ends with the test.
func Of(t testing.TB, objects []*unstructured.Unstructured, options ...Options) *Mesh {
	t.Helper()
	quiet()
	w, err := readWorld(objects)
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, o := range options {
		text += o.MeshConfig
	}
	config, err := meshdefaults.ApplyMeshConfigDefaults(text)
	if err != nil {
		t.Fatalf("read the mesh config: %v", err)
	}
	server := xds.NewFakeDiscoveryServer(t, xds.FakeOptions{
		KubernetesObjects: w.kubernetes(), Configs: w.configs, MeshConfig: config,
	})
	return &Mesh{t: t, server: server, pods: w.pods, world: w}
}

// Kubernetes are the Namespaces, Services, Pods and EndpointSlices of the mesh: those of the set, and those that were made up.
func (m *Mesh) Kubernetes() []runtime.Object { return m.world.kubernetes() }

// Node is the proxy as it introduces itself to istiod.
func (m *Mesh) Node(proxy Proxy) *envoycore.Node {
	p := m.server.SetupProxy(m.proxy(proxy))
	id := []string{string(p.Type), p.IPAddresses[0], p.ID, p.DNSDomain}
	return &envoycore.Node{Id: strings.Join(id, "~"), Metadata: p.Metadata.ToStruct()}
}

// quiet keeps istiod's log out of the test's: it speaks of every push, and of a store that is no API server.
func quiet() {
	for _, scope := range log.Scopes() {
		scope.SetOutputLevel(log.NoneLevel)
	}
}

// Proxy names a proxy: its pod's namespace and labels, and what it does.
type Proxy struct {
	Namespace string
	// Labels of the pod. Where a pod of the set has them all, the proxy is that pod's.
	Labels map[string]string
	// Gateway is true for a proxy that lets traffic in, and false for a sidecar.
	Gateway bool
}

// String is the proxy's namespace and labels, for the name of a test.
func (p Proxy) String() string {
	out := "sidecar"
	if p.Gateway {
		out = "gateway"
	}
	out += " " + p.Namespace
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		out += " " + key + "=" + p.Labels[key]
	}
	return out
}

// Sidecar gives what a sidecar gets to know.
func (m *Mesh) Sidecar(namespace string, labels map[string]string) Config {
	m.t.Helper()
	return m.Config(Proxy{Namespace: namespace, Labels: labels})
}

// Gateway gives what a gateway beside istiod gets to know.
func (m *Mesh) Gateway(labels map[string]string) Config {
	m.t.Helper()
	return m.Config(Proxy{Namespace: constants.IstioSystemNamespace, Labels: labels, Gateway: true})
}

// Config gives what a proxy gets to know.
func (m *Mesh) Config(proxy Proxy) Config {
	m.t.Helper()
	p := m.server.SetupProxy(m.proxy(proxy))
	listeners := m.server.Listeners(p)
	config, err := canonical(listeners, m.server.RoutesFromListeners(p, listeners), m.server.Clusters(p), m.server.Endpoints(p))
	if err != nil {
		m.t.Fatalf("%s: %v", proxy, err)
	}
	if len(config.Clusters) == 0 || len(config.Listeners) == 0 && !proxy.Gateway { // a gateway without a Gateway listens to nothing
		m.t.Fatalf("%s: istiod gives it nothing", proxy)
	}
	return config
}

// proxy is the node as it would introduce itself to istiod.
func (m *Mesh) proxy(proxy Proxy) *model.Proxy {
	p := &model.Proxy{
		Type:            model.SidecarProxy,
		ID:              "unknown." + proxy.Namespace,
		ConfigNamespace: proxy.Namespace,
		IPAddresses:     []string{"10.99.99.99"},
		Labels:          proxy.Labels,
		Metadata: &model.NodeMetadata{
			Namespace: proxy.Namespace, Labels: proxy.Labels, IstioVersion: istioVersion, ClusterID: constants.DefaultClusterName,
		},
	}
	if proxy.Gateway {
		p.Type = model.Router
	}
	for _, pod := range m.pods {
		if pod.Namespace != proxy.Namespace || !has(pod.Labels, proxy.Labels) {
			continue
		}
		p.ID, p.IPAddresses, p.Labels = pod.Name+"."+pod.Namespace, []string{pod.Status.PodIP}, pod.Labels
		p.Metadata.Labels, p.Metadata.ServiceAccount = pod.Labels, pod.Spec.ServiceAccountName
		break
	}
	return p
}

// has says whether labels hold all that are wanted.
func has(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// Proxies are all that may have something to say about the set: the sidecar of every Deployment, of what a Service selects that has no Deployment, of a client
// in each namespace and one in a namespace that the set does not know, and each gateway that a Gateway selects. In the same order every time.
func (m *Mesh) Proxies() []Proxy {
	var out []Proxy
	add := func(p Proxy) {
		if !slices.ContainsFunc(out, func(other Proxy) bool { return other.String() == p.String() }) {
			out = append(out, p)
		}
	}
	for _, pod := range m.world.pods {
		if pod.Namespace != constants.IstioSystemNamespace {
			add(Proxy{Namespace: pod.Namespace, Labels: pod.Labels})
		}
	}
	for _, service := range m.world.services {
		chosen := func(pod *corev1.Pod) bool {
			return pod.Namespace == service.Namespace && has(pod.Labels, service.Spec.Selector)
		}
		if len(service.Spec.Selector) > 0 && !slices.ContainsFunc(m.world.pods, chosen) {
			add(Proxy{Namespace: service.Namespace, Labels: service.Spec.Selector})
		}
	}
	for _, namespace := range append(m.world.namespaces(), "elsewhere") {
		add(Proxy{Namespace: namespace, Labels: map[string]string{"app": "some-client"}})
	}
	for _, selector := range m.world.gateways() {
		add(Proxy{Namespace: constants.IstioSystemNamespace, Labels: selector, Gateway: true})
	}
	return out
}
