package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// invalidAnnotation finds annotation keys and values that the API server refuses. Values may be secret and are not shown.
var invalidAnnotation = rule{
	Rule: Rule{
		Code: "MOOR012", Level: Error,
		Title: "invalid annotation",
		Mend:  "keys are [prefix/]name, values are strings (https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations/)",
	},
	check: func(s *subject) []problem {
		var ps []problem
		for _, meta := range s.metadata() {
			ps = append(ps, annotationProblems(join(meta.path, "annotations"), meta.content["annotations"])...)
		}
		return ps
	},
}

// mostAnnotationBytes is the API server's limit on all annotations of an object, keys included.
const mostAnnotationBytes = 256 << 10

func annotationProblems(path string, v any) []problem {
	if v == nil {
		return nil
	}
	annotations, ok := v.(map[string]any)
	if !ok {
		return []problem{{Field: path, Message: "must be a map, not " + typeName(v)}}
	}
	var ps []problem
	size := 0
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		field := path + "[" + k + "]"
		for _, fault := range validation.IsQualifiedName(strings.ToLower(k)) {
			ps = append(ps, problem{Field: field, Message: "the key is not valid: " + plainFault(fault)})
		}
		text, ok := annotations[k].(string)
		if !ok {
			ps = append(ps, problem{
				Field: field, Message: "must be a string, not " + kindOf(annotations[k]), Mend: "put the value in quotes",
			})
		}
		size += len(k) + len(text)
	}
	if size > mostAnnotationBytes {
		ps = append(ps, problem{
			Field: path, Message: fmt.Sprintf("%d bytes of annotations, of which %d are allowed", size, mostAnnotationBytes),
			Mend: "put large values in a ConfigMap",
		})
	}
	return ps
}

// kindOf names the type and keeps the value to itself.
func kindOf(v any) string {
	switch v.(type) {
	case int64, float64:
		return "a number"
	default:
		return typeName(v)
	}
}
