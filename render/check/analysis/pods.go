package analysis

import (
	"istio.io/api/annotation"
	"istio.io/api/label"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/resource"
	"istio.io/istio/pkg/config/schema/gvk"
	"istio.io/istio/pkg/kube/inject"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// view is what an analyzer is given of a kind: most often all, and of Pods what it can make sense of.
type view int

const (
	// allPods are those that there are, and those that there will be: workloads, as selectors see them.
	allPods view = iota
	// realPods are those that there are.
	realPods
	// noPods are for who would ask for more than is known of them, or for too long.
	noPods
	// standIn is what does no harm where an analyzer would keep it for longer than the run.
	standIn
	// sharing are the VirtualServices that have a host in common with another.
	sharing
	// routed are the Services and ServiceEntries that a VirtualService routes to, ruled those that a DestinationRule is for.
	routed
	ruled
)

func viewOf(analyzer string) view {
	switch analyzer {
	case "annotations.K8sAnalyzer", "applicationUID.Analyzer":
		return realPods
	case "injection.Analyzer", "injection.ImageAnalyzer", "injection.ImageAutoAnalyzer":
		return noPods
	case "destinationrule.SubsetSelectPodAnalyzer":
		return noPods // it compares each with every subset: see emptySubset
	}
	return allPods
}

const proxyContainer = "istio-proxy"

// pods are the instances of Pods. A proxy that is known only by the annotation that the injector leaves, or that the injector is going to add, is
// written into their containers, where the analyzers look for it.
func (r *run) pods(v view) []*resource.Instance {
	if v == noPods {
		return nil
	}
	var all []*resource.Instance
	for _, o := range r.world.Of("", "Pod") {
		instance := r.instance(gvk.Pod, o)
		if instance == nil {
			continue
		}
		_, injected := o.GetAnnotations()[annotation.SidecarStatus.Name]
		if injected || !o.Foreign && r.joins(o.ID.Namespace, o.GetLabels(), o.GetAnnotations()) == joinsProxy {
			instance.Message = withProxy(instance.Message)
		}
		all = append(all, instance)
	}
	if v == realPods {
		return all
	}
	for _, gk := range r.world.Kinds() {
		for _, o := range r.world.Of(gk.Group, gk.Kind) {
			if p, ok := podOf(o); ok && !inject.IgnoredNamespaces.Contains(o.ID.Namespace) {
				all = append(all, r.promised(o.ID, p))
			}
		}
	}
	return all
}

// withProxy adds a proxy to the containers of a spec.
func withProxy(message any) *corev1.PodSpec {
	spec := &corev1.PodSpec{}
	if known, ok := message.(*corev1.PodSpec); ok {
		*spec = *known
	}
	containers := append([]corev1.Container{}, spec.Containers...)
	spec.Containers = append(containers, corev1.Container{Name: proxyContainer, Image: proxyContainer})
	return spec
}

// template is what is known of a Pod that does not live yet.
type template struct {
	labels, annotations map[string]string
	// proxy is true for what is part of the mesh without an injector.
	proxy bool
}

// promised is the Pod that a workload is going to have.
func (r *run) promised(id render.ID, t template) *resource.Instance {
	instance := &resource.Instance{Origin: &origin{}}
	instance.Metadata.FullName = resource.NewFullName(resource.Namespace(id.Namespace), resource.LocalName(id.Name))
	instance.Metadata.Labels, instance.Metadata.Annotations = t.labels, t.annotations
	spec := &corev1.PodSpec{}
	switch join := r.joins(id.Namespace, t.labels, t.annotations); {
	case t.proxy || join == joinsProxy:
		spec = withProxy(spec)
	case join == joinsAmbient:
		annotations := map[string]string{annotation.AmbientRedirection.Name: constants.AmbientRedirectionEnabled}
		for k, v := range t.annotations {
			annotations[k] = v
		}
		instance.Metadata.Annotations = annotations
	}
	instance.Message = spec
	return instance
}

// joining is how a Pod takes part in the mesh.
type joining int

const (
	joinsNot joining = iota
	joinsProxy
	joinsAmbient
)

// joins says how a Pod is going to take part. Of a namespace that nobody saw the best is taken.
func (r *run) joins(namespace string, labels, annotations map[string]string) joining {
	for _, where := range []map[string]string{labels, annotations} {
		if v, ok := where[label.SidecarInject.Name]; ok {
			if v == "true" {
				return joinsProxy
			}
			return joinsNot
		}
	}
	if labels[label.IoIstioRev.Name] != "" {
		return joinsProxy
	}
	o := r.world.Find(render.ID{Kind: "Namespace", Name: namespace})
	if o == nil {
		return joinsProxy
	}
	of := o.GetLabels()
	switch {
	case of["istio-injection"] == "disabled":
		return joinsNot
	case of["istio-injection"] == "enabled" || of[label.IoIstioRev.Name] != "":
		return joinsProxy
	case of[label.IoIstioDataplaneMode.Name] == constants.DataplaneModeAmbient:
		return joinsAmbient
	}
	return joinsNot
}

// podOf is the Pod that a workload, an entry for a virtual machine or a Gateway API gateway stands for.
func podOf(o *world.Object) (template, bool) {
	if o.MetadataOnly || len(o.Unstructured().GetOwnerReferences()) > 0 {
		return template{}, false // what an owner makes is known by the owner
	}
	at := []string{"spec", "template"}
	switch o.ID.Group + "/" + o.ID.Kind {
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job", "/ReplicationController", "argoproj.io/Rollout":
	case "batch/CronJob":
		at = []string{"spec", "jobTemplate", "spec", "template"}
	case "networking.istio.io/WorkloadEntry":
		return template{labels: textsAt(o, "spec", "labels"), proxy: true}, true
	case "networking.istio.io/WorkloadGroup":
		return template{labels: textsAt(o, "spec", "metadata", "labels"), proxy: true}, true
	case "gateway.networking.k8s.io/Gateway":
		labels := map[string]string{label.IoK8sNetworkingGatewayGatewayName.Name: o.ID.Name}
		for k, v := range textsAt(o, "spec", "infrastructure", "labels") {
			labels[k] = v
		}
		return template{labels: labels, proxy: true}, true
	default:
		return template{}, false
	}
	t := template{labels: textsAt(o, append(at, "metadata", "labels")...), annotations: textsAt(o, append(at, "metadata", "annotations")...)}
	containers, _, _ := unstructured.NestedFieldNoCopy(o.Unstructured().Object, append(at, "spec", "containers")...)
	list, _ := containers.([]any)
	for _, c := range list {
		if m, ok := c.(map[string]any); ok && m["name"] == proxyContainer {
			t.proxy = true
		}
	}
	return t, true
}

// textsAt reads a mapping of texts.
func textsAt(o *world.Object, path ...string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(o.Unstructured().Object, path...)
	return m
}
