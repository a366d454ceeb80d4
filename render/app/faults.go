package app

import (
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// faultAt is a fault in a field of an object; path is from the object's root and may be nil.
func faultAt(o render.Object, path []string, hint, format string, args ...any) error {
	where := o.At(path...)
	text := o.ID().String() + ": "
	if len(path) > 0 {
		text += fieldName(path) + ": "
	}
	return &render.Error{File: where.File, Line: where.Line, Hint: hint, Err: fmt.Errorf(text+format, args...)}
}

// fieldName writes a path as users know it: spec.virtualService.routes[0].to.
func fieldName(path []string) string {
	var s strings.Builder
	for i, p := range path {
		switch {
		case p != "" && strings.Trim(p, "0123456789") == "":
			s.WriteString("[" + p + "]")
		case i > 0:
			s.WriteString("." + p)
		default:
			s.WriteString(p)
		}
	}
	return s.String()
}
