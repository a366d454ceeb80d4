package render

import (
	"bytes"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// facts are what a divided build needs to know of a file of resources, beside its sources. They depend on its content alone.
type facts struct {
	documents []fact // that hold objects, in order
	// whole says that the file cannot be cut: kustomize reads its documents otherwise when they are not together.
	whole bool
	// odd says that objects talk to kustomize itself, so that nothing is certain.
	odd bool
}

// fact is one document.
type fact struct {
	at, size int // where it is in the file, in bytes
	sources  int // how many objects it holds
	// texts are all scalars of an object that may refer to others by name and namespace.
	texts []string
}

// mapping says whether objects of a kind refer to others by a mapping of name and namespace, which kustomize rewrites when it changes a
// namespace: the entries of its built-in nameReference configuration that lead to a mapping.
func mapping(kind string) bool {
	switch kind {
	case "RoleBinding", "ClusterRoleBinding", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return true
	default:
		return false
	}
}

// factsOf looks at a file whose sources still have their nodes.
func factsOf(f *file, list []source, docs []document) *facts {
	all := &facts{whole: oddSeparators(f.content)}
	for _, d := range docs {
		one := fact{at: d.at, size: len(d.text)}
		for len(list) > 0 && list[0].doc.before == d.before {
			all.object(&one, list[0])
			list = list[1:]
		}
		// kustomize takes a List that is alone in its file for a wrapping, and any other through JSON.
		all.whole = all.whole || strings.HasSuffix(scalar(d.root, "kind"), "List")
		if one.sources > 0 {
			all.documents = append(all.documents, one)
		}
	}
	return all
}

func (all *facts) object(one *fact, s source) {
	one.sources++
	all.odd = all.odd || s.name == "" || strings.HasPrefix(s.apiVersion, kustomizeAPI)
	visitKeys(s.node, func(k *yaml.Node) { all.odd = all.odd || speaksToKustomize(k.Value) })
	if mapping(s.kind) {
		one.texts = texts(one.texts, s.node)
	}
}

// oddSeparators says whether a line that begins with --- has more than a comment after it. kustomize refuses that between documents, but not at the
// beginning of a file, and so not where a document has come to be the first.
func oddSeparators(text []byte) bool {
	for {
		_, after, ok := bytes.Cut(text, []byte("\n---"))
		if !ok {
			return false
		}
		line, _, _ := bytes.Cut(after, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
		text = after
	}
}

// speaksToKustomize says whether a text may be an annotation that kustomize acts on, other than the one that keeps an object local.
func speaksToKustomize(text string) bool {
	if !strings.Contains(text, "config.k") {
		return false
	}
	text = strings.NewReplacer(localConfig, "", strings.ReplaceAll(localConfig, "/", "~1"), "").Replace(text)
	return strings.Contains(text, "config.kubernetes.io") || strings.Contains(text, "config.k8s.io")
}

// texts appends all scalars at and below n. What an alias stands for is below its anchor.
func texts(all []string, n *yaml.Node) []string {
	if n.Kind == yaml.ScalarNode {
		return append(all, n.Value)
	}
	for _, c := range n.Content {
		all = texts(all, c)
	}
	return all
}
