package render

import (
	"bytes"
	"crypto/sha256"
)

// documentKey names a document by its text. What is in a file of a thousand documents, of which a commit changes one, is found in that way.
type documentKey struct {
	text   [sha256.Size]byte
	limits Limits
}

// resourceDocument is what vetting a document gave, with lines counted from its beginning.
type resourceDocument struct {
	resourceFile
	extent int64 // see gauge
}

// fromDocuments puts together what is in a file from its documents, and parses only those that are not known. false means that something is wrong, or
// may be: then the file is looked at as a whole, which finds the words for it.
func (v *vetter) fromDocuments(f *file) (resourceFile, bool) {
	limits := v.tree.limits
	if n := bytes.Count(f.content, []byte("\n---")); v.tree.cache == nil || n+1 < v.tree.sizes.documents || n > limits.Objects {
		return resourceFile{}, false
	}
	whole := resourceFile{facts: &facts{whole: oddSeparators(f.content)}}
	extent, chunks, before := int64(0), 0, 0
	for rest := f.content; len(rest) > 0; {
		at := len(f.content) - len(rest)
		var text []byte
		text, rest = cut(rest)
		if chunks++; chunks > limits.Objects {
			return resourceFile{}, false
		}
		if !blank(text) {
			d, ok := v.document(f.path, text)
			if extent = add(extent, d.extent); !ok || extent > limits.FileBytes {
				return resourceFile{}, false
			}
			whole.append(f.path, d, at, before)
		}
		before += bytes.Count(text, []byte("\n"))
	}
	return whole, len(whole.sources) <= limits.Objects
}

// append adds a document that begins somewhere in the file.
func (r *resourceFile) append(file string, d resourceDocument, at, before int) {
	for _, s := range d.sources {
		s.at = Origin{File: file, Line: s.at.Line + before}
		r.sources = append(r.sources, s)
	}
	for _, one := range d.facts.documents {
		one.at += at
		r.facts.documents = append(r.facts.documents, one)
	}
	r.facts.odd = r.facts.odd || d.facts.odd
	r.facts.whole = r.facts.whole || d.facts.whole
}

// document gives what is in a document that is in order.
func (v *vetter) document(name string, text []byte) (resourceDocument, bool) {
	key := documentKey{sha256.Sum256(text), v.tree.limits}
	if d, ok := v.tree.cache.document(key); ok {
		return d, true
	}
	one := &file{path: name, content: text}
	list, docs, err := v.tree.resource(one)
	if err != nil || textKeys(name, list) != nil {
		return resourceDocument{}, false
	}
	d := resourceDocument{resourceFile: resourceFile{list, factsOf(one, list, docs)}}
	for _, doc := range docs {
		g := gauge{name: name, doc: doc, limits: v.tree.limits}
		if g.examine(&d.extent) != nil {
			return resourceDocument{}, false
		}
	}
	for i := range list {
		list[i].node, list[i].doc = nil, document{}
	}
	d.resourceFile = d.gathered()
	v.tree.cache.keepDocument(key, d)
	return d, true
}
