package analysis

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/resource"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/kube/inject"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/mooring-dev/mooring/render/check/world"
)

// leaderAnnotation is on the ConfigMaps and Services by which controllers elect a leader (k8s.io/client-go/tools/leaderelection).
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// list gives the instances of a kind, as the analyzer that is asked may see them.
func (r *run) list(kind config.GroupVersionKind) *list {
	key := listKey{kind: kind}
	if kind == gvk.Pod {
		key.view = viewOf(r.analyzer)
	}
	switch {
	case kind == gvk.MeshConfig && r.analyzer == "auth.AuthorizationPoliciesAnalyzer":
		key.view = standIn // it keeps the first that it ever sees: see policyWithoutWorkloads
	case kind == gvk.Secret && r.analyzer == "meshnetworks.MeshNetworksAnalyzer":
		key.view = standIn // it would keep the names of clusters for ever: see unknownRegistry
	case (kind == gvk.Service || kind == gvk.ServiceEntry) && r.analyzer == "virtualservice.DestinationHostAnalyzer":
		key.view = routed // it walks over all of them for each host that it does not find
	case (kind == gvk.Service || kind == gvk.ServiceEntry) && r.analyzer == "destinationrule.SubsetSelectPodAnalyzer":
		key.view = ruled // so does this
	case kind == gvk.VirtualService && r.analyzer == "virtualservice.ConflictingMeshGatewayHostsAnalyzer":
		key.view = sharing // it compares each host with every other, which takes seconds for 5,000 that are exported to their own namespace
	}
	return r.listed(key)
}

// workloads are all Pods that there are and will be, whoever is asked just now.
func (r *run) workloads() *list {
	return r.listed(listKey{kind: gvk.Pod, view: allPods})
}

func (r *run) listed(key listKey) *list {
	l := r.lists[key]
	if l == nil {
		l = listOf(r.instances(key))
		r.lists[key] = l
	}
	return l
}

func listOf(all []*resource.Instance) *list {
	l := &list{
		all:         all,
		byName:      make(map[resource.FullName]*resource.Instance, len(all)),
		byNamespace: map[resource.Namespace][]*resource.Instance{},
	}
	for _, instance := range all {
		name := instance.Metadata.FullName
		l.byName[name] = instance
		l.byNamespace[name.Namespace] = append(l.byNamespace[name.Namespace], instance)
	}
	return l
}

func (r *run) instances(key listKey) []*resource.Instance {
	switch key.kind {
	case gvk.MeshConfig:
		return r.meshInstance(key, "meshconfig")
	case gvk.MeshNetworks:
		return r.meshInstance(key, "meshnetworks")
	case gvk.Pod:
		return r.pods(key.view)
	case gvk.Secret:
		if key.view == standIn {
			return nil
		}
	}
	var all []*resource.Instance
	for _, o := range r.world.Of(key.kind.Group, key.kind.Kind) {
		if key.view == sharing && !r.sharesHost(o) || (key.view == routed || key.view == ruled) && !r.isNamed(o, key.view) {
			continue
		}
		if instance := r.instance(key.kind, o); instance != nil {
			all = append(all, instance)
		}
	}
	return all
}

// instance is an object as the analyzers read it; nil for one that they do not.
func (r *run) instance(kind config.GroupVersionKind, o *world.Object) *resource.Instance {
	if ignored(kind, o) {
		return nil
	}
	c := o.Config()
	if c == nil {
		return nil
	}
	instance := resource.PilotConfigToInstance(c, o.Schema)
	instance.Metadata.Generation = c.Generation
	instance.Origin = &origin{object: o}
	instance.Status = statusOf(o)
	switch spec := instance.Message.(type) {
	case *networking.Gateway:
		instance.Message = spec.DeepCopy() // virtualservice.GatewayAnalyzer rewrites its hosts
	case *networking.VirtualService:
		instance.Message = withFullGateways(spec, o.ID.Namespace)
	case *corev1.ServiceSpec:
		instance.Message = withDefaults(spec)
	}
	return instance
}

// ignored says whether Istio's own reading leaves the object out.
func ignored(kind config.GroupVersionKind, o *world.Object) bool {
	namespace := o.ID.Namespace
	switch kind {
	case gvk.Namespace:
		namespace = o.ID.Name
	case gvk.ConfigMap:
		_, elects := o.GetAnnotations()[leaderAnnotation]
		if elects || o.MetadataOnly || namespace != constants.IstioSystemNamespace || !strings.HasPrefix(o.ID.Name, "istio") {
			return true
		}
	}
	return inject.IgnoredNamespaces.Contains(namespace)
}

// meshInstance is the mesh configuration or the networks, of which there is one each.
func (r *run) meshInstance(key listKey, name string) []*resource.Instance {
	instance := &resource.Instance{Origin: &origin{object: r.mesh.Source}}
	instance.Metadata.FullName = resource.NewFullName(constants.IstioSystemNamespace, resource.LocalName(name))
	switch {
	case key.kind == gvk.MeshNetworks:
		instance.Message = r.mesh.Networks
	case key.view == standIn:
		instance.Message = newDefaultMesh()
	default:
		instance.Message = r.mesh.Config
	}
	return []*resource.Instance{instance}
}

// withFullGateways writes out the names of gateways that the analyzers do not read: ./web, and name.namespace.svc.cluster.local, which
// istiod still takes (resolveGatewayName in pilot/pkg/model).
func withFullGateways(spec *networking.VirtualService, namespace string) *networking.VirtualService {
	changed := spec
	for i, name := range spec.Gateways {
		full := fullGateway(name, namespace)
		if full == name {
			continue
		}
		if changed == spec {
			changed = spec.DeepCopy()
		}
		changed.Gateways[i] = full
	}
	return changed
}

func fullGateway(name, namespace string) string {
	if rest, ok := strings.CutPrefix(name, "./"); ok {
		return namespace + "/" + rest
	}
	if strings.Contains(name, "/") || !strings.Contains(name, ".") {
		return name
	}
	short, rest, _ := strings.Cut(name, ".")
	there, _, _ := strings.Cut(rest, ".")
	return there + "/" + short
}

// withDefaults fills in what the API server would: the analyzers only ever see Services that it has seen.
func withDefaults(spec *corev1.ServiceSpec) *corev1.ServiceSpec {
	whole := true
	for _, p := range spec.Ports {
		whole = whole && p.Protocol != "" && p.TargetPort.String() != "0"
	}
	if whole {
		return spec
	}
	spec = spec.DeepCopy()
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort.String() == "0" {
			p.TargetPort.IntVal = p.Port
		}
	}
	return spec
}

// statusOf what lives, where it says something that an analyzer reads. A status in a file says nothing.
func statusOf(o *world.Object) (status config.Status) {
	if !o.Foreign || o.MetadataOnly {
		return nil
	}
	written, _, _ := unstructured.NestedMap(o.Unstructured().Object, "status")
	if written["conditions"] == nil && written["addresses"] == nil && written["parents"] == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			status = nil // a status that cannot be read says nothing
		}
	}()
	status, err := o.Schema.Status()
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(written, status) != nil {
		return nil
	}
	return status
}
