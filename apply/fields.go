package apply

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// fieldsOf an entry. An entry that cannot be read owns nothing that we could name.
func fieldsOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	set := fieldpath.NewSet()
	if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return fieldpath.NewSet()
	}
	return set
}

// key is the path element of a list's item that is found by one of its fields.
func key(name, val string) fieldpath.PathElement {
	return fieldpath.KeyElement(value.Field{Name: name, Value: value.NewValueInterface(val)})
}

// ownedByOther is true when a controller owns the field: neither we nor a person with kubectl.
func ownedByOther(entries []metav1.ManagedFieldsEntry, parts ...any) bool {
	path, err := fieldpath.MakePath(parts...)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if entry.Manager != FieldManager && !isTakenOver(entry) && fieldsOf(entry).Has(path) {
			return true
		}
	}
	return false
}

// ownedByUs is true when we applied the field and nobody changed it since.
func ownedByUs(meta metav1.Object, parts ...any) bool {
	if meta == nil {
		return false
	}
	path, err := fieldpath.MakePath(parts...)
	entry := appliedEntry(meta)
	return err == nil && entry != nil && fieldsOf(*entry).Has(path)
}

// pointerOf a field path in an object: a JSON pointer, and the value there. Lists that are keyed in the path are indexed in the pointer.
func pointerOf(object map[string]any, path fieldpath.Path) (string, any, bool) {
	var pointer strings.Builder
	var at any = object
	for _, element := range path {
		next, token, ok := step(at, element)
		if !ok {
			return "", nil, false
		}
		pointer.WriteString("/" + escape(token))
		at = next
	}
	return pointer.String(), at, true
}

func step(at any, element fieldpath.PathElement) (next any, token string, ok bool) {
	if element.FieldName != nil {
		m, isMap := at.(map[string]any)
		if !isMap {
			return nil, "", false
		}
		next, ok = m[*element.FieldName]
		return next, *element.FieldName, ok
	}
	list, isList := at.([]any)
	if !isList {
		return nil, "", false
	}
	for i, item := range list {
		if matches(i, item, element) {
			return item, strconv.Itoa(i), true
		}
	}
	return nil, "", false
}

func matches(i int, item any, element fieldpath.PathElement) bool {
	switch {
	case element.Index != nil:
		return *element.Index == i
	case element.Value != nil:
		return value.Equals(value.NewValueInterface(item), *element.Value)
	case element.Key != nil:
		fields, ok := item.(map[string]any)
		if !ok {
			return false
		}
		for _, f := range *element.Key {
			have, ok := fields[f.Name]
			if !ok || !value.Equals(value.NewValueInterface(have), f.Value) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func escape(token string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
}

// writer is who wrote a field, as managedFields say.
type writer struct {
	manager   string
	operation metav1.ManagedFieldsOperationType
	at        time.Time
}

func writerOf(entry metav1.ManagedFieldsEntry) writer {
	w := writer{manager: entry.Manager, operation: entry.Operation}
	if entry.Time != nil {
		w.at = entry.Time.Time
	}
	return w
}

// before puts who is more likely to have made the change first: others than us, then who wrote last.
func (w writer) before(other writer) bool {
	ours, theirs := w.manager == FieldManager, other.manager == FieldManager
	switch {
	case ours != theirs:
		return theirs
	case !w.at.Equal(other.at):
		return w.at.After(other.at)
	default:
		return w.manager < other.manager
	}
}

// wrote names the writer in a difference.
func (w writer) wrote(d FieldDiff) FieldDiff {
	d.Manager, d.Operation, d.ChangedAt = w.manager, string(w.operation), w.at
	return d
}

// owners says who owns the live value at a JSON pointer.
type owners map[string]writer

// ownersOf a live object. A field that others own too is theirs and not ours: it is they who changed it.
func ownersOf(object map[string]any, entries []metav1.ManagedFieldsEntry) owners {
	found := make(owners)
	for _, entry := range entries {
		who := writerOf(entry)
		fieldsOf(entry).Leaves().Iterate(func(p fieldpath.Path) {
			pointer, _, ok := pointerOf(object, p)
			if known, owned := found[pointer]; ok && (!owned || who.before(known)) {
				found[pointer] = who
			}
		})
	}
	return found
}

// of a pointer: who owns it, or what it lies in, or, of what it holds, anything that is not ours. What was removed leaves no owner: then the zero writer.
func (o owners) of(pointer string) writer {
	for at := pointer; at != ""; at = at[:strings.LastIndexByte(at, '/')] {
		if who, owned := o[at]; owned {
			return who
		}
	}
	var within writer
	for at, who := range o {
		if strings.HasPrefix(at, pointer+"/") && (within == writer{} || who.before(within)) {
			within = who
		}
	}
	return within
}

// rawFields of a set, for a managedFields entry.
func rawFields(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, err
	}
	return metav1.NewFieldsV1(string(raw)), nil
}

// sameMetadata compares what an apply can change of an object's metadata, and who owns what.
func sameMetadata(x, y metav1.Object) bool {
	return maps.Equal(x.GetLabels(), y.GetLabels()) && maps.Equal(x.GetAnnotations(), y.GetAnnotations()) &&
		slices.Equal(x.GetFinalizers(), y.GetFinalizers()) &&
		equality.Semantic.DeepEqual(x.GetOwnerReferences(), y.GetOwnerReferences()) &&
		sameOwners(x.GetManagedFields(), y.GetManagedFields())
}

// sameOwners compares entries by what they own: times are whole seconds, and the order is anybody's.
func sameOwners(x, y []metav1.ManagedFieldsEntry) bool {
	if len(x) != len(y) {
		return false
	}
	for _, a := range x {
		same := func(b metav1.ManagedFieldsEntry) bool {
			return a.Manager == b.Manager && a.Operation == b.Operation && a.Subresource == b.Subresource && a.APIVersion == b.APIVersion &&
				fieldsOf(a).Equals(fieldsOf(b))
		}
		if !slices.ContainsFunc(y, same) {
			return false
		}
	}
	return true
}
