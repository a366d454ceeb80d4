package render

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// plain reads a folder without a kustomization: every YAML and JSON file below it.
func (t *tree) plain(dir string) ([]Object, error) {
	w := plainWalk{tree: t}
	if err := w.folder(dir, nil); err != nil {
		return nil, err
	}
	return w.objects, w.faults.join()
}

// plainWalk collects objects and faults, so that a user sees all the broken files of a commit at once.
type plainWalk struct {
	tree    *tree
	objects []Object
	faults  faults
	count   int
}

// folder reads what is in a folder. parents are the folders above it, by their resolved paths, to notice circles.
func (w *plainWalk) folder(dir string, parents []string) error {
	if slices.Contains(parents, dir) {
		return fault(dir, 0, "", "the folder %w", errCircle)
	}
	if len(parents) > w.tree.limits.Depth {
		return fault(dir, 0, "", "folders are nested deeper than %d levels", w.tree.limits.Depth)
	}
	if k, err := w.tree.kustomizationIn(dir); err != nil {
		return err
	} else if k != "" && len(parents) > 0 {
		w.faults.add(fault(k, 0, "make it the path, or name the folders that are meant under resources of a kustomization.yaml in "+parents[0],
			"a folder of plain YAML has a kustomization below it"))
		return nil
	}
	entries, err := w.tree.list(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := w.entry(path.Join(dir, e.Name()), append(slices.Clip(parents), dir)); err != nil {
			return err
		}
	}
	return nil
}

// entry reads a file or folder.
func (w *plainWalk) entry(name string, parents []string) error {
	real, err := w.tree.resolve(name)
	if err != nil {
		if w.tree.broken != nil {
			return err
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("leads to nothing")
		}
		w.faults.add(fault(name, 0, "", "the symbolic link %w", err))
		return nil
	}
	info, err := w.tree.stat(real)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return w.folder(real, parents)
	case irregular(info):
		w.faults.add(fault(name, 0, irregularHint, "it %w", errIrregular))
		return nil
	case !isYAML(name):
		return nil
	}
	f, err := w.tree.read(real)
	if err != nil {
		return err
	}
	key := fileKey{f.path, f.hash, w.tree.limits, true}
	objects, ok := w.tree.cache.plainFile(key)
	if !ok {
		if objects, err = w.tree.plainObjects(f); err != nil {
			w.faults.add(err)
			return nil
		}
		w.tree.cache.keepPlainFile(key, objects)
	}
	if w.count += len(objects); w.count > w.tree.limits.Objects {
		return tooMany(w.tree.limits.Objects)
	}
	if len(objects) == 0 && !bytes.Contains(f.content, []byte(localConfig)) { // what is left out on purpose is something
		w.tree.hollow = append(w.tree.hollow, f.path)
	}
	w.objects = append(w.objects, objects...)
	return nil
}

// isYAML says whether a file in a folder of plain YAML is read.
func isYAML(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// plainObjects gives the objects in a file. Scalars mean what they mean to kubectl apply -f, which is YAML 1.1: yes is true.
func (t *tree) plainObjects(f *file) ([]Object, error) {
	sources, err := t.sources(f)
	if err != nil {
		return nil, err
	}
	if err := plainKeys(f.path, sources); err != nil {
		return nil, err
	}
	var objects []Object
	for len(sources) > 0 {
		doc := sources[0].doc
		values, err := decode(f.path, doc)
		if err != nil {
			return nil, err
		}
		if n := ofDocument(sources); n != len(values) {
			return nil, fault(f.path, sources[0].at.Line, "write the list out as documents", "the list holds something that is no object")
		}
		for _, v := range values {
			s := sources[0]
			sources = sources[1:]
			if strings.HasPrefix(s.apiVersion, kustomizeAPI) {
				return nil, fault(f.path, s.at.Line, "call the file kustomization.yaml, or move it out of the path",
					"the file holds a %s and is not called kustomization.yaml", s.kind)
			}
			o := Object{Content: ContentOf(&unstructured.Unstructured{Object: v}), Origin: s.at, written: &written{source: s.bare(), content: f.content}}
			if local, ok := o.GetAnnotations()[localConfig]; ok && local != "false" {
				continue
			}
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// ofDocument counts the sources that come from the same document as the first.
func ofDocument(sources []source) int {
	n := slices.IndexFunc(sources, func(s source) bool { return s.doc.before != sources[0].doc.before })
	if n < 0 {
		return len(sources)
	}
	return n
}

// decode gives the objects of one document, in the order of sources.
func decode(name string, doc document) ([]map[string]any, error) {
	j, err := yaml.YAMLToJSON(doc.text)
	if err != nil {
		return nil, doc.syntax(name, err)
	}
	var v map[string]any
	if err := utiljson.Unmarshal(j, &v); err != nil {
		return nil, doc.syntax(name, err)
	}
	return unlist(nil, v), nil
}

// unlist takes lists apart, as flatten does.
func unlist(all []map[string]any, v map[string]any) []map[string]any {
	items, has := v["items"]
	kind, _ := v["kind"].(string)
	if !isList(kind, has) {
		return append(all, v)
	}
	list, _ := items.([]any)
	for _, item := range list {
		// That every item is an object was seen by flatten.
		object, _ := item.(map[string]any)
		all = unlist(all, object)
	}
	return all
}
