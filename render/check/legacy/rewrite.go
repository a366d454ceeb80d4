package legacy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Done is a change that was written, or is left, and the document that it is in.
type Done struct {
	// Line of the file where the document's object begins, counted from 1, and what the object is called.
	Line   int
	Object string
	Change
	// YAML is what takes the place of an object whose kind is gone; a start where the change is not exact.
	YAML string
}

// Rewrite writes every change that is exact into the text of a YAML file. Documents without one stay as they are, byte for byte; one with a change is
// written anew with its comments and its order, and its indentation may differ. Left are the changes that need a human. A second run changes nothing.
// The error says why the file could not be read; it is given back as it was.
func Rewrite(data []byte) (out []byte, done, left []Done, err error) {
	var b bytes.Buffer
	line := 1
	for _, d := range documents(data) {
		text, written, open, err := rewriteDocument(d, line)
		if err != nil {
			return data, nil, nil, fmt.Errorf("read the document in line %d: %w", line, err)
		}
		b.Write(text)
		done, left = append(done, written...), append(left, open...)
		line += bytes.Count(d, []byte("\n"))
	}
	return b.Bytes(), done, left, nil
}

// documents divides a file before each line that begins a document. Put together they are the file.
func documents(data []byte) [][]byte {
	var all [][]byte
	begin, at := 0, 0
	for line := range bytes.Lines(data) {
		if at > begin && separates(line) {
			all = append(all, data[begin:at])
			begin = at
		}
		at += len(line)
	}
	return append(all, data[begin:])
}

func separates(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(bytes.TrimSpace(rest)) == 0 || rest[0] == ' ' || rest[0] == '\t')
}

func rewriteDocument(text []byte, line int) (out []byte, done, left []Done, err error) {
	if !mayBeLegacy(text) {
		return text, nil, nil, nil
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, nil, nil, err
	}
	var content map[string]any
	if node.Kind != yaml.DocumentNode || node.Content[0].Kind != yaml.MappingNode || node.Decode(&content) != nil {
		return text, nil, nil, nil // a list, a text, or nothing: no object
	}
	name := fmt.Sprint(content["kind"], "/", find(content, "metadata", "name"))
	begin := line + node.Content[0].Line - 1
	if t := Kind(content, nil); t != nil {
		c := Change{Path: "kind", Message: "nobody reads this kind any more", Mend: "see below", Broken: true, Unknown: true, Exact: t.Exact, Why: t.Why}
		d := Done{Line: begin, Object: name, Change: c, YAML: t.YAML}
		if !t.Exact {
			return text, nil, []Done{d}, nil
		}
		return replace(text, t.YAML), []Done{d}, nil, nil
	}
	for _, c := range Fields(content) {
		d := Done{Line: begin, Object: name, Change: c}
		if c.Exact && apply(&node, c.edits) {
			done = append(done, d)
			continue
		}
		if c.Exact {
			d.Exact, d.Why = false, "an anchor shares the value with other places"
		}
		left = append(left, d)
	}
	if len(done) == 0 {
		return text, nil, left, nil
	}
	out, err = encode(&node, text)
	return out, done, left, err
}

// replace puts other documents into the place of one, with its first line and the comments above the object.
func replace(text []byte, with string) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		if !separates(line) && !bytes.HasPrefix(line, []byte("#")) {
			break
		}
		b.Write(line)
	}
	b.WriteString(with)
	return b.Bytes()
}

// mayBeLegacy spares the parsing of documents that are nothing of Istio's.
func mayBeLegacy(text []byte) bool {
	return bytes.Contains(text, []byte("istio.io/"))
}

// encode writes a document in the style of the text that it was: its first line, and lists that are indented or not.
func encode(node *yaml.Node, text []byte) ([]byte, error) {
	var b bytes.Buffer
	first, _, _ := bytes.Cut(text, []byte("\n"))
	if separates(first) {
		b.Write(first)
		b.WriteByte('\n')
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if compactLists(text) {
		e.CompactSeqIndent()
	}
	if err := errors.Join(e.Encode(node), e.Close()); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return b.Bytes(), nil
}

// compactLists says whether the text writes the items of a list below its key at the key's own column.
func compactLists(text []byte) bool {
	key, previous := 0, ""
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimLeft(line, " -")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if strings.HasSuffix(strings.TrimSpace(previous), ":") && strings.HasPrefix(strings.TrimLeft(line, " "), "- ") {
			return indent == key
		}
		key, previous = len(line)-len(trimmed), line
	}
	return true
}
