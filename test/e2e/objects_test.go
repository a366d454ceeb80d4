package e2e_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/apply"
)

// partOf is the ApplySet that an object says it belongs to.
func partOf(o *unstructured.Unstructured) string {
	return o.GetLabels()[apply.PartOfLabel]
}

// ours says whether Mooring's field manager has written to an object.
func ours(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == apply.FieldManager })
}

// objects in the order of their names.
func objects(byName map[string]*unstructured.Unstructured) []*unstructured.Unstructured {
	var sorted []*unstructured.Unstructured
	for _, o := range byName {
		sorted = append(sorted, o)
	}
	slices.SortFunc(sorted, func(a, b *unstructured.Unstructured) int {
		if a.GetName() < b.GetName() {
			return -1
		}
		return 1
	})
	return sorted
}

// apply writes an object of the YAML as somebody else, server-side.
func (s *site) apply(manager, text string) *unstructured.Unstructured {
	s.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		s.t.Fatal(err)
	}
	applied := client.ApplyConfigurationFromUnstructured(o)
	if err := s.w.Client().Apply(s.t.Context(), applied, client.FieldOwner(manager), client.ForceOwnership); err != nil {
		s.t.Fatal(err)
	}
	return o
}
