package schema_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render/check/schema"
)

// BenchmarkFirst is what the first object of each kind and version costs.
func BenchmarkFirst(b *testing.B) {
	kinds, err := schema.New().Kinds()
	if err != nil {
		b.Fatal(err)
	}
	for _, gvk := range kinds {
		b.Run(gvk.Kind+"/"+gvk.Version, func(b *testing.B) {
			for b.Loop() {
				o := &unstructured.Unstructured{Object: map[string]any{}}
				o.SetGroupVersionKind(gvk)
				if _, err := schema.Fresh().Check(b.Context(), o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
