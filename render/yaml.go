package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// documents are the YAML documents of one file, or what is wrong with it.
type documents struct {
	list []document
	err  error
}

// document is one YAML document that holds something.
type document struct {
	root *yaml.Node
	text []byte
	// before is how many lines of the file come before text: add it to the line of a node.
	before int
	// at is how many bytes of the file come before text.
	at int
}

// line is where a node of the document is in the file.
func (d document) line(n *yaml.Node) int {
	return d.before + max(n.Line, 1)
}

var (
	errNotYAML   = errors.New("is not valid YAML")
	yamlPosition = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(?s)(.*)$`)
)

// parse reads all documents of a file, once. Documents that hold nothing are left out.
func (t *tree) parse(f *file) ([]document, error) {
	if f.docs == nil {
		list, err := parse(f.path, f.content, t.limits, false)
		f.docs = &documents{list: list, err: err}
	}
	return f.docs.list, f.docs.err
}

// parse takes the text of a file apart into documents and examines their structure: see gauge.
//
// The text is cut at the lines that begin with "---" before it is parsed, as kubectl and kustomize do. In YAML such a line always
// ends a document, even within a block or a quoted string.
//
// With bombs, the text may be anything: only what must not reach a library is an errBomb.
func parse(name string, text []byte, limits Limits, bombs bool) ([]document, error) {
	var docs []document
	chunks, total := 0, int64(0)
	for before, all := 0, len(text); len(text) > 0; {
		chunk, rest := cut(text)
		doc := document{text: chunk, before: before, at: all - len(text)}
		text = rest
		before += bytes.Count(chunk, []byte("\n"))
		if chunks++; chunks > limits.Objects {
			return nil, fault(name, doc.before+1, "split the path in two", "%w: it has more than %d documents", errBomb, limits.Objects)
		}
		if blank(chunk) {
			continue
		}
		if err := doc.decode(name); err != nil {
			return nil, err
		}
		if doc.root == nil {
			continue
		}
		g := gauge{name: name, doc: doc, limits: limits, bombs: bombs}
		if err := g.examine(&total); err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// cut splits text before its first line, other than the very first, that begins a new document.
func cut(text []byte) (chunk, rest []byte) {
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte("\n---"))
		if i < 0 {
			return text, nil
		}
		at += i + 1
		after := text[at+3:]
		if len(after) == 0 || strings.IndexByte(" \t\r\n", after[0]) >= 0 {
			return text[:at], text[at:]
		}
	}
}

// blank says whether there is nothing but separators, white space and comments.
func blank(chunk []byte) bool {
	for line := range bytes.Lines(chunk) {
		line = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("---")))
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// decode parses the document's text. The root stays nil when it holds nothing.
func (d *document) decode(name string) error {
	dec := yaml.NewDecoder(bytes.NewReader(d.text))
	var n yaml.Node
	if err := dec.Decode(&n); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return d.syntax(name, err)
	}
	if len(n.Content) > 0 && n.Content[0].ShortTag() != yaml.NodeTagNull {
		d.root = n.Content[0]
	}
	var more yaml.Node
	switch err := dec.Decode(&more); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return d.syntax(name, err)
	case len(more.Content) == 0 || more.Content[0].ShortTag() == yaml.NodeTagNull:
		return nil
	default:
		// kubectl and kustomize would both ignore it, which nobody means.
		return fault(name, d.line(&more), "separate documents with ---", "there is text after the end of the document (...)")
	}
}

// syntax makes a parser's error one that names the line in the file.
func (d *document) syntax(name string, err error) error {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	m := yamlPosition.FindStringSubmatch(text)
	line := d.before + 1
	if n, e := strconv.Atoi(m[1]); e == nil {
		line = d.before + n
	}
	return &Error{File: name, Line: line, Err: fmt.Errorf("%w: %w", errNotYAML, &told{strings.TrimSpace(m[2]), err})}
}
