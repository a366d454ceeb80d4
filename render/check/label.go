package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// invalidLabel finds label keys and values that the API server refuses. A version or a switch that is not written in quotes is
// a number or a boolean to YAML, and reading it through the usual accessors would make it vanish.
var invalidLabel = rule{
	Rule: Rule{
		Code: "MOOR011", Level: Error,
		Title: "invalid label",
		Mend: "keys are [prefix/]name, values up to 63 letters, digits, hyphens, underscores and dots " +
			"(https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/)",
	},
	check: func(s *subject) []problem {
		var ps []problem
		for _, meta := range s.metadata() {
			ps = append(ps, labelProblems(join(meta.path, "labels"), meta.content["labels"])...)
		}
		if s.faults.hideTheRest() { // a wrong type is said already
			return ps
		}
		for _, path := range s.selectors() {
			if m := at(s.root(), path[:len(path)-1]); m != nil {
				ps = append(ps, labelProblems(strings.Join(path, "."), m[path[len(path)-1]])...)
			}
		}
		return ps
	},
}

func labelProblems(path string, v any) []problem {
	if v == nil {
		return nil
	}
	labels, ok := v.(map[string]any)
	if !ok {
		return []problem{{Field: path, Message: "must be a map, not " + typeName(v)}}
	}
	var ps []problem
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		field := path + "[" + k + "]"
		for _, fault := range validation.IsQualifiedName(k) {
			ps = append(ps, problem{Field: field, Message: "the key is not valid: " + plainFault(fault)})
		}
		if _, text := labels[k].(string); !text {
			ps = append(ps, unquoted(field, k, labels[k]))
			continue
		}
		ps = append(ps, stringProblems(field, labels[k], validation.IsValidLabelValue)...)
	}
	return ps
}

// unquoted is the problem of a value that YAML reads as something other than a string.
func unquoted(field, key string, v any) problem {
	p := problem{Field: field, Message: "must be a string, not " + typeName(v)}
	switch v := v.(type) {
	case nil:
		p.Mend = `write "" when an empty value is meant`
	case int64, float64:
		// What YAML made of 1.10 is 1.1: the text in the file is what must be quoted.
		p.Mend = "put the value in quotes"
		if key == revisionLabel {
			p.Mend = fmt.Sprintf("write the revision's name in quotes, as in %q: it cannot hold a dot", strings.ReplaceAll(fmt.Sprint(v), ".", "-"))
		}
	case bool:
		p.Mend = fmt.Sprintf("put the value in quotes: \"%v\"", v)
	default:
		p.Mend = "write one string"
	}
	return p
}

// metadata is what stands under a metadata key: the object's own, and that of the pods which it makes.
type metadata struct {
	path    string
	content map[string]any
}

func (s *subject) metadata() []metadata {
	var list []metadata
	paths := [][]string{{"metadata"}}
	switch s.GroupVersionKind().Group {
	case "apps", "batch":
		paths = append(paths, []string{"spec", "template", "metadata"}, []string{"spec", "jobTemplate", "spec", "template", "metadata"})
	}
	for _, p := range paths {
		if m := at(s.root(), p); m != nil {
			list = append(list, metadata{path: strings.Join(p, "."), content: m})
		}
	}
	return list
}

// selectors are the paths of the labels that the object asks of others. In those of Istio's kinds a wildcard has a finding of its own.
func (s *subject) selectors() [][]string {
	switch gk := s.GroupVersionKind().GroupKind(); {
	case gk.Group == "" && gk.Kind == "Service":
		return [][]string{{"spec", "selector"}}
	case gk.Group == "apps", gk.Group == "batch", gk.Group == "policy", gk.Group == "networking.k8s.io":
		return [][]string{{"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}}
	}
	return nil
}

// at follows keys down; nil where the way ends.
func at(m map[string]any, keys []string) map[string]any {
	for _, k := range keys {
		m, _ = m[k].(map[string]any)
	}
	return m
}
