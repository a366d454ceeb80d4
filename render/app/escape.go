package app

import (
	"encoding/json"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// raw gives the spec that stands for what would have been generated.
func (b *builder) raw(esc Escape, block []string) (map[string]any, error) {
	if esc.Patch != nil {
		return nil, faultAt(b.object, at(append(block, "patch")...), "write it into raw", "a patch beside raw has nothing to change")
	}
	return b.mapping(esc.Raw.Raw, append(block, "raw"))
}

// patched merges a patch over a generated spec as kustomize merges a strategic patch whose kind has no schema: see [Escape].
func (b *builder) patched(fields map[string]any, esc Escape, block []string) (map[string]any, error) {
	path := append(block, "patch")
	if _, err := b.mapping(esc.Patch.Raw, path); err != nil {
		return nil, err
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	merged, err := merge2.MergeStrings(string(esc.Patch.Raw), string(text), true, yaml.MergeOptions{ListIncreaseDirection: yaml.MergeOptionsListAppend})
	if err != nil {
		return nil, faultAt(b.object, at(path...), "", "cannot be merged: %w", err)
	}
	if text, err = yaml.MustParse(merged).MarshalJSON(); err != nil {
		return nil, faultAt(b.object, at(path...), "", "cannot be merged: %w", err)
	}
	return b.mapping(text, path)
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
