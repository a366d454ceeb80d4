package render

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// When kustomize merges a list by keys, the items of the patch come first, and then those that it does not name. The first route that matches is taken, so
// a patch of the last route would shadow all others. Here the items that an AppConfiguration was written with keep their order, and what patches
// add comes before them, as kustomize has it. A list that only JSON patches touch is as they leave it.

// listSchema is what ownSchema says of a value.
type listSchema struct {
	Properties           map[string]*listSchema
	AdditionalProperties *listSchema
	Items                *listSchema
	Keys                 []string `json:"x-kubernetes-list-map-keys"`
}

// inOrder puts the lists of AppConfigurations that were merged in order. The objects that are given, and what they hold, are not changed.
func inOrder(objects []Object) ([]Object, error) {
	var all map[string]*listSchema
	parsed := map[*patchText][]document{}
	copied := false
	for i, o := range objects {
		if o.GetKind() != "AppConfiguration" || o.GroupVersionKind().Group != mooringAPI || !o.mayBePatched() {
			continue
		}
		if all == nil {
			var doc struct{ Definitions map[string]*listSchema }
			if err := json.Unmarshal([]byte(ownSchema), &doc); err != nil {
				return nil, fmt.Errorf("read the schema of AppConfiguration: %w", err)
			}
			all = doc.Definitions
		}
		s := all[mooringAPI+"."+o.GroupVersionKind().Version+"."+o.GetKind()]
		a := o.ask(nil)
		a.parsed = parsed
		patches := a.merges()
		if s == nil || len(patches) == 0 || !a.document() {
			continue
		}
		content, changed := s.order(o.Unstructured().Object, a.node, patches)
		if !changed {
			continue
		}
		if !copied {
			objects, copied = slices.Clone(objects), true
		}
		root, _ := content.(map[string]any) // as it was before
		objects[i].Content = ContentOf(&unstructured.Unstructured{Object: root})
	}
	return objects, nil
}

// mayBePatched says whether a kustomization on the object's way has patches.
func (o Object) mayBePatched() bool {
	if o.written == nil || o.written.made {
		return false
	}
	for p := o.written.first; p != nil; p = p.next {
		if len(p.patches) > 0 {
			return true
		}
	}
	return false
}

// merges are the strategic merge patches for the object.
func (a *asked) merges() []*yaml.Node {
	var all []*yaml.Node
	for _, p := range a.passages {
		for i := range p.patches {
			text := &p.patches[i]
			for _, doc := range a.parse(text) {
				if doc.root.Kind == yaml.MappingNode && a.isFor(text, doc.root) {
					all = append(all, doc.root)
				}
			}
		}
	}
	return all
}

// order gives v with its lists in the order that they have where the object was written, and whether that is another one.
func (s *listSchema) order(v any, base *yaml.Node, patches []*yaml.Node) (any, bool) {
	if len(patches) == 0 || base == nil {
		return v, false
	}
	switch v := v.(type) {
	case map[string]any:
		changed := false
		for _, key := range sortedKeys(v) {
			inner := s.AdditionalProperties
			if p := s.Properties[key]; p != nil {
				inner = p
			}
			if inner == nil {
				continue
			}
			next, ok := inner.order(v[key], field(base, key), fields(patches, key))
			if ok {
				v, changed = with(v, key, next, changed), true
			}
		}
		return v, changed
	case []any:
		return s.orderList(v, base, patches)
	default:
		return v, false
	}
}

// orderList is order for a list.
func (s *listSchema) orderList(list []any, base *yaml.Node, patches []*yaml.Node) (any, bool) {
	if len(s.Keys) != 1 || base.Kind != yaml.SequenceNode {
		return list, false
	}
	key := s.Keys[0]
	place := map[string]int{}
	for i, item := range base.Content {
		place[scalar(item, key)] = i
	}
	name := func(item any) string {
		m, _ := item.(map[string]any)
		return fmt.Sprint(m[key])
	}
	rank := func(item any) int {
		if i, ok := place[name(item)]; ok {
			return i
		}
		return -1
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b any) int { return rank(a) - rank(b) })
	changed := false
	for i, item := range sorted {
		changed = changed || name(item) != name(list[i])
		at, ok := place[name(item)]
		if !ok || s.Items == nil {
			continue
		}
		var inner []*yaml.Node
		for _, p := range patches {
			for _, n := range p.Content {
				if p.Kind == yaml.SequenceNode && scalar(n, key) == name(item) {
					inner = append(inner, target(n))
				}
			}
		}
		if next, ok := s.Items.order(item, target(base.Content[at]), inner); ok {
			sorted[i], changed = next, true
		}
	}
	return sorted, changed
}

// fields gives the values of a key where there are any.
func fields(nodes []*yaml.Node, key string) []*yaml.Node {
	var all []*yaml.Node
	for _, n := range nodes {
		if v := field(n, key); v != nil {
			all = append(all, v)
		}
	}
	return all
}

// with sets a key in a mapping, which is copied first unless it was already.
func with(m map[string]any, key string, v any, copied bool) map[string]any {
	if !copied {
		next := make(map[string]any, len(m))
		for k, e := range m {
			next[k] = e
		}
		m = next
	}
	m[key] = v
	return m
}
