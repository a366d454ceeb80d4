package render

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Unlinked gives an object without the values of the fields that refer to others: all that may differ from what kustomize makes.
func Unlinked(o *unstructured.Unstructured) *unstructured.Unstructured {
	content := any(o.Object)
	for _, l := range links()[IDOf(o).GroupKind()] {
		content, _ = rewritten(content, l.path, func(any) (any, bool) { return nil, true })
	}
	root, _ := content.(map[string]any)
	return &unstructured.Unstructured{Object: root}
}
