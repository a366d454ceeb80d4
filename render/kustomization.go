package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// isKustomization says whether a file has a name that kustomize takes for that of a kustomization.
func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// kustomizationIn finds the kustomization of a folder, by its resolved path. "" means that there is none.
func (t *tree) kustomizationIn(dir string) (string, error) {
	found := ""
	for _, k := range konfig.RecognizedKustomizationFileNames() {
		name := path.Join(dir, k)
		real, err := t.resolve(name)
		if err == nil {
			var info fs.FileInfo
			if info, err = t.stat(real); err == nil && info.IsDir() {
				continue
			}
		}
		switch {
		case t.broken != nil:
			return "", t.broken
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fault(name, 0, "", "the symbolic link %w", err)
		case found != "":
			return "", fault(name, 0, "keep one of them", "the folder has another kustomization, %s", path.Base(found))
		}
		found = name
	}
	return found, nil
}

// kustomization is one kustomization file, as kustomize understands it and as it is written.
type kustomization struct {
	types.Kustomization
	file  string
	doc   document
	found []found // where its references lead
	bad   error   // what is wrong with it
}

// readKustomization parses a file as kustomize does.
func (t *tree) readKustomization(f *file) (*kustomization, error) {
	docs, err := t.parse(f)
	if err != nil {
		return nil, err
	}
	k := &kustomization{file: f.path}
	switch {
	case len(docs) == 0:
		return nil, k.empty()
	case len(docs) > 1:
		return nil, fault(f.path, docs[1].line(docs[1].root), "kustomize reads the first document only", "the kustomization has more than one document")
	case docs[0].root.Kind != yaml.MappingNode:
		return nil, fault(f.path, docs[0].line(docs[0].root), "", "the kustomization is not a mapping")
	}
	k.doc = docs[0]
	if err := k.sameKeys(); err != nil {
		return nil, err
	}
	if err := k.Unmarshal(f.content); err != nil {
		return nil, k.unmarshalError(err)
	}
	if err := k.CheckEmpty(); err != nil {
		return nil, k.empty()
	}
	// kustomize looks at a copy with its defaults filled in; ours stays as it is written, so that errors name the user's fields.
	fixed := k.Kustomization
	fixed.FixKustomization()
	if errs := fixed.EnforceFields(); len(errs) > 0 {
		field := "apiVersion"
		if strings.HasPrefix(errs[0], "kind") {
			field = "kind"
		}
		return nil, fault(f.path, k.line(field, ""), "", "%s", strings.Join(errs, ", "))
	}
	return k, nil
}

// oldFields are fields that kustomize calls deprecated, and that users have.
type oldFields struct {
	bases           []string
	mergePatches    []types.PatchStrategicMerge
	json6902Patches []types.Patch
	commonLabels    map[string]string
}

func old(k *types.Kustomization) oldFields {
	return oldFields{
		bases:           k.Bases,                 //lint:ignore SA1019 kustomize reads it
		mergePatches:    k.PatchesStrategicMerge, //lint:ignore SA1019 kustomize reads it
		json6902Patches: k.PatchesJson6902,       //lint:ignore SA1019 kustomize reads it
		commonLabels:    k.CommonLabels,          //lint:ignore SA1019 kustomize reads it
	}
}

func (k *kustomization) empty() error {
	return fault(k.file, 0, "write `resources: []` if it is to stand for nothing", "the kustomization is empty")
}

// sameKeys refuses keys that differ in case only: kustomize does not care about case, and one would replace the other.
func (k *kustomization) sameKeys() error {
	keys := k.doc.root.Content
	for i := 0; i < len(keys); i += 2 {
		for j := 0; j < i; j += 2 {
			if strings.EqualFold(keys[i].Value, keys[j].Value) {
				return fault(k.file, k.doc.line(keys[i]), "keep one of them", "the keys %s and %s are the same to kustomize", keys[j].Value, keys[i].Value)
			}
		}
	}
	return nil
}

var (
	unknownField = regexp.MustCompile(`unknown field "([^"]*)"`)
	wrongType    = regexp.MustCompile(`cannot unmarshal (\w+) into Go struct field \S*?\.([\w.]+) of type (\S+)`)
)

// unmarshalError says in a user's words what the decoder says in Go's.
func (k *kustomization) unmarshalError(err error) error {
	if m := unknownField.FindStringSubmatch(err.Error()); m != nil {
		return fault(k.file, k.line(m[1], ""), "look at its spelling and indentation", "%w", &told{"a kustomization has no field " + m[1], err})
	}
	if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
		steps := strings.Split(m[2], ".")
		hint := ""
		if m[1] == "bool" || m[1] == "number" {
			hint = "quote it if it is text"
		}
		types := map[string]string{"object": "a mapping", "array": "a list", "bool": "a boolean", "number": "a number", "string": "a string"}
		return fault(k.file, k.lineOfType(steps, m[1]), hint, "%w", &told{fmt.Sprintf("%s, or something in it, cannot be %s", m[2], types[m[1]]), err})
	}
	return k.doc.syntax(k.file, errors.New(strings.TrimPrefix(err.Error(), "invalid Kustomization: ")))
}

// line finds the line of a value below a top-level field, or else that of the field, or 0.
func (k *kustomization) line(name, value string) int {
	for i := 0; i+1 < len(k.doc.root.Content); i += 2 {
		key := k.doc.root.Content[i]
		if !strings.EqualFold(key.Value, name) {
			continue
		}
		if n := findScalar(k.doc.root.Content[i+1], value); n != nil && value != "" {
			return k.doc.line(n)
		}
		return k.doc.line(key)
	}
	if n := findKey(k.doc.root, name, func(*yaml.Node) bool { return true }); n != nil {
		return k.doc.line(n)
	}
	return 0
}

// lineOfType finds the line of the first key with the last of some names that has a value of a JSON type.
func (k *kustomization) lineOfType(steps []string, typ string) int {
	is := func(n *yaml.Node) bool {
		switch tag := n.ShortTag(); typ {
		case "number":
			return tag == yaml.NodeTagInt || tag == yaml.NodeTagFloat
		case "bool":
			return tag == yaml.NodeTagBool
		default:
			return true
		}
	}
	if n := findKey(k.doc.root, steps[len(steps)-1], is); n != nil {
		return k.doc.line(n)
	}
	return k.line(steps[0], "")
}

// findScalar finds the first scalar that is value or, for the files of a generator, ends in =value.
func findScalar(n *yaml.Node, value string) *yaml.Node {
	if n.Kind == yaml.ScalarNode && (n.Value == value || strings.HasSuffix(n.Value, "="+value)) {
		return n
	}
	for _, c := range n.Content {
		if found := findScalar(c, value); found != nil {
			return found
		}
	}
	return nil
}

// findKey finds the first key of that name, at any depth, whose value suits.
func findKey(n *yaml.Node, name string, suits func(*yaml.Node) bool) *yaml.Node {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if c.Value == name && suits(n.Content[i+1]) {
				return c
			}
			continue
		}
		if found := findKey(c, name, suits); found != nil {
			return found
		}
	}
	return nil
}
