package render

import (
	"reflect"
	"strings"
)

// Gather moves texts into one piece of memory, and each points into it then. Short ones that stay and were made among many that go would else
// keep the memory of all from being used for anything larger.
func Gather(all []*string) {
	at, size := make(map[string]int, len(all)), 0
	var once []string
	for _, s := range all {
		if _, known := at[*s]; !known {
			at[*s], once = size, append(once, *s)
			size += len(*s)
		}
	}
	text := strings.Join(once, "")
	for _, s := range all {
		begin := at[*s]
		*s = text[begin : begin+len(*s)]
	}
}

// GatherIn moves the texts together that are in exported fields of what the pointer leads to, however deep, in slices and in maps of texts. Nobody else may look at it
// meanwhile.
func GatherIn(pointer any) {
	g := &gatherer{}
	g.visit(reflect.ValueOf(pointer).Elem())
	Gather(g.texts)
	for _, remake := range g.maps {
		remake()
	}
}

type gatherer struct {
	texts []*string
	maps  []func()
}

func (g *gatherer) visit(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			g.texts = append(g.texts, (*string)(v.Addr().UnsafePointer()))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			g.visit(v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				g.visit(field)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			g.visit(v.Index(i))
		}
	case reflect.Map:
		if m, ok := v.Interface().(map[string]string); ok && len(m) > 0 {
			g.remake(v, m)
		}
	}
}

func (g *gatherer) remake(v reflect.Value, m map[string]string) {
	keys, values := make([]string, 0, len(m)), make([]string, 0, len(m))
	for key, value := range m {
		keys, values = append(keys, key), append(values, value)
	}
	for i := range keys {
		g.texts = append(g.texts, &keys[i], &values[i])
	}
	g.maps = append(g.maps, func() {
		again := make(map[string]string, len(m))
		for i, key := range keys {
			again[key] = values[i]
		}
		v.Set(reflect.ValueOf(again))
	})
}
