package schema

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fault is something that the API server would refuse.
type Fault struct {
	// Field leads to it, as in spec.http[0].route[0].weight; empty for the object as a whole.
	Field string
	// Message says what is wrong, with the value where it is short.
	Message string
	// Missing is set when the field is wanted and not there.
	Missing bool
}

func fault(content map[string]any, e *field.Error) Fault {
	f := Fault{Field: e.Field, Missing: e.Type == field.ErrorTypeRequired}
	if f.Field == "<nil>" {
		f.Field = ""
	}
	f.Message = strings.TrimPrefix(e.Detail, e.Field+" in body ")
	if choice := alternatives.FindStringSubmatch(f.Message); choice != nil {
		f.Field, f.Message = choice[1], choiceMessage
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		if f.Message == "" {
			f.Message = "is required"
		}
	case field.ErrorTypeDuplicate:
		f.Message = "is there twice"
	case field.ErrorTypeInternal:
		f.Message = "cannot be decided: " + f.Message
	}
	if f.Message == "" {
		f.Message = e.ErrorBody()
	}
	f.Message = strings.Join(strings.Fields(f.Message), " ")
	if value, ok := Value(content, f.Field); ok {
		if text, ok := shown(value); ok && !strings.Contains(f.Message, text) {
			f.Message = text + ": " + f.Message
		}
	}
	return f
}

// alternatives is how the library says that several fields are set of which one may be; it puts the field into the text.
var alternatives = regexp.MustCompile(`^"([^"]*)" must validate one and only one schema`)

const choiceMessage = "more than one of several alternatives is set, or none"

// shown is a value as a message repeats it; false for what is too long for a line.
func shown(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v), len(v) <= 60
	case bool, int64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

var step = regexp.MustCompile(`[^.\[\]]+|\[[^\]]*\]`)

// Steps takes the field of a fault apart.
func Steps(path string) []string {
	steps := step.FindAllString(path, -1)
	for i, s := range steps {
		steps[i] = strings.Trim(s, "[]")
	}
	return steps
}

// Value is what stands at the field of a fault.
func Value(content map[string]any, path string) (v any, ok bool) {
	v = content
	for _, s := range Steps(path) {
		switch in := v.(type) {
		case map[string]any:
			if v, ok = in[s]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}
