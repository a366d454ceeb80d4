package schema

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition is a CustomResourceDefinition that somebody brings along, compiled.
type Definition struct {
	// Kind that it defines.
	Kind     schema.GroupKind
	served   []string
	versions map[string]*version
}

// Define reads a CustomResourceDefinition. The error says that the API server would not take it either, or not in full.
func Define(crd *unstructured.Unstructured) (*Definition, error) {
	var from apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &from); err != nil {
		return nil, fmt.Errorf("read the definition %s: %w", crd.GetName(), err)
	}
	d := &Definition{Kind: schema.GroupKind{Group: from.Spec.Group, Kind: from.Spec.Names.Kind}, versions: map[string]*version{}}
	for _, v := range from.Spec.Versions {
		if !v.Served {
			continue
		}
		d.served = append(d.served, v.Name)
		if v.Schema == nil {
			continue
		}
		compiled, err := compile(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("read the definition %s, version %s: %w", crd.GetName(), v.Name, err)
		}
		d.versions[v.Name] = compiled
	}
	return d, nil
}

// Check says what the API server would refuse of an object of the kind, once it has the definition.
func (d *Definition) Check(ctx context.Context, o *unstructured.Unstructured) ([]Fault, error) {
	name := o.GroupVersionKind().Version
	if v := d.versions[name]; v != nil {
		found, err := v.check(ctx, o.Object)
		return append(v.unknown(o.Object), found...), err
	}
	for _, served := range d.served {
		if served == name { // without a schema
			return nil, nil
		}
	}
	return []Fault{{
		Field:   "apiVersion",
		Message: fmt.Sprintf("the definition serves %s, not %s", strings.Join(d.served, ", "), name),
	}}, nil
}
