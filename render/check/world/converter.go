package world

import (
	"fmt"

	"istio.io/istio/pkg/config"
	"istio.io/istio/pkg/config/schema/collections"
	"istio.io/istio/pkg/config/schema/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
)

// Converter makes worlds and remembers the conversion of their objects. Make one with [NewConverter].
type Converter struct {
	schemas map[schema.GroupVersionKind]resource.Schema
	configs Kept[*config.Config]
}

// NewConverter knows all kinds that Istio's libraries read: Istio's own, the Gateway API's and some of Kubernetes'.
func NewConverter() *Converter {
	c := &Converter{schemas: map[schema.GroupVersionKind]resource.Schema{}}
	for _, s := range collections.All.All() {
		for _, gvk := range append(s.GroupVersionAliasKinds(), s.GroupVersionKind()) {
			c.schemas[schema.GroupVersionKind{Group: s.Group(), Version: gvk.Version, Kind: s.Kind()}] = s
		}
	}
	return c
}

// Converted is the number of objects whose conversion is remembered.
func (c *Converter) Converted() int {
	return c.configs.Len()
}

func (c *Converter) object(o render.Object, foreign bool) *Object {
	return &Object{Object: o, ID: o.ID(), Schema: c.schemas[o.GroupVersionKind()], Foreign: foreign, converter: c}
}

func (c *Converter) config(u *unstructured.Unstructured, s resource.Schema) *config.Config {
	return c.configs.Of(u, func() *config.Config {
		converted, err := convert(u, s)
		if err != nil {
			return nil // the rules on structure say what is wrong with it
		}
		return converted
	})
}

// convert reads the spec of an object, or all of it where the kind has no spec, such as a Secret, into the type that the libraries know.
func convert(u *unstructured.Unstructured, s resource.Schema) (converted *config.Config, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("convert %s: %v", render.IDOf(u), p)
		}
	}()
	spec, err := s.NewInstance()
	if err != nil {
		return nil, err
	}
	content, err := specOf(u, s)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, spec); err != nil {
		return nil, fmt.Errorf("convert %s: %w", render.IDOf(u), err)
	}
	return &config.Config{
		Meta: config.Meta{
			GroupVersionKind:  s.GroupVersionKind(),
			UID:               string(u.GetUID()),
			Name:              u.GetName(),
			Namespace:         u.GetNamespace(),
			Labels:            u.GetLabels(),
			Annotations:       u.GetAnnotations(),
			ResourceVersion:   u.GetResourceVersion(),
			CreationTimestamp: u.GetCreationTimestamp().Time,
			OwnerReferences:   u.GetOwnerReferences(),
			Generation:        u.GetGeneration(),
			Domain:            "cluster.local",
		},
		Spec: spec,
	}, nil
}

// specOf is what a kind's type in the libraries is read from. One of Kubernetes' own that has no spec, such as a Secret, gives all of itself, as
// Istio's own reader of files has it.
func specOf(u *unstructured.Unstructured, s resource.Schema) (map[string]any, error) {
	spec, ok := u.Object["spec"]
	switch {
	case !ok && s.IsBuiltin():
		return u.Object, nil
	case spec == nil:
		return map[string]any{}, nil
	}
	m, ok := spec.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("convert %s: spec is %T", render.IDOf(u), spec)
	}
	return m, nil
}
