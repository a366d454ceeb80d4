package render

import (
	"encoding/json"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Order puts the lists of a value in the order that they have in base, where a patch may have touched them.
func Order(listSchemaJSON string, v any, base string, patches ...string) (any, error) {
	var s listSchema
	if err := json.Unmarshal([]byte(listSchemaJSON), &s); err != nil {
		return nil, err
	}
	root, err := yaml.Parse(base)
	if err != nil {
		return nil, err
	}
	var nodes []*yaml.Node
	for _, p := range patches {
		n, err := yaml.Parse(p)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n.YNode())
	}
	next, _ := s.order(v, root.YNode(), nodes)
	return next, nil
}
