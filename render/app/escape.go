package app

import (
	"maps"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// raw gives the spec that stands for what would have been generated.
func (b *builder) raw(esc Escape, block []string) (map[string]any, error) {
	if esc.Patch != nil {
		return nil, faultAt(b.object, at(below(block, "patch")...), "write it into raw", "a patch beside raw has nothing to change")
	}
	return b.mapping(esc.Raw.Raw, below(block, "raw"))
}

// patched merges a patch over a generated spec: see [Escape].
func (b *builder) patched(fields map[string]any, esc Escape, block []string) (map[string]any, error) {
	patch, err := b.mapping(esc.Patch.Raw, below(block, "patch"))
	if err != nil {
		return nil, err
	}
	merged, _ := merge(fields, patch).(map[string]any)
	return merged, nil
}

// directive is the key with which a strategic merge patch says what is done with its mapping: delete, or replace.
const directive = "$patch"

// merge gives base with patch over it. It is not kyaml's merge2, which without a schema takes an empty list for nothing, fails where the base has no
// such list, and does not know a Gateway's servers by the names of their ports.
func merge(base, patch any) any {
	switch patch := patch.(type) {
	case map[string]any:
		return mergeMapping(base, patch)
	case []any:
		return mergeList(base, patch)
	default:
		return patch
	}
}

func mergeMapping(base any, patch map[string]any) any {
	out := map[string]any{}
	if b, ok := base.(map[string]any); ok && patch[directive] != "replace" {
		maps.Copy(out, b)
	}
	for key, value := range patch {
		inner, _ := value.(map[string]any)
		switch {
		case key == directive:
		case value == nil || inner[directive] == "delete":
			delete(out, key)
		default:
			out[key] = merge(out[key], value)
		}
	}
	return out
}

// mergeList merges by name where every item of the patch has one, and else replaces the list.
func mergeList(base any, patch []any) any {
	out := []any{} // an empty list is one
	byName := len(patch) > 0
	for _, item := range patch {
		byName = byName && nameOf(item) != ""
	}
	if list, ok := base.([]any); ok && byName {
		out = slices.Clone(list)
	}
	for _, item := range patch {
		at := slices.IndexFunc(out, func(e any) bool { return byName && nameOf(e) == nameOf(item) })
		inner, _ := item.(map[string]any)
		switch {
		case inner[directive] == "delete":
			if at >= 0 {
				out = slices.Delete(out, at, at+1)
			}
		case at >= 0:
			out[at] = merge(out[at], item)
		default:
			out = append(out, merge(nil, item))
		}
	}
	return out
}

// nameOf is what an item of a list is called: its name, or that of its port, as a Gateway's servers have.
func nameOf(item any) string {
	m, _ := item.(map[string]any)
	if name, ok := m["name"].(string); ok {
		return name
	}
	port, _ := m["port"].(map[string]any)
	name, _ := port["name"].(string)
	return name
}

// mapping reads JSON that has to be a mapping.
func (b *builder) mapping(text []byte, path []string) (map[string]any, error) {
	var v any
	if err := utiljson.Unmarshal(text, &v); err != nil {
		return nil, faultAt(b.object, at(path...), "", "%w", err)
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, faultAt(b.object, at(path...), "write the fields of the Istio kind's spec", "is not a mapping")
	}
	return fields, nil
}
