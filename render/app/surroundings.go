package app

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render"
)

// surroundings are what stands beside an AppConfiguration in the same path, as far as defaults are derived from it.
type surroundings struct {
	services map[serviceKey]*service
}

type serviceKey struct{ namespace, name string }

// service is what matters of a Service.
type service struct {
	selector map[string]string
	ports    []servicePort
}

type servicePort struct {
	name        string
	number      uint32
	appProtocol string
}

// survey looks at all objects once.
func survey(objects []render.Object) *surroundings {
	s := &surroundings{services: map[serviceKey]*service{}}
	for _, o := range objects {
		if gvk := o.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Service" {
			s.services[serviceKey{o.GetNamespace(), o.GetName()}] = readService(o.Unstructured().Object)
		}
	}
	return s
}

// service finds a Service; nil when it is not in the path.
func (s *surroundings) service(namespace, name string) *service {
	return s.services[serviceKey{namespace, name}]
}

// readService takes what it understands; what is malformed is for package check to tell.
func readService(o map[string]any) *service {
	out := &service{}
	out.selector, _, _ = unstructured.NestedStringMap(o, "spec", "selector")
	ports, _, _ := unstructured.NestedSlice(o, "spec", "ports")
	for _, p := range ports {
		fields, ok := p.(map[string]any)
		if !ok {
			continue
		}
		number, _ := fields["port"].(int64)
		name, _ := fields["name"].(string)
		protocol, _ := fields["appProtocol"].(string)
		out.ports = append(out.ports, servicePort{name: name, number: uint32(number), appProtocol: protocol}) //nolint:gosec // checked by the API server
	}
	return out
}
