package render

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// patch finds a field in a patch that may have been for the object: with the value of the object, or with any.
func (a *asked) patch(p *patchText, path []string, same bool) (Origin, bool) {
	for _, doc := range slices.Backward(a.parse(p)) {
		var n *yaml.Node
		switch doc.root.Kind {
		case yaml.MappingNode:
			n = a.merge(p, doc.root, path, same)
		case yaml.SequenceNode:
			n = a.operation(p, doc.root, path, same)
		}
		if n == nil {
			continue
		}
		if p.only > 0 {
			return Origin{p.file, p.only}, true
		}
		return Origin{p.file, p.before + doc.line(n)}, true
	}
	return Origin{}, false
}

// parse gives the documents of a patch.
func (a *asked) parse(p *patchText) []document {
	docs, ok := a.parsed[p]
	if !ok {
		if len(p.text) <= maxAsked {
			docs, _ = parse(p.file, p.text, DefaultLimits(), false) // kustomize has read it, so there is hardly an error, and nothing to be found
		}
		a.parsed[p] = docs
	}
	return docs
}

// isFor says whether a strategic merge patch may have been for the object.
func (a *asked) isFor(p *patchText, root *yaml.Node) bool {
	if p.target != nil {
		return a.selected(p.target)
	}
	return a.meant(root)
}

// merge finds a field in a strategic merge patch.
func (a *asked) merge(p *patchText, root *yaml.Node, path []string, same bool) *yaml.Node {
	switch path[0] {
	case "apiVersion", "kind": // they say what is patched
		return nil
	case "metadata":
		if len(path) == 1 || path[1] == "name" || path[1] == "namespace" {
			return nil
		}
	}
	if !a.isFor(p, root) {
		return nil
	}
	s, ok := walk(root, path, a.values)
	if !ok || same && !has(s.value, a.values[len(path)]) {
		return nil
	}
	return s.at
}

// operation finds a field in the last operation of a JSON patch that writes it, alone or with what is around it.
func (a *asked) operation(p *patchText, root *yaml.Node, path []string, same bool) *yaml.Node {
	if p.target == nil || !a.selected(p.target) {
		return nil
	}
	for _, op := range slices.Backward(root.Content) {
		op = target(op)
		if verb := scalar(op, "op"); verb != "add" && verb != "replace" {
			continue
		}
		steps, indexed, ok := a.leads(scalar(op, "path"), path)
		if !ok || indexed && !same { // operations after it may have moved the item
			continue
		}
		value, ok := keyed(op, "value")
		if !ok {
			continue
		}
		s, ok := walk(value.value, path[steps:], a.values[steps:])
		if !ok || same && !has(s.value, a.values[len(path)]) {
			continue
		}
		if steps == len(path) {
			return value.at
		}
		return s.at
	}
	return nil
}

// leads says whether the JSON pointer of an operation (RFC 6901) leads to a field or to something around it, in how many steps, and whether
// through an item of a list.
func (a *asked) leads(pointer string, path []string) (steps int, indexed, ok bool) {
	rest, ok := strings.CutPrefix(pointer, "/")
	if !ok {
		return 0, false, pointer == ""
	}
	tokens := strings.Split(rest, "/")
	if len(tokens) > len(path) {
		return 0, false, false
	}
	for i, t := range tokens {
		t = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
		list, isList := a.values[i].([]any)
		indexed = indexed || isList
		if isList && t == "-" {
			t = strconv.Itoa(len(list) - 1)
		}
		if t != path[i] {
			return 0, false, false
		}
	}
	return len(tokens), indexed, true
}

// meant says whether a strategic merge patch without a target names the object, by a name that it has had.
func (a *asked) meant(root *yaml.Node) bool {
	w, meta := a.o.written, field(root, "metadata")
	patch := source{apiVersion: scalar(root, "apiVersion")}
	return scalar(root, "kind") == w.kind && patch.group() == w.group() &&
		a.everCalled(func(c called) bool {
			namespace := scalar(meta, "namespace")
			return c.name == scalar(meta, "name") && (namespace == "" || sameNamespace(c, called{"", namespace}))
		})
}

// selected says whether the target of a patch may select the object.
func (a *asked) selected(t *types.Selector) bool {
	w := a.o.written
	version := w.apiVersion[strings.LastIndexByte(w.apiVersion, '/')+1:]
	return whole(t.Group, w.group()) && whole(t.Version, version) && whole(t.Kind, w.kind) &&
		a.everCalled(func(c called) bool {
			return whole(t.Name, c.name) && (whole(t.Namespace, c.namespace) || c.namespace == "" && whole(t.Namespace, "default"))
		}) &&
		chosen(t.LabelSelector, a.o.GetLabels()) && chosen(t.AnnotationSelector, a.o.GetAnnotations())
}

// everCalled says whether the object had such a name at any time.
func (a *asked) everCalled(is func(called) bool) bool {
	return slices.ContainsFunc(a.o.written.calls(), is) || is(called{a.o.GetName(), a.o.GetNamespace()})
}

// whole says whether a regular expression matches all of a text, as those of a target do. An empty one matches anything.
func whole(pattern, text string) bool {
	if pattern == "" || pattern == text {
		return true
	}
	if regexp.QuoteMeta(pattern) == pattern {
		return false
	}
	r, err := regexp.Compile("^(?:" + pattern + ")$")
	return err == nil && r.MatchString(text)
}

func chosen(selector string, set map[string]string) bool {
	if selector == "" {
		return true
	}
	s, err := labels.Parse(selector)
	return err == nil && s.Matches(labels.Set(set))
}
