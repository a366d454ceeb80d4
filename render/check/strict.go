package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"istio.io/istio/pkg/config/schema/resource"
)

// faults are what strict reading found in an object, one list for each rule that reports them.
type faults struct {
	unknown, mistyped, enum, choice, null []problem
}

// hideTheRest says whether the object is too broken for validation to say anything that is not a mere consequence. A null is
// read as absent by everybody, so it hides nothing.
func (f *faults) hideTheRest() bool {
	return len(f.unknown)+len(f.mistyped)+len(f.enum)+len(f.choice) > 0
}

// place is where keys stand: a message, or a part of the object that has no descriptor.
type place struct {
	path string
	// message that may stand here; nil for the object itself and its metadata.
	message protoreflect.MessageDescriptor
	// fields and spec stand in for a message where there is none.
	fields []string
	spec   protoreflect.MessageDescriptor
	up     *place
}

// has says whether a key of this name may stand here.
func (p *place) has(key string) bool {
	if p.message != nil {
		return fieldByName(p.message, key) != nil
	}
	return slices.Contains(p.fields, key)
}

// names of the keys that may stand here.
func (p *place) names() []string {
	if p.message != nil {
		return fieldNames(p.message)
	}
	return p.fields
}

// holders are the fields whose messages have the key.
func (p *place) holders(key string) []string {
	if p.message == nil {
		if p.spec != nil && fieldByName(p.spec, key) != nil {
			return []string{"spec"}
		}
		return nil
	}
	var holders []string
	for i := range p.message.Fields().Len() {
		fd := p.message.Fields().Get(i)
		if fd.Message() == nil || fd.IsMap() {
			continue
		}
		if _, known := wellKnown(fd.Message().FullName()); !known && fieldByName(fd.Message(), key) != nil {
			holders = append(holders, fd.JSONName())
		}
	}
	return holders
}

// readStrictly compares the object with what its kind may hold. Metadata is the same for all kinds; the rest of the
// object is read only for Istio's.
func readStrictly(schema resource.Schema, root map[string]any) (f faults) {
	if meta, ok := root["metadata"].(map[string]any); ok {
		f.keys(&place{path: "metadata", fields: metadataFields()}, meta)
	}
	if schema == nil {
		return f
	}
	spec, ok := schema.MustNewInstance().(proto.Message)
	if !ok {
		return f
	}
	md := spec.ProtoReflect().Descriptor()
	top := &place{fields: []string{"apiVersion", "kind", "metadata", "spec", "status"}, spec: md}
	f.keys(top, root)
	if v, there := root["spec"]; there {
		f.message(top, "spec", md, v)
	}
	return f
}

// metadataFields are the fields of ObjectMeta (k8s.io/apimachinery/pkg/apis/meta/v1).
func metadataFields() []string {
	return []string{
		"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation", "creationTimestamp",
		"deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences", "finalizers", "managedFields",
	}
}

// keys reports the keys of m that the place does not know.
func (f *faults) keys(p *place, m map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !p.has(k) {
			f.unknown = append(f.unknown, problem{Field: join(p.path, k), Message: "unknown field", Mend: suggest(p, m, k)})
		}
	}
}

// message reads v as the message md, at path, inside up.
func (f *faults) message(up *place, path string, md protoreflect.MessageDescriptor, v any) {
	if known, ok := wellKnown(md.FullName()); ok {
		f.known(path, known, v)
		return
	}
	if v == nil {
		f.empty(path)
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		f.mistype(path, "an object", v)
		return
	}
	p := &place{path: path, message: md, up: up}
	f.keys(p, m)
	f.choices(p, md, m)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if fd := fieldByName(md, k); fd != nil {
			f.field(p, join(path, k), fd, m[k])
		}
	}
}

