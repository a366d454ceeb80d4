package analysis

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/mooring-dev/mooring/render/check/world"
)

// textAt reads a text; empty where there is none.
func textAt(o *world.Object, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Unstructured().Object, path...)
	return s
}

// listAt reads a list of texts.
func listAt(o *world.Object, path ...string) []string {
	v, _, _ := unstructured.NestedFieldNoCopy(o.Unstructured().Object, path...)
	items, _ := v.([]any)
	var texts []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			texts = append(texts, s)
		}
	}
	return texts
}

// specOf is the converted spec of an object, if it could be converted and is known.
func specOf[T any](o *world.Object) (spec T, ok bool) {
	c := o.Config()
	if c == nil || o.MetadataOnly {
		return spec, false
	}
	spec, ok = c.Spec.(T)
	return spec, ok
}

// sibling is the field beside another whose last step has the given name.
func sibling(field, last, other string) string {
	before, ok := strings.CutSuffix(field, "."+last)
	if !ok {
		return field
	}
	return before + "." + other
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}

func number[N int | int32 | uint32](n N) string {
	return fmt.Sprint(n)
}
