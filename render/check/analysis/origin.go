package analysis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"istio.io/istio/pkg/cluster"
	"istio.io/istio/pkg/config/resource"

	"github.com/mooring-dev/mooring/render/check/world"
)

// origin ties an instance to its object. An analyzer asks it for the line of a field only when it has something to report, and is told the
// number of the field in a table: so the line of a message says which field is meant.
type origin struct {
	// object is nil for what is made up, such as the Pod of a template.
	object *world.Object
	// fields and their values by number, and the numbers by the paths that the analyzers use; made when first asked for.
	fields  []string
	values  []any
	numbers map[string]int
}

var _ resource.Origin = (*origin)(nil)

// originOf an instance; nil when there is none.
func originOf(r *resource.Instance) *origin {
	if r == nil {
		return nil
	}
	o, _ := r.Origin.(*origin)
	return o
}

// FriendlyName implements istio's Origin.
func (o *origin) FriendlyName() string {
	if o.object == nil {
		return ""
	}
	return o.object.ID.String()
}

// Comparator implements istio's Origin.
func (o *origin) Comparator() string {
	return o.FriendlyName()
}

// Namespace implements istio's Origin.
func (o *origin) Namespace() resource.Namespace {
	if o.object == nil {
		return ""
	}
	return resource.Namespace(o.object.ID.Namespace)
}

// Reference implements istio's Origin.
func (o *origin) Reference() resource.Reference {
	return nil
}

// ClusterName implements istio's Origin. A world is that of one cluster.
func (o *origin) ClusterName() cluster.ID {
	return ""
}

// FieldMap implements istio's Origin.
func (o *origin) FieldMap() map[string]int {
	if o.numbers == nil {
		o.fields, o.values, o.numbers = []string{""}, []any{nil}, map[string]int{}
		if o.object != nil {
			o.number("", "", o.object.Unstructured().Object)
		}
	}
	return o.numbers
}

// number the fields below a value. The analyzers write {.metadata.annotations.a.b/c} where a finding has metadata.annotations[a.b/c].
func (o *origin) number(path, field string, value any) {
	if field != "" {
		o.numbers["{"+path+"}"] = len(o.fields)
		o.fields, o.values = append(o.fields, field), append(o.values, value)
	}
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			o.number(path+"."+key, join(field, key), v[key])
		}
	case []any:
		for i, item := range v {
			step := fmt.Sprintf("[%d]", i)
			o.number(path+step, field+step, item)
		}
	}
}

// field by its number; empty for the name of the object, which stands for all of it.
func (o *origin) field(line int) string {
	if line <= 0 || line >= len(o.fields) || o.fields[line] == "metadata.name" {
		return ""
	}
	return o.fields[line]
}

// has says whether the object has a field, as findings name it.
func (o *origin) has(field string) bool {
	o.FieldMap()
	return slices.Contains(o.fields, field)
}

// join a field and a key below it, as findings name them.
func join(field, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return field + "[" + key + "]"
	case field == "":
		return key
	default:
		return field + "." + key
	}
}
