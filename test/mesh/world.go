package mesh

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	networking "istio.io/api/networking/v1alpha3"
	"istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/schema/gvk"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const clusterDomain = "cluster.local"

// world is what of a set istiod reads, and what a running cluster would add to it.
type world struct {
	configs  []config.Config
	services []*corev1.Service
	spaces   []*corev1.Namespace
	pods     []*corev1.Pod
	slices   []*discoveryv1.EndpointSlice
}

// readWorld sorts a set of objects by who reads them, and adds pods and endpoints. The order of the objects means nothing.
func readWorld(objects []*unstructured.Unstructured) (*world, error) {
	objects = slices.Clone(objects)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return compareKeys(key(a), key(b))
	})
	w := &world{}
	var deployments []*appsv1.Deployment
	for _, o := range objects {
		var err error
		switch o.GroupVersionKind().GroupKind().String() {
		case "Service":
			w.services, err = read(w.services, o)
		case "Namespace":
			w.spaces, err = read(w.spaces, o)
		case "Deployment.apps":
			deployments, err = read(deployments, o)
		default:
			err = w.istio(o)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
	}
	w.addNamespaces()
	if len(w.gateways()) > 0 {
		w.services = append(w.services, ingressGateway())
		w.addPod(constants.IstioSystemNamespace, "istio-ingressgateway", corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: ingressGateway().Spec.Selector},
			Spec:       corev1.PodSpec{ServiceAccountName: "istio-ingressgateway-service-account"},
		})
	}
	for _, d := range deployments {
		w.addPod(d.Namespace, d.Name, d.Spec.Template)
	}
	for i, s := range w.services {
		if s.Spec.ClusterIP == "" && s.Spec.Type != corev1.ServiceTypeExternalName {
			s.Spec.ClusterIP = fmt.Sprintf("10.0.%d.%d", (i+100)/256, (i+100)%256)
		}
		w.slices = append(w.slices, w.endpoints(s))
	}
	return w, nil
}

// key sorts objects by what they are, so that addresses do not depend on the order in which they came.
func key(o *unstructured.Unstructured) []string {
	return []string{o.GroupVersionKind().GroupKind().String(), o.GetNamespace(), o.GetName()}
}

func compareKeys(a, b []string) int { return slices.Compare(a, b) }

// read appends a typed object.
func read[T any](list []*T, o *unstructured.Unstructured) ([]*T, error) {
	typed := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.DeepCopy().Object, typed)
	return append(list, typed), err
}

// istio takes an object of Istio's own kinds, as istiod reads it from the API server.
func (w *world) istio(o *unstructured.Unstructured) error {
	from := o.GroupVersionKind()
	kind, ok := collections.Pilot.FindByGroupVersionAliasesKind(config.GroupVersionKind{Group: from.Group, Version: from.Version, Kind: from.Kind})
	if !ok {
		return nil
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	var object crd.IstioKind
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	c, err := crd.ConvertObject(kind, &object, clusterDomain)
	if err != nil {
		return err
	}
	// What conflicts is decided by age, and then by name. All are as old as one commit.
	c.CreationTimestamp = time.Unix(0, 0)
	w.configs = append(w.configs, *c)
	return nil
}

// namespaces of all objects, but for Istio's own.
func (w *world) namespaces() []string {
	found := map[string]bool{}
	for _, s := range w.services {
		found[s.Namespace] = true
	}
	for _, c := range w.configs {
		found[c.Namespace] = true
	}
	delete(found, constants.IstioSystemNamespace)
	return slices.Sorted(maps.Keys(found))
}

func (w *world) addNamespaces() {
	for _, name := range append(w.namespaces(), constants.IstioSystemNamespace) {
		if !slices.ContainsFunc(w.spaces, func(n *corev1.Namespace) bool { return n.Name == name }) {
			w.spaces = append(w.spaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
}

// gateways are what the Gateways of the set select, each once.
func (w *world) gateways() []map[string]string {
	var out []map[string]string
	for _, c := range w.configs {
		spec, ok := c.Spec.(*networking.Gateway)
		if c.GroupVersionKind != gvk.Gateway || !ok {
			continue
		}
		if !slices.ContainsFunc(out, func(other map[string]string) bool { return maps.Equal(other, spec.Selector) }) {
			out = append(out, spec.Selector)
		}
	}
	return out
}

// kubernetes are the objects for the API server.
func (w *world) kubernetes() []runtime.Object {
	var out []runtime.Object
	for _, o := range w.spaces {
		out = append(out, o)
	}
	for _, o := range w.services {
		out = append(out, o)
	}
	for _, o := range w.pods {
		out = append(out, o)
	}
	for _, o := range w.slices {
		out = append(out, o)
	}
	return out
}
