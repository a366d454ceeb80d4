package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// maxFaults is how many faults are told at once.
const maxFaults = 20

// faults collects errors up to a bound.
type faults struct {
	list []error
	more int
}

func (f *faults) add(err error) {
	if err == nil {
		return
	}
	if len(f.list) < maxFaults {
		f.list = append(f.list, err)
	} else {
		f.more++
	}
}

// join gives nil when there is none.
func (f *faults) join() error {
	if f.more == 0 {
		return errors.Join(f.list...)
	}
	return errors.Join(append(f.list, fmt.Errorf("and %d more", f.more))...)
}

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