// choices reports where more than one field of a oneof is set. A null counts as unset, as it does for the API server.
func (f *faults) choices(p *place, md protoreflect.MessageDescriptor, m map[string]any) {
	for i := range md.Oneofs().Len() {
		od := md.Oneofs().Get(i)
		var set []string
		for j := range od.Fields().Len() {
			if name := od.Fields().Get(j).JSONName(); m[name] != nil {
				set = append(set, name)
			}
		}
		if len(set) > 1 {
			f.choice = append(f.choice, problem{
				Field:   p.path,
				Message: strings.Join(set, " and ") + " are set, of which at most one may be",
			})
		}
	}
}

func (f *faults) field(p *place, path string, fd protoreflect.FieldDescriptor, v any) {
	switch {
	case v == nil && !isWrapper(fd):
		f.empty(path)
	case fd.IsMap():
		m, ok := v.(map[string]any)
		if !ok {
			f.mistype(path, "a map", v)
			return
		}
		for _, k := range slices.Sorted(maps.Keys(m)) {
			at := path + "[" + k + "]"
			f.mapKey(at, fd.MapKey().Kind(), k)
			f.value(p, at, fd.MapValue(), m[k])
		}
	case fd.IsList():
		list, ok := v.([]any)
		if !ok {
			f.mistype(path, "a list", v)
			return
		}
		for i, item := range list {
			f.value(p, fmt.Sprintf("%s[%d]", path, i), fd, item)
		}
	default:
		f.value(p, path, fd, v)
	}
}

// mapKey reports a key that is no number where the map is keyed by one, such as a port.
func (f *faults) mapKey(path string, kind protoreflect.Kind, key string) {
	if kind == protoreflect.StringKind {
		return
	}
	if _, err := strconv.ParseUint(key, 10, 32); err != nil {
		f.mistyped = append(f.mistyped, problem{Field: path, Message: "the key must be a number"})
	}
}

// value reads one value of a field: the field's own, or an item of its list or map, where null has no meaning.
func (f *faults) value(p *place, path string, fd protoreflect.FieldDescriptor, v any) {
	switch fd.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		if v == nil && !isWrapper(fd) {
			f.mistype(path, "an object", v)
			return
		}
		f.message(p, path, fd.Message(), v)
	case protoreflect.EnumKind:
		f.enumValue(path, fd.Enum(), v)
	default:
		f.known(path, scalarOf(fd.Kind()), v)
	}
}

func (f *faults) enumValue(path string, ed protoreflect.EnumDescriptor, v any) {
	names := enumNames(ed)
	text, ok := v.(string)
	if !ok {
		f.mistype(path, "one of "+strings.Join(names, ", "), v)
		return
	}
	if slices.Contains(names, text) {
		return
	}
	mend := "write one of " + strings.Join(names, ", ")
	if near := nearest(text, names); near != "" {
		mend = fmt.Sprintf("did you mean %s? It may be one of %s", near, strings.Join(names, ", "))
	}
	f.enum = append(f.enum, problem{Field: path, Message: fmt.Sprintf("unknown value %q", text), Mend: mend})
}

func (f *faults) empty(path string) {
	f.null = append(f.null, problem{Field: path})
}

func (f *faults) mistype(path, want string, got any) {
	f.mistyped = append(f.mistyped, problem{Field: path, Message: "must be " + want + ", not " + typeName(got)})
}

func join(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return path + "[" + key + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

// fieldByName finds a field by the name that the custom resource definitions give it: the JSON name, and for the two that carry
// kubebuilder:altName in Istio's API also the name in the protobuf file.
func fieldByName(md protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	switch name {
	case "mirror_percent", "jwks_uri":
		return md.Fields().ByName(protoreflect.Name(name))
	}
	return md.Fields().ByJSONName(name)
}

// fieldNames are the names to write.
func fieldNames(md protoreflect.MessageDescriptor) []string {
	var names []string
	for i := range md.Fields().Len() {
		names = append(names, md.Fields().Get(i).JSONName())
	}
	return names
}

func enumNames(ed protoreflect.EnumDescriptor) []string {
	var names []string
	for i := range ed.Values().Len() {
		names = append(names, string(ed.Values().Get(i).Name()))
	}
	return names
}
