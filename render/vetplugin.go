package render

import (
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// plugin examines an entry of generators, transformers or validators, which is a path or YAML.
func (v *vetter) plugin(k *kustomization, dir, field, entry string) error {
	docs, err := v.parseInline(k, text{field, entry, true})
	if err != nil || anyMapping(docs) {
		if err == nil {
			err = pluginDocs(k.file, docs)
		}
		if err == nil && remote(entry) {
			err = v.refer(k, dir, reference{field, entry, either, usePlugin})
		}
		return err
	}
	return v.refer(k, dir, reference{field, entry, either, usePlugin})
}

func pluginDocs(name string, docs []document) error {
	var bad faults
	for _, d := range docs {
		bad.add(pluginNode(name, d, target(d.root)))
	}
	return bad.join()
}

// pluginNode examines one configuration, or a list of them.
func pluginNode(name string, d document, n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return nil // kustomize refuses it
	}
	if items := field(n, "items"); items != nil && strings.HasSuffix(scalar(n, "kind"), "List") {
		var bad faults
		for _, item := range items.Content {
			bad.add(pluginNode(name, d, target(item)))
		}
		return bad.join()
	}
	kind, version := scalar(n, "kind"), scalar(n, "apiVersion")
	switch {
	case kind == "" || scalar(field(n, "metadata"), "name") == "":
		return fault(name, d.line(n), "", "the configuration of a plugin has no kind or no metadata.name")
	case version != "builtin":
		return fault(name, d.line(n), "only kustomize's built-in ones (apiVersion: builtin) are run",
			"%s of %q is a plugin or function, which would be a program of its own", kind, version)
	case strings.EqualFold(kind, "HelmChartInflationGenerator"):
		return fault(name, d.line(n), "run helm template, and commit what it writes", "%s: Helm charts are not rendered", kind)
	}
	return pluginPaths(name, d, n)
}

// pathKeys are all those under which a built-in plugin has a path. Under some of them are also other things, such as field paths, but
// nothing that looks remote.
func pathKeys() []string {
	return []string{"path", "paths", "files", "env", "envs", "targetFilePath"}
}

// pluginPaths refuses paths in a configuration that lead to another machine.
func pluginPaths(name string, d document, n *yaml.Node) error {
	var bad faults
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], target(n.Content[i+1])
		// EqualFold is how the decoder of the plugins compares keys.
		if slices.ContainsFunc(pathKeys(), func(k string) bool { return strings.EqualFold(k, key.Value) }) {
			bad.add(remoteScalars(name, d, key.Value, value))
		} else {
			bad.add(pluginChildren(name, d, value))
		}
	}
	return bad.join()
}

func pluginChildren(name string, d document, n *yaml.Node) error {
	if n.Kind == yaml.MappingNode {
		return pluginPaths(name, d, n)
	}
	var bad faults
	for _, c := range n.Content {
		bad.add(pluginChildren(name, d, target(c)))
	}
	return bad.join()
}

// remoteScalars refuses any scalar below n that leads to another machine.
func remoteScalars(name string, d document, key string, n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		_, after, _ := strings.Cut(n.Value, "=")
		if remote(n.Value) || remote(after) {
			return fault(name, d.line(n), "copy it into the repository",
				"%s: %s is on another machine, and a render reads the repository only", key, n.Value)
		}
		return nil
	}
	var bad faults
	for _, c := range n.Content {
		bad.add(remoteScalars(name, d, key, target(c)))
	}
	return bad.join()
}
