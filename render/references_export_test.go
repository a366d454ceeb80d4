package render

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Unlinked gives an object without the values of the fields that refer to others: all that may differ from what kustomize makes.
func Unlinked(o *unstructured.Unstructured) *unstructured.Unstructured {
	content := any(o.Object)
	for _, l := range links()[IDOf(o).GroupKind()] {
		content, _ = rewritten(content, l.path, func(any) (any, bool) { return nil, true })
	}
	root, _ := content.(map[string]any)
	return &unstructured.Unstructured{Object: root}
}

// ApplicationLinks are the fields of an AppConfiguration that name other objects.
func ApplicationLinks() [][]string {
	var paths [][]string
	applicationLinks(func(_, _ string, _ refer, fields ...string) {
		for _, p := range fields {
			paths = append(paths, strings.Split(strings.ReplaceAll(p, "[]", ".[]"), "."))
		}
	})
	return paths
}
