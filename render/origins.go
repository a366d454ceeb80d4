package render

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	jsonyaml "sigs.k8s.io/yaml"
)

// Where an object comes from is noted by kustomize itself, in an annotation that it has while it is built and that goes through all
// transformers. A kustomization asks for it with buildMetadata, and what the root asks for holds for all bases.

// withOrigins gives the root kustomization with kustomize's origin annotations asked for, which go down to all bases. It is written as
// JSON, which is what kustomize makes of it first in any case, so nothing else changes.
func withOrigins(k *kustomization, content []byte) ([]byte, error) {
	if slices.Contains(k.BuildMetadata, types.OriginAnnotations) {
		return content, nil
	}
	j, err := jsonyaml.YAMLToJSON(content)
	if err != nil {
		return nil, k.doc.syntax(k.file, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(j, &fields); err != nil {
		return nil, k.doc.syntax(k.file, err)
	}
	for name := range fields {
		if strings.EqualFold(name, "buildMetadata") {
			delete(fields, name)
		}
	}
	want := append(slices.Clone(k.BuildMetadata), types.OriginAnnotations)
	if fields["buildMetadata"], err = json.Marshal(want); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// showing are texts in a patch, replacement or configuration that may reach for all annotations, or for all metadata, of an object: then one
// more annotation makes a difference to what comes out, or to whether it fails. So may a hash over a whole object.
var showing = regexp.MustCompile(`[/.]annotations|(?:^|[\s"'\[/])metadata(?:["'\s,\]}]|$)|(?:path|from)"?:\s*(?:""|'')|needsHashSuffix`)

// notesShow says whether the notes might show in the result. It is asked after a build, when all files are known, and gives true too
// often rather than not often enough: kustomize then builds once more, without notes.
func (v *vetter) notesShow() bool {
	if slices.Contains(v.read[v.root].BuildMetadata, types.OriginAnnotations) {
		return false // they are meant to
	}
	for name, f := range v.tree.files {
		u := v.uses[name]
		if u != 0 && u&(usePatch|usePlugin) == 0 && len(v.kustomizations[name]) == 0 {
			// An object or data. Only kustomize's own annotation, which nobody writes by hand, matters there.
			if u&useResource != 0 && strings.Contains(string(f.content), "needsHashSuffix") {
				return true
			}
			continue
		}
		if showing.Match(f.content) {
			return true
		}
	}
	return false
}

// results makes kustomize's resources our objects. noted has the same ones in the same order, with notes; without, where they come from is left to traced,
// which knows them by their names.
func (v *vetter) results(m, noted resmap.ResMap) ([]Object, error) {
	if m.Size() > v.tree.limits.Objects {
		return nil, tooMany(v.tree.limits.Objects)
	}
	notes := make([]*resource.Resource, m.Size())
	if noted != nil && noted.Size() == m.Size() {
		notes = noted.Resources()
	}
	var bad faults
	objects := make([]Object, 0, m.Size())
	for i, r := range m.Resources() {
		var at Origin
		if noted != nil {
			at = v.origin(r, notes[i])
		}
		o, err := v.result(r, at)
		bad.add(err)
		objects = append(objects, o)
	}
	return objects, bad.join()
}

// result makes one object, and takes out the note, unless the kustomization wants that to be there.
func (v *vetter) result(r *resource.Resource, at Origin) (Object, error) {
	if !slices.Contains(v.read[v.root].BuildMetadata, types.OriginAnnotations) {
		if err := r.SetOrigin(nil); err != nil {
			return Object{}, fmt.Errorf("remove the origin of %s: %w", r.CurId(), err)
		}
	}
	j, err := r.MarshalJSON()
	if err != nil {
		return Object{}, fault(at.File, at.Line, "", "%w", &told{fmt.Sprintf("%s %s cannot be written as JSON", r.GetKind(), r.GetName()), err})
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(j, &u.Object); err != nil {
		return Object{}, fault(at.File, at.Line, "", "%s %s cannot be read as JSON: %w", r.GetKind(), r.GetName(), err)
	}
	return Object{Content: ContentOf(u), Origin: at}, nil
}

// origin says where an object comes from. What a generator made comes from the kustomization that has the generator.
func (v *vetter) origin(r, note *resource.Resource) Origin {
	var from *resource.Origin
	if note != nil && note.GetKind() == r.GetKind() {
		from, _ = note.GetOrigin() // a patch may have written anything there
	}
	switch {
	case from == nil || from.Path == "" && strings.HasSuffix(from.ConfiguredBy.Kind, "Transformer"):
		// A patch replaced the annotations, so the note is gone, and kustomize takes the next transformer for the origin.
		return v.similar(r.GetKind(), r.GetName(), sortedKeys(v.sources))
	case from.ConfiguredIn != "":
		return Origin{File: v.wasRead(from.ConfiguredIn)}
	default:
		name := v.wasRead(from.Path)
		if list := v.sources[name]; len(list) == 1 {
			return list[0].at
		}
		if at := v.similar(r.GetKind(), r.GetName(), []string{name}); at.File != "" {
			return at
		}
		return Origin{File: name}
	}
}

// wasRead gives the resolved path of a file that a note names, or "" when it was not read.
func (v *vetter) wasRead(name string) string {
	real, err := v.tree.resolve(path.Join(v.root, name))
	if err != nil || v.tree.files[real] == nil {
		return ""
	}
	return real
}

// similar finds the object that became one of a kind and name among those in some files: the one of that kind whose name it has, or whose name has the most
// in common with its, as it may have got prefixes and suffixes. Nothing when that is not certain.
func (v *vetter) similar(kind, called string, names []string) Origin {
	var at Origin
	best, ties := 0, 0
	for _, name := range names {
		for _, s := range v.sources[name] {
			if s.kind != kind {
				continue
			}
			switch n := likeness(called, s.name); {
			case n > best:
				best, ties, at = n, 0, s.at
			case n == best:
				ties++
			}
		}
	}
	if best == 0 || ties > 0 && (best < math.MaxInt || len(names) > 1) {
		return Origin{}
	}
	return at // of two with the same name in one file, which have different namespaces, the first is near enough
}

// likeness says how well a name may have come from another one. Prefixes and suffixes mostly have a dash between.
func likeness(name, from string) int {
	if name == from {
		return math.MaxInt
	}
	before, after, ok := strings.Cut(name, from)
	if !ok {
		return 0
	}
	n := 1 + len(from)
	for _, whole := range []bool{before == "" || strings.HasSuffix(before, "-"), after == "" || strings.HasPrefix(after, "-")} {
		if whole {
			n += 1000
		}
	}
	return n
}
