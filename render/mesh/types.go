package mesh

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"istio.io/istio/operator/pkg/apis"
)

// mismatch is a field that is not of the API.
type mismatch struct {
	path []string
	err  error
	hint string
}

var errUnknown = errors.New("there is no such field")

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// inStruct compares the spec of an IstioOperator with Istio's type for it, field by field. Decoding it would say "unknown field" too, and not where.
func inStruct(spec map[string]any, at []string) []mismatch {
	return inType(reflect.TypeFor[apis.IstioOperatorSpec](), spec, at)
}

func inType(t reflect.Type, v any, at []string) []mismatch {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil || t.Kind() == reflect.Interface || t == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	own := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	switch value := v.(type) {
	case map[string]any:
		if !own && t.Kind() == reflect.Struct {
			return inFields(fieldsOf(t), value, at)
		}
	case []any:
		if !own && t.Kind() == reflect.Slice {
			var found []mismatch
			for n, e := range value {
				found = append(found, inType(t.Elem(), e, append(slices.Clip(at), strconv.Itoa(n)))...)
			}
			return found
		}
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, reflect.New(t).Interface())
	}
	if err != nil {
		return []mismatch{{path: at, err: plain(err, v)}}
	}
	return nil
}

func inFields(fields map[string]reflect.Type, given map[string]any, at []string) []mismatch {
	var found []mismatch
	for _, key := range sortedKeys(given) {
		path := append(slices.Clip(at), key)
		if field, ok := fields[key]; ok {
			found = append(found, inType(field, given[key], path)...)
		} else {
			found = append(found, mismatch{path, errUnknown, nearest(key, slices.Sorted(maps.Keys(fields)))})
		}
	}
	return found
}

// fieldsOf are the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			maps.Copy(fields, fieldsOf(f.Type))
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

// plain says in the words of YAML what encoding/json says in those of Go.
func plain(err error, v any) error {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	names := map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Map: "a mapping", reflect.Struct: "a mapping"}
	want, ok := names[wrong.Type.Kind()]
	if !ok {
		want = "a number (" + wrong.Type.String() + ")"
	}
	switch v.(type) {
	case map[string]any:
		return fmt.Errorf("is a mapping, not %s", want)
	case []any:
		return fmt.Errorf("is a list, not %s", want)
	case string:
		return fmt.Errorf("is the text %q, not %s", v, want)
	}
	return fmt.Errorf("is %v, not %s", v, want)
}

// inMessage finds the fields of a Protocol Buffers message, as JSON, that Istio would refuse or overlook.
func inMessage(d protoreflect.MessageDescriptor, v any, at []string) []mismatch {
	given, ok := v.(map[string]any)
	if !ok {
		if v == nil {
			return nil
		}
		return []mismatch{{path: at, err: errors.New("is no mapping")}}
	}
	if decodes(d, given) == nil {
		return nil
	}
	var found []mismatch
	for _, key := range sortedKeys(given) {
		err := decodes(d, map[string]any{key: given[key]})
		if err == nil {
			continue
		}
		path := append(slices.Clip(at), key)
		field := fieldNamed(d, key)
		if field == nil {
			found = append(found, mismatch{path, errUnknown, unknownHint(d, key)})
			continue
		}
		if inner := inField(field, given[key], path); len(inner) > 0 {
			found = append(found, inner...)
			continue
		}
		found = append(found, mismatch{path: path, err: told{err}})
	}
	return found
}

// inField looks inside of a field that does not decode. It finds nothing when the field itself is at fault.
func inField(field protoreflect.FieldDescriptor, v any, at []string) []mismatch {
	d := field.Message()
	if field.IsMap() {
		d = field.MapValue().Message()
	}
	if d == nil || d.ParentFile().Package() == "google.protobuf" || d.Name() == "IntOrString" {
		return nil
	}
	var found []mismatch
	switch v := v.(type) {
	case []any:
		for n, e := range v {
			found = append(found, inMessage(d, e, append(slices.Clip(at), strconv.Itoa(n)))...)
		}
	case map[string]any:
		if !field.IsMap() {
			return inMessage(d, v, at)
		}
		for _, key := range sortedKeys(v) {
			found = append(found, inMessage(d, v[key], append(slices.Clip(at), key))...)
		}
	}
	return found
}

// decodes says why a message cannot be read from JSON. Unknown fields are an error.
func decodes(d protoreflect.MessageDescriptor, v map[string]any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return err
	}
	message, ok := t.New().Interface().(interface {
		Reset()
		String() string
		ProtoMessage()
	})
	if !ok {
		return nil
	}
	return apis.OperatorUnmarshaler.Unmarshal(bytes.NewReader(text), message)
}

func fieldNamed(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := d.Fields().ByJSONName(name); f != nil {
		return f
	}
	return d.Fields().ByName(protoreflect.Name(name))
}

func unknownHint(d protoreflect.MessageDescriptor, key string) string {
	var names []string
	for n := range d.Fields().Len() {
		names = append(names, d.Fields().Get(n).JSONName())
	}
	slices.Sort(names)
	if hint := nearest(key, names); hint != "" {
		return hint
	}
	return "what the charts know and Istio's API does not is written in spec.unvalidatedValues"
}

// nearest gives a hint when there is a name that differs in case alone, or in its last letter.
func nearest(key string, names []string) string {
	for _, name := range names {
		if strings.EqualFold(key, name) || strings.EqualFold(key, name+"s") || strings.EqualFold(key+"s", name) {
			return "write " + name
		}
	}
	return ""
}
