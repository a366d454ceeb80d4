package check

import (
	"strings"

	"github.com/mooring-dev/mooring/render"
)

// placeOf is where the field of a problem was written, or else the object.
func placeOf(o render.Object, p problem) render.Origin {
	path := steps(p.Field)
	if len(path) == 0 {
		return o.Origin
	}
	return o.At(path...)
}

// steps takes the field of a finding apart, as join puts it together: spec.http[0].name is spec, http, 0 and name, and
// metadata.labels[istio.io/rev] is metadata, labels and istio.io/rev.
func steps(field string) []string {
	var path []string
	for field != "" {
		if rest, ok := strings.CutPrefix(field, "["); ok {
			step, after, _ := strings.Cut(rest, "]")
			path = append(path, step)
			field = strings.TrimPrefix(after, ".")
			continue
		}
		end := strings.IndexAny(field, ".[")
		if end < 0 {
			return append(path, field)
		}
		path = append(path, field[:end])
		field = strings.TrimPrefix(field[end:], ".")
	}
	return path
}
