package render

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// Where a field was written is looked for in what the object was written in: the patches of the kustomizations that it went through, the last one first, and
// the document that it began as. A place counts when it holds the value that the object has now; what is found is so the last place that
// wrote it, or one that wrote the same. A field that nobody wrote with its value, because a transformer changed it, is where the document has it. One
// that nothing has is where the nearest of the fields around it is.
//
// Nothing is parsed before somebody asks, and nothing that was parsed is kept: an object may be one of many thousands, and be kept for days.

// maxAsked is how large a document may be for its lines to be looked for: parsing it must not take long, as it is done for every question.
const maxAsked = 1 << 20

// where finds a field of an object: see Object.At.
func (o Object) where(path []string) Origin {
	if o.written == nil || o.Content == nil {
		return o.Origin
	}
	a := o.ask(path)
	for n := len(a.values) - 1; n > 0; n-- {
		if at, ok := a.place(path[:n], n == len(path)); ok {
			return at
		}
	}
	return o.Origin
}

// values gives the object, and the values at all the steps of a path that it has.
func values(root any, path []string) []any {
	all := []any{root}
	for _, p := range path {
		switch v := all[len(all)-1].(type) {
		case map[string]any:
			next, ok := v[p]
			if !ok {
				return all
			}
			all = append(all, next)
		case []any:
			i, err := strconv.Atoi(p)
			if err != nil || i < 0 || i >= len(v) {
				return all
			}
			all = append(all, v[i])
		default:
			return all
		}
	}
	return all
}

// asked is a question for a place. What was parsed for it is forgotten with it.
type asked struct {
	o        Object
	values   []any // along the path
	passages []*passage
	base     document // of the object
	node     *yaml.Node
	read     bool // that document
	parsed   map[*patchText][]document
}

// ask begins a question about an object of which it is known how it was written.
func (o Object) ask(path []string) *asked {
	a := &asked{o: o, values: values(o.Unstructured().Object, path), parsed: map[*patchText][]document{}}
	for p := o.written.first; p != nil; p = p.next {
		a.passages = append(a.passages, p)
	}
	return a
}

// place finds where a field that the object has was written. exactly is false when it is only around the one that was asked for: then it is rather where
// all of it was written than where something in it was patched.
func (a *asked) place(path []string, exactly bool) (Origin, bool) {
	if at, ok := a.namespace(path); ok {
		return at, true
	}
	if a.o.written.made {
		if at, ok := a.patched(path, true); ok {
			return at, true
		}
		return a.generated(path), true
	}
	first, second := a.patched, a.written
	if !exactly {
		first, second = second, first
	}
	for _, find := range []func([]string, bool) (Origin, bool){first, second} {
		if at, ok := find(path, true); ok {
			return at, true
		}
	}
	if at, ok := a.patched(path, false); ok {
		return at, true
	}
	return a.written(path, false)
}

// namespace is for the one field that a kustomization writes itself, in a line of its own.
func (a *asked) namespace(path []string) (Origin, bool) {
	if len(path) != 2 || path[0] != "metadata" || path[1] != "namespace" {
		return Origin{}, false
	}
	for _, p := range slices.Backward(a.passages) {
		if p.namespace != "" && p.namespace == a.o.GetNamespace() {
			return Origin{p.file, p.namespaceLine}, true
		}
	}
	return Origin{}, false
}

// patched finds a field in the last patch that has it: with the value of the object, or with any.
func (a *asked) patched(path []string, same bool) (Origin, bool) {
	for _, p := range slices.Backward(a.passages) {
		for i := range slices.Backward(p.patches) {
			if at, ok := a.patch(&p.patches[i], path, same); ok {
				return at, true
			}
		}
	}
	return Origin{}, false
}

// written finds a field in the document of the object.
func (a *asked) written(path []string, same bool) (Origin, bool) {
	if !a.document() {
		return Origin{}, false
	}
	s, ok := walk(a.node, path, a.values)
	if !ok || same && !has(s.value, a.values[len(path)]) {
		return Origin{}, false
	}
	return Origin{a.o.written.at.File, a.base.line(s.at)}, true
}

// document parses the document of the object.
func (a *asked) document() bool {
	if a.read {
		return a.node != nil
	}
	a.read = true
	w := a.o.written
	doc, ok := w.document()
	if !ok {
		return false
	}
	list, err := flatten(nil, w.at.File, doc, doc.root, "")
	if err != nil {
		return false
	}
	for _, s := range list {
		if s.at == w.at && s.kind == w.kind && s.name == w.name {
			a.base, a.node = doc, s.node
			break
		}
	}
	return a.node != nil
}

// document parses the document that has the place of the object.
func (w *written) document() (document, bool) {
	text, before := chunkAt(w.content, w.at.Line)
	if len(text) > maxAsked {
		return document{}, false
	}
	doc := document{text: text, before: before}
	err := doc.decode(w.at.File)
	return doc, err == nil && doc.root != nil
}

// chunkAt gives the document of a file that has a line, and how many lines come before it.
func chunkAt(content []byte, line int) (text []byte, before int) {
	for len(content) > 0 {
		chunk, rest := cut(content)
		lines := bytes.Count(chunk, []byte("\n"))
		if before+lines >= line || len(rest) == 0 {
			return chunk, before
		}
		before += lines
		content = rest
	}
	return nil, before
}

