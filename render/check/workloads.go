package check

import (
	"maps"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pkg/config/host"
	"istio.io/istio/pkg/config/labels"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/world"
)

// workload is a set of like pods, or a pod, as policies and Services select it.
type workload struct {
	object              *world.Object
	namespace           string
	labels, annotations map[string]string
	// containers is empty when they were not read.
	containers  []corev1.Container
	hostNetwork bool
	// owns are the labels by which what makes pods knows its own; empty for a pod.
	owns map[string]string
}

// workloads are the pods of a world and what makes pods, by namespace.
func (v *view) workloads() map[string][]workload {
	return once(&v.known().workloads, v.findWorkloads)
}

// selectedBy lists the workloads that a policy of a namespace is for.
func (v *view) selectedBy(namespace string, selector map[string]string) []workload {
	namespaces := []string{namespace}
	if namespace == v.rootNamespace() {
		namespaces = slices.Sorted(maps.Keys(v.workloads()))
	}
	var all []workload
	for _, ns := range namespaces {
		for _, w := range v.workloads()[ns] {
			if w.selected(selector) {
				all = append(all, w)
			}
		}
	}
	return all
}

func (v *view) findWorkloads() map[string][]workload {
	all := map[string][]workload{}
	add := func(o *world.Object, template *corev1.PodTemplateSpec, owns *metav1.LabelSelector) {
		all[o.ID.Namespace] = append(all[o.ID.Namespace], workload{
			object: o, namespace: o.ID.Namespace, labels: template.Labels, annotations: template.Annotations,
			containers: template.Spec.Containers, hostNetwork: template.Spec.HostNetwork,
			owns: ownLabels(owns, template.Labels),
		})
	}
	for o, d := range specs[*appsv1.DeploymentSpec](v, appsGroup, "Deployment") {
		add(o, &d.Template, d.Selector)
	}
	for o, d := range specs[*appsv1.StatefulSetSpec](v, appsGroup, "StatefulSet") {
		add(o, &d.Template, d.Selector)
	}
	for o, d := range specs[*appsv1.DaemonSetSpec](v, appsGroup, "DaemonSet") {
		add(o, &d.Template, d.Selector)
	}
	for _, o := range v.Of("", "Pod") {
		made := func(w workload) bool { return len(w.owns) > 0 && labels.Instance(w.owns).SubsetOf(o.GetLabels()) }
		if slices.ContainsFunc(all[o.ID.Namespace], made) {
			continue // its template says what it will be once the commit is rolled out
		}
		w := workload{object: o, namespace: o.ID.Namespace, labels: o.GetLabels(), annotations: o.GetAnnotations()}
		if spec, ok := specOf[*corev1.PodSpec](o); ok {
			w.containers, w.hostNetwork = spec.Containers, spec.HostNetwork
		}
		all[w.namespace] = append(all[w.namespace], w)
	}
	return all
}

// ownLabels are the labels that a Deployment and the like select their pods by.
func ownLabels(selector *metav1.LabelSelector, template map[string]string) map[string]string {
	if selector == nil || len(selector.MatchLabels) == 0 {
		return template
	}
	return selector.MatchLabels
}

// selected says whether labels pick the workload. No labels pick every one.
func (w workload) selected(selector map[string]string) bool {
	return labels.Instance(selector).SubsetOf(w.labels)
}

// has says whether a container declares the port.
func (w workload) has(port uint32) bool {
	return slices.ContainsFunc(w.containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return uint32(p.ContainerPort) == port })
	})
}

// targetPort is the port of the workload that a Service's port leads to; 0 when that is not known.
func (w workload) targetPort(p corev1.ServicePort) uint32 {
	if name := p.TargetPort.StrVal; name != "" {
		for _, c := range w.containers {
			for _, port := range c.Ports {
				if port.Name == name {
					return uint32(port.ContainerPort)
				}
			}
		}
		return 0
	}
	if p.TargetPort.IntVal != 0 {
		return uint32(p.TargetPort.IntVal)
	}
	return uint32(p.Port)
}

// proxied says whether a workload has a sidecar for certain. The labels of the namespace decide where the pod says nothing.
func (v *view) proxied(w workload) bool {
	if w.annotations["sidecar.istio.io/status"] != "" {
		return true // the injector writes it
	}
	if w.object.ID.Kind == "Pod" || w.hostNetwork {
		return false
	}
	inject := w.labels["sidecar.istio.io/inject"]
	if inject == "" {
		inject = w.annotations["sidecar.istio.io/inject"]
	}
	if inject != "" {
		return inject == "true"
	}
	ns := v.Find(render.ID{Kind: "Namespace", Name: w.namespace})
	if ns == nil {
		return false
	}
	l := ns.GetLabels()
	return l["istio-injection"] == "enabled" || l["istio-injection"] == "" && l["istio.io/rev"] != ""
}

// service is a Service of Kubernetes by the name that Istio knows it by.
type service struct {
	object *world.Object
	host   string
	*corev1.ServiceSpec
}

// services of a world that select pods, by namespace.
func (v *view) services() map[string][]service {
	return once(&v.known().services, func() map[string][]service {
		all := map[string][]service{}
		for o, spec := range specs[*corev1.ServiceSpec](v, "", "Service") {
			if ns := o.ID.Namespace; len(spec.Selector) > 0 && spec.Type != corev1.ServiceTypeExternalName {
				all[ns] = append(all[ns], service{o, o.ID.Name + "." + ns + ".svc.cluster.local", spec})
			}
		}
		return all
	})
}

// selects says whether the workload is behind the Service.
func (s service) selects(w workload) bool {
	return s.object.ID.Namespace == w.namespace && w.selected(s.Selector)
}

// fullHost is the name of a host as Istio completes it: a word without a dot is a Service of the same namespace.
func fullHost(name, namespace string) string {
	if name == "*" || strings.Contains(name, ".") {
		return name
	}
	return name + "." + namespace + ".svc.cluster.local"
}

// covers says whether a host, which may begin with a star, stands for another.
func covers(pattern, name string) bool {
	return host.Name(name).SubsetOf(host.Name(pattern))
}

// rootNamespace is where policies are for the whole mesh.
func (v *view) rootNamespace() string {
	return once(&v.known().root, func() string {
		_, root := v.MeshConfig()
		return root
	})
}

// mayOverlap says whether a workload may have the labels of both selectors. Without labels a selector picks everything.
func mayOverlap(a, b map[string]string) bool {
	for key := range maps.Keys(a) {
		if other, ok := b[key]; ok && other != a[key] {
			return false
		}
	}
	return true
}

// ownsInbound says whether a Sidecar writes the listeners of a workload by hand.
func (v *view) ownsInbound(w workload) bool {
	byHand := once(&v.known().byHand, func() map[string][]*networking.Sidecar {
		all := map[string][]*networking.Sidecar{}
		for o, s := range specs[*networking.Sidecar](v, networkingGroup, "Sidecar") {
			if len(s.GetIngress()) > 0 {
				all[o.ID.Namespace] = append(all[o.ID.Namespace], s)
			}
		}
		return all
	})
	return slices.ContainsFunc(byHand[w.namespace], func(s *networking.Sidecar) bool { return w.selected(s.GetWorkloadSelector().GetLabels()) })
}
