package render

import (
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"
)

// maxPaths is how many ways kustomize may have to go through the definitions of custom resources: it goes all of them.
const maxPaths = 100_000

// schemaLoops refuses an OpenAPI schema in which a $ref leads to itself: kustomize would follow it for ever.
func schemaLoops(f *file) error {
	var root any
	if err := yaml.Unmarshal(f.content, &root); err != nil {
		return fault(f.path, 0, "", "the OpenAPI schema %w: %w", errNotYAML, err)
	}
	var bad error
	visitRefs(root, func(ref string) {
		seen := map[string]bool{}
		for at := ref; bad == nil; {
			if seen[at] {
				bad = fault(f.path, 0, "", "the $ref %s leads to itself", ref)
			}
			seen[at] = true
			m, _ := pointer(root, at).(map[string]any)
			next, ok := m["$ref"].(string)
			if !ok {
				return
			}
			at = next
		}
	})
	return bad
}

// visitRefs calls visit for every $ref in a document.
func visitRefs(v any, visit func(string)) {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			visit(ref)
		}
		for _, key := range sortedKeys(v) {
			visitRefs(v[key], visit)
		}
	case []any:
		for _, e := range v {
			visitRefs(e, visit)
		}
	}
}

// pointer gives what the fragment of a $ref points to (RFC 6901); nil when there is nothing.
func pointer(root any, ref string) any {
	u, err := url.Parse(ref)
	if err != nil {
		return nil
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(u.Fragment, "/"), "/") {
		m, ok := root.(map[string]any)
		if !ok {
			return nil
		}
		root = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return root
}

// definitionLoops refuses definitions of custom resources that contain themselves, or each other so often that going through
// them takes for ever: kustomize has no limit there, and the first case ends the whole process.
func definitionLoops(f *file) error {
	var defs map[string]struct {
		Schema struct {
			Properties map[string]struct {
				Ref string `json:"$ref"`
			} `json:"properties"`
		}
	}
	if err := yaml.Unmarshal(f.content, &defs); err != nil {
		return fault(f.path, 0, "crds names files of OpenAPI definitions; name a CustomResourceDefinition itself under resources",
			"%w", &told{"the definitions of custom resources cannot be read", err})
	}
	uses := map[string][]string{}
	for _, name := range sortedKeys(defs) {
		properties := defs[name].Schema.Properties
		for _, p := range sortedKeys(properties) {
			if ref := properties[p].Ref; ref != "" {
				uses[refName(name)] = append(uses[refName(name)], refName(ref))
			}
		}
	}
	paths := map[string]int{}
	for _, name := range sortedKeys(uses) {
		if err := countPaths(uses, paths, name); err != nil {
			return fault(f.path, 0, "", "%w", err)
		}
	}
	return nil
}

// countPaths counts the ways that begin at a definition. A count of 0 marks one that is being counted.
func countPaths(uses map[string][]string, paths map[string]int, name string) error {
	if n, ok := paths[name]; ok {
		if n == 0 {
			return fmt.Errorf("the definition %s contains itself", name)
		}
		return nil
	}
	paths[name] = 0
	n := 1
	for _, used := range uses[name] {
		if err := countPaths(uses, paths, used); err != nil {
			return err
		}
		if n += paths[used]; n > maxPaths {
			return fmt.Errorf("the definition %s is too large", name)
		}
	}
	paths[name] = n
	return nil
}

// refName makes all spellings of a reference the same, and perhaps some more.
func refName(ref string) string {
	if s, err := url.PathUnescape(ref); err == nil {
		ref = s
	}
	for strings.Contains(ref, "//") {
		ref = strings.ReplaceAll(ref, "//", "/")
	}
	return strings.ToLower(ref)
}
