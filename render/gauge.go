package render

import (
	"errors"
	"math"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// errBomb marks a document that a library must not see.
var errBomb = errors.New("the YAML is refused")

// gauge examines the structure of a document before a library walks through it: how deep and how large it is once its aliases are
// written out (kustomize writes them out without a limit, and recurses for ever when one contains itself), keys that are there
// twice (the libraries keep one of them in silence), and values that JSON does not have.
type gauge struct {
	name   string
	doc    document
	limits Limits
	// bombs leaves everything alone but what must not reach a library.
	bombs bool
	seen  map[*yaml.Node]*extent // of nodes with an anchor; nil while they are being measured
}

// extent is what a node amounts to when its aliases are written out.
type extent struct {
	bytes  int64
	height int
}

// examine adds what the document amounts to to total, which is that of the documents before it in the same file.
func (g *gauge) examine(total *int64) error {
	e, err := g.measure(g.doc.root, 1)
	if err != nil {
		return err
	}
	if *total = add(*total, e.bytes); *total > g.limits.FileBytes {
		return g.bomb(g.doc.root)
	}
	return nil
}

func (g *gauge) bomb(n *yaml.Node) error {
	return fault(g.name, g.doc.line(n), "write it out, or use fewer aliases (*name)",
		"%w: its aliases make it larger than %s", errBomb, size(g.limits.FileBytes))
}

// measure walks through a node that is depth levels below the document.
func (g *gauge) measure(n *yaml.Node, depth int) (extent, error) {
	if n.Kind == yaml.AliasNode {
		return g.alias(n, depth)
	}
	if n.Anchor != "" {
		if g.seen == nil {
			g.seen = map[*yaml.Node]*extent{}
		}
		g.seen[n] = nil
	}
	e := extent{bytes: int64(len(n.Value)) + 1}
	if err := g.value(n); err != nil {
		return e, err
	}
	for _, c := range n.Content {
		inner, err := g.measure(c, depth+1)
		if err != nil {
			return e, err
		}
		e.bytes = add(e.bytes, inner.bytes)
		e.height = max(e.height, inner.height+1)
	}
	if err := g.tooDeep(n, depth+e.height); err != nil {
		return e, err
	}
	if e.bytes > g.limits.FileBytes {
		return e, g.bomb(n)
	}
	if n.Anchor != "" {
		g.seen[n] = &e
	}
	return e, nil
}

// alias gives the extent of what an alias stands for, which was measured before: anchors come first.
func (g *gauge) alias(n *yaml.Node, depth int) (extent, error) {
	e := g.seen[n.Alias]
	if e == nil {
		return extent{}, fault(g.name, g.doc.line(n), "", "%w: the alias *%s contains itself", errBomb, n.Value)
	}
	return *e, g.tooDeep(n, depth+e.height)
}

func (g *gauge) tooDeep(n *yaml.Node, depth int) error {
	if depth <= g.limits.Depth {
		return nil
	}
	return fault(g.name, g.doc.line(n), "", "%w: it is nested deeper than %d levels", errBomb, g.limits.Depth)
}

// value looks at one node without what is in it.
func (g *gauge) value(n *yaml.Node) error {
	switch {
	case g.bombs:
		return nil
	case n.Kind == yaml.MappingNode:
		return g.keys(n)
	case n.Kind == yaml.ScalarNode:
		return g.scalar(n)
	default:
		return nil
	}
}

// keys refuses keys that are there twice and keys that are no scalars.
func (g *gauge) keys(n *yaml.Node) error {
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			return fault(g.name, g.doc.line(k), "", "a key is not a string")
		}
		if line, ok := first[k.Value]; ok {
			return fault(g.name, g.doc.line(k), "keep one of them",
				"the key %q is there twice, first on line %d", k.Value, line)
		}
		first[k.Value] = g.doc.line(k)
	}
	return nil
}

// scalar refuses what JSON, and so the API server, does not have.
func (g *gauge) scalar(n *yaml.Node) error {
	switch tag := n.ShortTag(); tag {
	case yaml.NodeTagString, yaml.NodeTagNull, "!!timestamp", yaml.MergeTag:
		return nil
	case yaml.NodeTagInt, yaml.NodeTagBool:
		if n.Style&yaml.TaggedStyle == 0 {
			return nil
		}
	case yaml.NodeTagFloat:
		if v := strings.ToLower(strings.TrimLeft(n.Value, "+-")); v == ".nan" || v == ".inf" {
			return fault(g.name, g.doc.line(n), "quote it if it is text", "%s is a number that JSON does not have", n.Value)
		}
		if n.Style&yaml.TaggedStyle == 0 {
			return nil
		}
	default:
		return fault(g.name, g.doc.line(n), "", "the YAML tag %s is not supported", n.Tag)
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return fault(g.name, g.doc.line(n), "", "the value does not fit its YAML tag %s", n.Tag)
	}
	return nil
}

// add does not overflow.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
