package render

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kustomize renames objects (namePrefix, nameSuffix, namespace, the hash of what a generator makes) and lets references follow, but only those that
// Kubernetes itself has. Those of Istio's kinds, of the Gateway API's and of ours are followed here, when the build is done.
//
// kustomize could be told of them in a nameReference configuration. That knows short names only, cannot tell a targetRef to a Service from
// one to a Gateway, fails the build where a name could mean two objects, and compares each object that has references with all others. A
// repository may ship such a configuration; what it has made of a name is left as it is, for that is the name of an object then.
//
// A name means what it meant where it was written. So it is looked for first among the objects that the innermost kustomization sees, by the
// names that they have there, then in the next one, and so on. A name that an object has in the end is right already. Last, any name that an
// object ever had will do, as for kustomize. Where two objects could be meant, and where none is, the reference stays as it is written.

// followed gives the objects with references that follow what was renamed. The ones given, and what they hold, are not changed.
func followed(objects []Object) []Object {
	if !slices.ContainsFunc(objects, Object.renamed) {
		return objects
	}
	table := links()
	names := indexed(objects)
	copied := false
	for i, o := range objects {
		from := &names.all[i]
		content := any(o.Unstructured().Object)
		changed := false
		for _, l := range table[o.ID().GroupKind()] {
			next, ok := rewritten(content, l.path, func(v any) (any, bool) { return l.to(names, from, v) })
			content, changed = next, changed || ok
		}
		if !changed {
			continue
		}
		if !copied {
			objects, copied = slices.Clone(objects), true
		}
		root, _ := content.(map[string]any) // as it was before
		objects[i].Content = ContentOf(&unstructured.Unstructured{Object: root})
	}
	return objects
}

// renamed says whether an object is called otherwise than it is written.
func (o Object) renamed() bool {
	return o.written != nil && (o.written.name != o.GetName() || o.written.namespace != o.GetNamespace())
}

// rewritten gives v with f applied to all that path leads to, where "[]" is every item of a list. It shares with v what does not change.
func rewritten(v any, path []string, f func(any) (any, bool)) (any, bool) {
	if len(path) == 0 {
		return f(v)
	}
	switch v := v.(type) {
	case []any:
		if path[0] != "[]" {
			return v, false
		}
		list := v
		for i, item := range v {
			next, ok := rewritten(item, path[1:], f)
			if !ok {
				continue
			}
			if &list[0] == &v[0] {
				list = slices.Clone(v)
			}
			list[i] = next
		}
		return list, len(list) > 0 && &list[0] != &v[0]
	case map[string]any:
		item, has := v[path[0]]
		if !has {
			return v, false
		}
		next, ok := rewritten(item, path[1:], f)
		if !ok {
			return v, false
		}
		m := maps.Clone(v)
		m[path[0]] = next
		return m, true
	default:
		return v, false
	}
}

// names are all objects of a build by all the names that they have had.
type names struct {
	all    []named
	byName map[nameKey][]*named
}

type nameKey struct {
	schema.GroupKind
	name string
}

// named is an object by its names.
type named struct {
	now called
	// past are its names before now, and before are those that it had when it came to a step.
	past   []called
	before map[*passage]called
	first  *passage
}

func indexed(objects []Object) *names {
	n := &names{all: make([]named, len(objects)), byName: make(map[nameKey][]*named, len(objects))}
	for i, o := range objects {
		one := &n.all[i]
		id := o.ID()
		one.now = called{id.Name, id.Namespace}
		one.remember(o.written)
		seen := map[string]bool{}
		for _, c := range append(slices.Clip(one.past), one.now) {
			if !seen[c.name] {
				seen[c.name] = true
				key := nameKey{id.GroupKind(), c.name}
				n.byName[key] = append(n.byName[key], one)
			}
		}
	}
	return n
}

// remember goes through all the names, also those within one kustomization, which changes the namespace first.
func (n *named) remember(w *written) {
	if w == nil {
		return
	}
	n.before, n.first = map[*passage]called{}, w.first
	now := called{w.name, w.namespace}
	n.past = append(n.past, now)
	for s := w.first; s != nil; s = s.next {
		n.before[s] = now
		if s.namespace != "" {
			now.namespace = s.namespace
			n.past = append(n.past, now)
		}
		now = s.rename(w.kind, now)
		n.past = append(n.past, now)
	}
}

// meaning is what a name may mean.
type meaning struct {
	schema.GroupKind
	called
	// short is a name without a namespace: that of the object that has it. far may also mean one in another namespace.
	short, far bool
}

// find gives the object of a meaning; nil when there is none, or more than one.
func (n *names) find(from *named, m meaning) *named {
	list := n.byName[nameKey{m.GroupKind, m.name}]
	if m.short {
		near := slices.DeleteFunc(slices.Clone(list), func(to *named) bool { return !sameNamespace(to.now, from.now) })
		if len(near) > 0 || !m.far {
			list = near
		}
	}
	is := func(c called) bool { return c.name == m.name && (m.short || sameNamespace(c, m.called)) }
	for s := from.first; s != nil; s = s.next {
		if to, some := only(list, func(to *named) bool { c, ok := to.before[s]; return ok && is(c) }); some {
			return to
		}
	}
	if to, some := only(list, func(to *named) bool { return is(to.now) }); some {
		return to
	}
	to, _ := only(list, func(to *named) bool { return slices.ContainsFunc(to.past, is) })
	return to
}

// only gives the one object that suits; some says whether there is any.
func only(list []*named, suits func(*named) bool) (one *named, some bool) {
	for _, n := range list {
		switch {
		case !suits(n):
		case some:
			return nil, true
		default:
			one, some = n, true
		}
	}
	return one, some
}

// sameNamespace takes no namespace for the default one, as kustomize does.
func sameNamespace(a, b called) bool {
	or := func(s string) string {
		if s == "" {
			return "default"
		}
		return s
	}
	return or(a.namespace) == or(b.namespace)
}

// dotted takes a name of the cluster's DNS apart: name.namespace, name.namespace.svc, or name.namespace.svc and the domain of the cluster, where
// rest is all after the namespace.
func dotted(host string) (c called, rest string, ok bool) {
	name, after, ok := strings.Cut(host, ".")
	namespace, rest, more := strings.Cut(after, ".")
	if more {
		rest = "." + rest
	}
	if !ok || name == "" || namespace == "" || rest != "" && rest != ".svc" && !strings.HasPrefix(rest, ".svc.") {
		return called{}, "", false
	}
	return called{name, namespace}, rest, true
}
