package legacy

import (
	"slices"

	"go.yaml.in/yaml/v3"
)

// apply makes edits to a document, all or none. It is false where a path leads through an anchor or an alias: what is
// changed there would change elsewhere too.
func apply(document *yaml.Node, edits []edit) bool {
	root := document.Content[0]
	for _, e := range edits {
		if e.from != nil && locate(root, e.from) == nil {
			return false
		}
		if e.to != nil && throughAnchor(root, e.to) {
			return false
		}
	}
	for _, e := range edits {
		if !e.apply(root) {
			return false
		}
	}
	return true
}

func (e edit) apply(root *yaml.Node) bool {
	var value *yaml.Node
	if e.from != nil {
		value = locate(root, e.from)
	}
	if e.value != nil {
		value = &yaml.Node{}
		if value.Encode(e.value) != nil {
			return false
		}
		flow(value)
	}
	if e.list {
		item := *value // a copy: the list takes the place of the node itself
		value = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{&item}}
	}
	switch {
	case e.from == nil || slices.Equal(e.from, e.to):
		return put(root, e.to, value)
	case e.to != nil && sameParent(e.from, e.to):
		return rename(root, e.from, e.to, value)
	case e.to != nil:
		remove(root, e.from)
		return put(root, e.to, value)
	}
	return remove(root, e.from)
}

// flow writes small values on one line.
func flow(n *yaml.Node) {
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
}

func sameParent(a, b []any) bool {
	return len(a) == len(b) && slices.Equal(a[:len(a)-1], b[:len(b)-1])
}

// locate the value at a path; nil when there is none, or when it is shared by an anchor.
func locate(n *yaml.Node, path []any) *yaml.Node {
	for _, step := range path {
		if n = child(n, step); n == nil || shared(n) {
			return nil
		}
	}
	return n
}

// shared says whether a value is written in one place and meant in others too.
func shared(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != ""
}

func child(n *yaml.Node, step any) *yaml.Node {
	switch s := step.(type) {
	case int:
		if n.Kind == yaml.SequenceNode && s < len(n.Content) {
			return n.Content[s]
		}
	case string:
		if i := key(n, s); i >= 0 {
			return n.Content[i+1]
		}
	}
	return nil
}

// key is the index of a key of a mapping, or -1.
func key(n *yaml.Node, name string) int {
	if n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name && n.Content[i].Kind == yaml.ScalarNode {
			return i
		}
	}
	return -1
}

func throughAnchor(n *yaml.Node, path []any) bool {
	for _, step := range path {
		if n = child(n, step); n == nil {
			return false
		}
		if shared(n) {
			return true
		}
	}
	return false
}

// rename gives the value at a path another key, in its place and with its comments.
func rename(root *yaml.Node, from, to []any, value *yaml.Node) bool {
	parent := locate(root, from[:len(from)-1])
	i := key(parent, from[len(from)-1].(string))
	parent.Content[i].Value = to[len(to)-1].(string)
	value.HeadComment, value.LineComment, value.FootComment = parent.Content[i+1].HeadComment, parent.Content[i+1].LineComment, parent.Content[i+1].FootComment
	parent.Content[i+1] = value
	return true
}

// remove what is at a path, and the mapping that it leaves empty, unless that is spec.
func remove(root *yaml.Node, path []any) bool {
	parent := locate(root, path[:len(path)-1])
	name, ok := path[len(path)-1].(string)
	i := -1
	if ok {
		i = key(parent, name)
	}
	if i < 0 {
		return false
	}
	parent.Content = slices.Delete(parent.Content, i, i+2)
	if len(parent.Content) == 0 && len(path) > 3 {
		remove(root, path[:len(path)-1])
	}
	return true
}

// put a value at a path, making the mappings on the way; a null on the way becomes one.
func put(n *yaml.Node, path []any, value *yaml.Node) bool {
	for i, step := range path {
		last := i == len(path)-1
		name, isKey := step.(string)
		next := child(n, step)
		switch {
		case next == nil && !isKey:
			return false
		case next == nil:
			if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
				*n = yaml.Node{Kind: yaml.MappingNode}
			}
			if n.Kind != yaml.MappingNode {
				return false
			}
			next = &yaml.Node{Kind: yaml.MappingNode}
			if last {
				next = value
			}
			n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, next)
		case last:
			*next = *value
		}
		n = next
	}
	return true
}
