package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Renderer renders folders. The zero value is ready to use, with the default limits. It may be used by many goroutines.
type Renderer struct {
	Limits Limits
	// Expanders are asked in this order, once the objects are built.
	Expanders []Expander
	// Cache keeps what renders gave; nil keeps nothing. With one, a Set may be the very one that an earlier render returned, and different Sets may
	// share objects.
	Cache *Cache

	// sizes are others in tests only.
	sizes sizes
}

// Render gives the objects that the folder dir of fsys stands for. dir is relative to the root of fsys; "" and "." are the root itself, and
// a leading "./" is fine. fsys is only read, also for a moment after ctx is done: kustomize cannot be interrupted between two
// files. A fault in the repository's files is an *Error, or several of them joined. Nobody may write into the Set or its objects: others
// may have them too.
func (r *Renderer) Render(ctx context.Context, fsys fs.FS, dir string) (set *Set, err error) {
	defer caught(&err, dir)
	key := setKey{dir, r.Limits.orDefault()}
	if set := r.Cache.set(ctx, fsys, key, r.Expanders); set != nil {
		return set, nil
	}
	t := newTree(fsys, key.limits, ctx.Err)
	t.cache, t.sizes = r.Cache, r.sizes.orDefault()
	set, err = r.render(ctx, t, dir)
	if err == nil {
		r.Cache.keepSet(key, r.Expanders, t, set)
	}
	return set, err
}

// render makes a Set. All that it knows of the repository, it knows from the tree.
func (r *Renderer) render(ctx context.Context, t *tree, dir string) (*Set, error) {
	root, err := t.root(dir)
	if err != nil {
		return nil, err
	}
	k, err := t.kustomizationIn(root)
	if err != nil {
		return nil, err
	}
	var objects []Object
	if k != "" {
		objects, err = kustomize(ctx, t, root)
	} else {
		objects, err = t.plain(root)
	}
	if err != nil {
		return nil, err
	}
	// Here the objects are complete, whichever way they were built, and what looks at all of them at once has its place. Others may have the same objects,
	// so it changes copies.
	if err := settle(objects, t.limits); err != nil {
		return nil, err
	}
	var warnings []Warning
	if len(r.Expanders) > 0 {
		if objects, warnings, err = r.expand(ctx, objects); err != nil {
			return nil, err
		}
		if err := settle(objects, t.limits); err != nil {
			return nil, err
		}
	}
	slices.Sort(t.hollow)
	return &Set{Objects: objects, Files: t.used(), Hollow: slices.Compact(t.hollow), Warnings: warnings}, nil
}

// root finds the folder that is to be rendered.
func (t *tree) root(dir string) (string, error) {
	hint := "spec.path is a folder, relative to the root of the repository"
	if path.IsAbs(dir) {
		return "", fault("", 0, hint, "path %s is absolute", dir)
	}
	real, err := t.resolve(dir)
	switch {
	case t.broken != nil:
		return "", t.broken
	case errors.Is(err, fs.ErrNotExist):
		return "", fault("", 0, "look at its spelling and at the branch", "path %s does not exist", dir)
	case err != nil:
		return "", fault("", 0, hint, "path %s %w", dir, err)
	}
	info, err := t.stat(real)
	switch {
	case t.broken != nil:
		return "", t.broken
	case err != nil:
		return "", fault("", 0, "look at its spelling and at the branch", "path %s does not exist", dir)
	case irregular(info):
		return "", fault("", 0, irregularHint, "path %s %w", dir, errIrregular)
	case !info.IsDir():
		return "", fault("", 0, "name the folder that it is in", "path %s is a file", dir)
	}
	return real, nil
}

// settle sorts the objects, refuses those that cannot be applied or are there twice, and holds the limits.
func settle(objects []Object, limits Limits) error {
	if len(objects) > limits.Objects {
		return tooMany(limits.Objects)
	}
	var bad faults
	bytes := int64(0)
	for _, o := range objects {
		bad.add(wellFormed(o))
		bytes += o.weight()
	}
	if bytes > limits.OutputBytes {
		return tooLarge(limits)
	}
	slices.SortStableFunc(objects, func(a, b Object) int { return compare(a.ID(), b.ID()) })
	for i := 1; i < len(objects); i++ {
		if a, b := objects[i-1], objects[i]; a.ID() == b.ID() {
			bad.add(twice(a, b))
		}
	}
	return bad.join()
}

func tooLarge(limits Limits) error {
	return fault("", 0, "split the path in two", "the objects have more than %s together", size(limits.OutputBytes))
}

func compare(a, b ID) int {
	return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// twice is the error for one object that is there twice.
func twice(a, b Object) error {
	first, second := a.Origin, b.Origin
	if first.File > second.File || first.File == second.File && first.Line > second.Line {
		first, second = second, first
	}
	hint := "remove one of them"
	if a.GetAPIVersion() != b.GetAPIVersion() {
		hint = fmt.Sprintf("remove one of them: %s and %s are versions of the same object", a.GetAPIVersion(), b.GetAPIVersion())
	}
	if first.File == "" {
		return fault(second.File, second.Line, hint, "%s is there twice", a.ID())
	}
	return fault(second.File, second.Line, hint, "%s is there twice, first in %s", a.ID(), first)
}

// wellFormed says why the API server could not know what an object is.
func wellFormed(o Object) error {
	if o.formed {
		return nil
	}
	at := func(hint, format string, args ...any) error {
		return fault(o.Origin.File, o.Origin.Line, hint, format, args...)
	}
	object := o.Unstructured().Object
	kind, _ := object["kind"].(string)
	if kind == "" {
		return at("", "the object has no kind")
	}
	version, _ := object["apiVersion"].(string)
	if version == "" {
		return at("", "the %s has no apiVersion", kind)
	}
	if _, err := schema.ParseGroupVersion(version); err != nil {
		return at("write group/version, or v1 for the core group", "the apiVersion %q of the %s is none", version, kind)
	}
	meta, _ := object["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace"} {
		switch v := meta[key].(type) {
		case string:
		case nil:
			if key == "name" {
				return at("", "the %s has no metadata.name", kind)
			}
		default:
			place := o.At("metadata", key)
			return fault(place.File, place.Line, fmt.Sprintf("quote it: %s: \"%v\"", key, v), "the metadata.%s of the %s is %s, not a string", key, kind, typeOf(v))
		}
	}
	if o.GetName() == "" {
		return at("", "the %s has no metadata.name", kind)
	}
	return nil
}

// typeOf names the type of a value as a user of YAML knows it.
func typeOf(v any) string {
	switch v.(type) {
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case nil:
		return "empty"
	default:
		return fmt.Sprintf("a %T", v)
	}
}

// weigh estimates how many bytes a value has as JSON, without writing it.
func weigh(v any) int64 {
	n := int64(2)
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			n += int64(len(k)) + 4 + weigh(e)
		}
	case []any:
		for _, e := range v {
			n += 1 + weigh(e)
		}
	case string:
		n += int64(len(v))
	default:
		n += 4
	}
	return n
}
