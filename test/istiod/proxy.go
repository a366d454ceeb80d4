package istiod

import (
	"fmt"
	"strings"

	envoycore "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pkg/config/constants"
)

// proxyVersion is what the proxies say that they are: the release that go.mod names.
const proxyVersion = "1.31.0"

// Proxy is who a client says that it is. The zero values are those of a sidecar of a pod that nobody knows.
type Proxy struct {
	// Gateway is true for a proxy that lets traffic in, and false for a sidecar.
	Gateway bool
	// Namespace of the pod; "default" when empty, and istiod's own for a gateway.
	Namespace string
	// Name of the pod; "client" or "gateway" when empty.
	Name string
	// IP of the pod; an address that no pod of the tests has when empty.
	IP string
	// Labels of the pod. A gateway without any is the default profile's, istio: ingressgateway.
	Labels map[string]string
	// ServiceAccount of the pod; "default" when empty.
	ServiceAccount string
}

// withDefaults fills in what is empty.
func (p Proxy) withDefaults() Proxy {
	namespace, name, ip := "default", "client", "10.99.99.98"
	if p.Gateway {
		namespace, name, ip = SystemNamespace, "gateway", "10.99.99.99"
		if p.Labels == nil {
			p.Labels = map[string]string{"istio": "ingressgateway"}
		}
	}
	for field, value := range map[*string]string{&p.Namespace: namespace, &p.Name: name, &p.IP: ip, &p.ServiceAccount: "default"} {
		if *field == "" {
			*field = value
		}
	}
	return p
}

// ID is the proxy's name in /debug/syncz.
func (p Proxy) ID() string {
	p = p.withDefaults()
	return p.Name + "." + p.Namespace
}

// String reads "sidecar client.apps".
func (p Proxy) String() string {
	if p.Gateway {
		return "gateway " + p.ID()
	}
	return "sidecar " + p.ID()
}

// Node is the proxy as its agent introduces it to istiod.
func (p Proxy) Node() *envoycore.Node {
	p = p.withDefaults()
	kind := model.SidecarProxy
	if p.Gateway {
		kind = model.Router
	}
	metadata := model.NodeMetadata{
		Namespace: p.Namespace, Labels: p.Labels, ServiceAccount: p.ServiceAccount,
		IstioVersion: proxyVersion, ClusterID: constants.DefaultClusterName, InstanceIPs: []string{p.IP},
	}
	domain := fmt.Sprintf("%s.svc.%s", p.Namespace, constants.DefaultClusterLocalDomain)
	return &envoycore.Node{
		Id:       strings.Join([]string{string(kind), p.IP, p.ID(), domain}, "~"),
		Metadata: metadata.ToStruct(),
	}
}
