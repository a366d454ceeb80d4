package render

import (
	"bytes"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// source is an object as it is written in a file, before anything is done to it.
type source struct {
	at         Origin
	apiVersion string
	kind       string
	namespace  string
	name       string
	node       *yaml.Node
	doc        document
}

const (
	localConfig  = "config.kubernetes.io/local-config"
	kustomizeAPI = "kustomize.config.k8s.io/"
	lfsPointer   = "version https://git-lfs.github.com/spec/"
)

// sources lists the objects in a file, lists taken apart, in the order in which they are written. Every one has an apiVersion, a
// kind and a name.
func (t *tree) sources(f *file) ([]source, error) {
	all, _, err := t.resource(f)
	return all, err
}

// resource lists the objects in a file, as sources does, and the documents that they are in.
func (t *tree) resource(f *file) ([]source, []document, error) {
	if bytes.HasPrefix(f.content, []byte(lfsPointer)) {
		return nil, nil, fault(f.path, 1, "keep it in Git itself", "the file is in Git LFS, and only a pointer to it is here")
	}
	docs, err := parse(f.path, f.content, t.limits, false)
	if err != nil {
		return nil, nil, err
	}
	var all []source
	for _, d := range docs {
		if all, err = flatten(all, f.path, d, d.root, ""); err != nil {
			return nil, nil, err
		}
		if len(all) > t.limits.Objects {
			return nil, nil, tooMany(t.limits.Objects)
		}
	}
	return all, docs, nil
}

func tooMany(n int) error {
	return fault("", 0, "split the path in two", "there are more than %d objects", n)
}

// isList says whether an object is a list of objects: what kubectl and kustomize both take for one.
func isList(kind string, hasItems bool) bool {
	return hasItems && strings.HasSuffix(kind, "List")
}

// flatten appends the object at n, or those in it when it is a list. An item without a kind has that of a list for one kind, as
// the API server gives it out (ConfigMapList has items that are ConfigMaps).
func flatten(all []source, name string, d document, n *yaml.Node, in string) ([]source, error) {
	n = target(n)
	at := Origin{File: name, Line: d.line(n)}
	if n.Kind != yaml.MappingNode {
		return nil, fault(name, at.Line, "move what is no Kubernetes object out of the path", "the document is not an object%s", in)
	}
	s := source{at: at, node: n, doc: d, apiVersion: scalar(n, "apiVersion"), kind: scalar(n, "kind")}
	switch {
	case s.apiVersion == "" && s.kind == "":
		return nil, fault(name, at.Line, "move what is no Kubernetes object out of the path", "the object has no apiVersion and no kind%s", in)
	case s.apiVersion == "":
		return nil, fault(name, at.Line, "", "the %s has no apiVersion%s", s.kind, in)
	case s.kind == "":
		return nil, fault(name, at.Line, "", "the object has no kind%s", in)
	}
	if items := field(n, "items"); isList(s.kind, items != nil) {
		return flattenList(all, name, d, items, s.kind)
	}
	meta := field(n, "metadata")
	for _, m := range []struct {
		name string
		node *yaml.Node
	}{{"metadata", meta}, {"metadata.labels", field(meta, "labels")}, {"metadata.annotations", field(meta, "annotations")}} {
		if m.node != nil && m.node.Kind != yaml.MappingNode && m.node.ShortTag() != yaml.NodeTagNull {
			return nil, fault(name, d.line(m.node), "", "%s of the %s is not a mapping%s", m.name, s.kind, in)
		}
	}
	s.name, s.namespace = scalar(meta, "name"), scalar(meta, "namespace")
	switch {
	case s.name == "" && scalar(meta, "generateName") != "":
		return nil, fault(name, at.Line, "give it a metadata.name", "the %s has a generateName and no name: it would be another object each time%s", s.kind, in)
	case s.name == "" && !strings.HasPrefix(s.apiVersion, kustomizeAPI):
		return nil, fault(name, at.Line, "", "the %s has no metadata.name%s", s.kind, in)
	}
	return append(all, s), nil
}

func flattenList(all []source, name string, d document, items *yaml.Node, kind string) (_ []source, err error) {
	switch {
	case items.ShortTag() == yaml.NodeTagNull:
		return all, nil
	case items.Kind != yaml.SequenceNode:
		return nil, fault(name, d.line(items), "", "items of the %s is not a list", kind)
	}
	for _, item := range items.Content {
		if all, err = flatten(all, name, d, item, " (in items of a "+kind+")"); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// field gives the value of a key in a mapping, through aliases and merges (<<); nil when there is none.
func field(n *yaml.Node, key string) *yaml.Node {
	n = target(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	var merged *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k, v := n.Content[i], n.Content[i+1]; {
		case k.Value == key:
			return target(v)
		case k.ShortTag() == yaml.MergeTag:
			merged = target(v)
		}
	}
	if merged == nil || merged.Kind != yaml.SequenceNode {
		return field(merged, key)
	}
	for _, m := range merged.Content {
		if v := field(m, key); v != nil {
			return v
		}
	}
	return nil
}

// target follows aliases.
func target(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// scalar gives the text of a scalar under a key; "" when there is none.
func scalar(n *yaml.Node, key string) string {
	if v := field(n, key); v != nil && v.Kind == yaml.ScalarNode && v.ShortTag() != yaml.NodeTagNull {
		return v.Value
	}
	return ""
}

// textKeys refuses keys that are no text. kustomize cannot write them as JSON, and says so without the place.
func textKeys(name string, sources []source) error {
	var bad faults
	for _, s := range sources {
		visitKeys(s.node, func(k *yaml.Node) {
			if tag := k.ShortTag(); tag != yaml.NodeTagString && tag != yaml.MergeTag {
				bad.add(fault(name, s.doc.line(k), "quote it", "the key %s is not text", k.Value))
			}
		})
	}
	return bad.join()
}

// plainKeys refuses keys that kubectl would change without a word: on becomes true.
func plainKeys(name string, sources []source) error {
	var bad faults
	for _, s := range sources {
		visitKeys(s.node, func(k *yaml.Node) {
			quoted := k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
			switch strings.ToLower(k.Value) {
			case "y", "n", "yes", "no", "on", "off", "true", "false", "~", "null", "":
				if !quoted {
					bad.add(fault(name, s.doc.line(k), "quote it", "the key %s would be read as true, false or null", k.Value))
				}
			}
		})
	}
	return bad.join()
}

// visitKeys calls visit for every key below n.
func visitKeys(n *yaml.Node, visit func(*yaml.Node)) {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			visit(c)
			continue
		}
		visitKeys(c, visit)
	}
}