// generated finds an entry of data in the generator that makes it, or else the generator.
func (a *asked) generated(path []string) Origin {
	w := a.o.written
	doc, ok := w.document()
	if !ok || len(path) != 2 || path[0] != "data" && path[0] != "binaryData" {
		return w.at
	}
	list := field(doc.root, generatorField(w.kind))
	if list == nil {
		return w.at
	}
	for _, entry := range list.Content {
		if doc.line(entry) != w.at.Line {
			continue
		}
		if n := sourceOf(entry, path[1]); n != nil {
			return Origin{w.at.File, doc.line(n)}
		}
	}
	return w.at
}

// sourceOf finds the literal or the file of a generator that gives a key.
func sourceOf(entry *yaml.Node, key string) *yaml.Node {
	for _, name := range []string{"literals", "files"} {
		list := field(entry, name)
		if list == nil {
			continue
		}
		for _, n := range list.Content {
			before, _, has := strings.Cut(n.Value, "=")
			if before == key || name == "files" && !has && (n.Value == key || strings.HasSuffix(n.Value, "/"+key)) {
				return n
			}
		}
	}
	return nil
}

// spot is a field in YAML: where it begins, which is its key or the beginning of the item, and its value.
type spot struct{ at, value *yaml.Node }

// walk follows a path through the YAML of an object, or of a patch for it, where values are those of the object along the path.
func walk(n *yaml.Node, path []string, values []any) (spot, bool) {
	s := spot{n, target(n)}
	for i, p := range path {
		var ok bool
		switch s.value.Kind {
		case yaml.MappingNode:
			s, ok = keyed(s.value, p)
		case yaml.SequenceNode:
			s, ok = item(s.value, p, values[i], values[i+1])
		}
		if !ok {
			return spot{}, false
		}
	}
	return s, true
}

// keyed finds a key of a mapping, through merges (<<).
func keyed(n *yaml.Node, key string) (spot, bool) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && n.Content[i].ShortTag() != yaml.MergeTag {
			return spot{n.Content[i], target(n.Content[i+1])}, true
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() != yaml.MergeTag {
			continue
		}
		merged := target(n.Content[i+1])
		if merged.Kind == yaml.MappingNode {
			return keyed(merged, key)
		}
		for _, m := range merged.Content {
			if s, ok := keyed(target(m), key); ok {
				return s, true
			}
		}
	}
	return spot{}, false
}

// item finds an item of a list: the one with the same name where items have names, as lists are merged by that, or else the one at the same place, when the
// list is as long or the item has the same value.
func item(n *yaml.Node, index string, list, value any) (spot, bool) {
	at := func(i int) (spot, bool) { return spot{n.Content[i], target(n.Content[i])}, true }
	i, err := strconv.Atoi(index)
	if err != nil {
		return spot{}, false
	}
	m, _ := value.(map[string]any)
	name, named := m["name"].(string)
	if named && i < len(n.Content) && scalar(n.Content[i], "name") == name {
		return at(i)
	}
	if named {
		for i, c := range n.Content {
			if scalar(c, "name") == name {
				return at(i)
			}
		}
		return spot{}, false
	}
	if all, _ := list.([]any); i < len(n.Content) && (len(all) == len(n.Content) || has(n.Content[i], value)) {
		return at(i)
	}
	return spot{}, false
}

// has says whether YAML holds a value, or a part of it when it is a patch.
func has(n *yaml.Node, v any) bool {
	n = target(n)
	switch v := v.(type) {
	case map[string]any:
		if n.Kind != yaml.MappingNode {
			return false
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if strings.HasPrefix(key, "$") || n.Content[i].ShortTag() == yaml.MergeTag {
				continue
			}
			inner, ok := v[key]
			if !ok && target(n.Content[i+1]).ShortTag() == yaml.NodeTagNull {
				continue // the patch takes it out
			}
			if !ok || !has(n.Content[i+1], inner) {
				return false
			}
		}
		return true
	case []any:
		if n.Kind != yaml.SequenceNode {
			return false
		}
		for _, c := range n.Content {
			if field(c, "$patch") == nil && !slices.ContainsFunc(v, func(item any) bool { return has(c, item) }) {
				return false
			}
		}
		return true
	default:
		return n.Kind == yaml.ScalarNode && sameScalar(n, v)
	}
}

// sameScalar compares a scalar with a value that may have been through YAML 1.1 or 1.2, and JSON.
func sameScalar(n *yaml.Node, v any) bool {
	var decoded any
	if err := n.Decode(&decoded); err != nil {
		return false
	}
	switch v := v.(type) {
	case nil:
		return decoded == nil
	case string:
		return n.Value == v
	case bool:
		words := []string{"false", "no", "off", "n"}
		if v {
			words = []string{"true", "yes", "on", "y"}
		}
		return slices.Contains(words, strings.ToLower(n.Value))
	case int64, float64:
		return fmt.Sprint(decoded) == fmt.Sprint(v)
	default:
		return false
	}
}
