package apply

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/pkg/ssa/normalize"

	"github.com/mooring-dev/mooring/render"
)

// diffObjects compares what lives with what a dry-run says would live, and tells who owns what differs. What only
// servers and controllers write is left out.
func diffObjects(id render.ID, live, want *unstructured.Unstructured) []FieldDiff {
	a, b := written(live), written(want)
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	var d differ
	d.compare("", a, b)
	who := ownersOf(live.Object, live.GetManagedFields())
	for i := range d.found {
		d.found[i] = who.of(d.found[i].Path).wrote(d.found[i])
	}
	return mask(id, d.found)
}

// written is the part of an object that people write.
func written(u *unstructured.Unstructured) map[string]any {
	c := u.DeepCopy()
	if err := normalize.DryRunUnstructured(c); err != nil {
		c = u.DeepCopy()
	}
	meta := make(map[string]any)
	for _, field := range []string{"annotations", "finalizers", "labels", "ownerReferences"} {
		if value, found, _ := unstructured.NestedFieldNoCopy(c.Object, "metadata", field); found {
			meta[field] = value
		}
	}
	delete(c.Object, "status")
	c.Object["metadata"] = meta
	return c.Object
}

type differ struct {
	found []FieldDiff
}

func (d *differ) compare(path string, live, want any) {
	if equality.Semantic.DeepEqual(live, want) {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			d.maps(path, l, w)
			return
		}
	case []any:
		if l, ok := live.([]any); ok {
			d.lists(path, l, w)
			return
		}
	}
	d.found = append(d.found, FieldDiff{Path: path, Live: live, Want: want})
}

func (d *differ) maps(path string, live, want map[string]any) {
	var names []string
	for name := range live {
		names = append(names, name)
	}
	for name := range want {
		if _, ok := live[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.compare(path+"/"+escape(name), live[name], want[name])
	}
}

// lists are compared item by item: by name where each item has one of its own, so that an insertion at the top is one
// difference; else by place. The pointer counts in the live list where the item is there, else in the wanted one.
func (d *differ) lists(path string, live, want []any) {
	at := func(i int) string { return path + "/" + strconv.Itoa(i) }
	liveNames, wantNames := names(live), names(want)
	if liveNames == nil || wantNames == nil {
		for i := range max(len(live), len(want)) {
			d.compare(at(i), item(live, i), item(want, i))
		}
		return
	}
	before := len(d.found)
	for i, name := range liveNames {
		d.compare(at(i), live[i], item(want, slices.Index(wantNames, name)))
	}
	for i, name := range wantNames {
		if !slices.Contains(liveNames, name) {
			d.compare(at(i), nil, want[i])
		}
	}
	if len(d.found) == before {
		// The same items in another order: it matters, or the server would have kept the order.
		d.found = append(d.found, FieldDiff{Path: path, Live: live, Want: want})
	}
}

func item(list []any, i int) any {
	if i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

// names of a list's items; nil when not every one has its own.
func names(list []any) []string {
	found := make([]string, 0, len(list))
	for _, it := range list {
		m, ok := it.(map[string]any)
		if !ok {
			return nil
		}
		name, ok := m["name"].(string)
		if !ok || slices.Contains(found, name) {
			return nil
		}
		found = append(found, name)
	}
	return found
}

// extraDiffs says what a take-over removes. bare is the object as it would be without anybody else; nil when that is not known.
func extraDiffs(id render.ID, live, bare *unstructured.Unstructured, found []extra) []FieldDiff {
	var diffs []FieldDiff
	for _, e := range found {
		pointer, value, ok := pointerOf(live.Object, e.path)
		if !ok {
			continue
		}
		diff := e.by.wrote(FieldDiff{Path: pointer, Live: value})
		if bare != nil {
			if _, kept, ok := pointerOf(bare.Object, e.path); ok {
				diff.Want = kept
			}
		}
		if !equality.Semantic.DeepEqual(diff.Live, diff.Want) {
			diffs = append(diffs, diff)
		}
	}
	slices.SortFunc(diffs, func(x, y FieldDiff) int { return strings.Compare(x.Path, y.Path) })
	return mask(id, diffs)
}

// What a masked value is shown as. Whether it changes may be known; what it is may not.
const (
	masked       = "***"
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// mask hides the values of Secrets, and kubectl's copy of them in an annotation.
func mask(id render.ID, diffs []FieldDiff) []FieldDiff {
	if id.GroupKind() != kindSecret {
		return diffs
	}
	for i, d := range diffs {
		if !isSecretPath(d.Path) {
			continue
		}
		live, want := masked, masked
		if d.Live != nil && d.Want != nil && !reflect.DeepEqual(d.Live, d.Want) {
			live, want = maskedBefore, maskedAfter
		}
		diffs[i].Live, diffs[i].Want = veil(d.Live, live), veil(d.Want, want)
	}
	return diffs
}

func isSecretPath(path string) bool {
	const annotations = "/metadata/annotations"
	top, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return top == "data" || top == "stringData" || path == annotations || path == annotations+"/"+escape(lastApplied)
}

// veil hides values and keeps the keys of maps.
func veil(value any, as string) any {
	switch v := value.(type) {
	case nil:
		return nil
	case map[string]any:
		veiled := make(map[string]any, len(v))
		for name := range v {
			veiled[name] = as
		}
		return veiled
	default:
		return as
	}
}
