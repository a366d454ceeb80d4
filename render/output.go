package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Digest is "sha256:…" over the canonical JSON (sorted keys, no white space) of all objects in their order, one a line. Two Sets
// with the same objects have the same digest, wherever the objects came from.
func (s *Set) Digest() string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	enc.SetEscapeHTML(false)
	for _, o := range s.Objects {
		// Objects came from JSON or YAML, so they can be written as JSON. A caller who put something else in gets a digest that
		// still depends on it.
		if err := enc.Encode(o.Unstructured().Object); err != nil {
			_, _ = fmt.Fprintf(h, "%q %#v\n", err, o.Unstructured().Object)
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// YAML writes all objects as a stream of YAML documents, in their order.
func (s *Set) YAML(w io.Writer) error {
	for i, o := range s.Objects {
		text, err := yaml.Marshal(o.Unstructured().Object)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.ID(), err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return fmt.Errorf("write %s: %w", o.ID(), err)
		}
	}
	return nil
}
