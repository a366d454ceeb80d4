package check

import (
	"encoding/base64"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// scalar is a value that is read as a whole: what to call it, and whether a value is one. The values are those of decoded JSON.
type scalar struct {
	want string
	ok   func(any) bool
	// limits are worth telling to whom a number was refused.
	limits string
	// nullable values may be null, which says "not set".
	nullable bool
	// shown strings have a form and hold no secrets, so that a message may repeat them.
	shown bool
}

// wellKnown finds the messages of google.protobuf that JSON writes in a way of their own
// (https://protobuf.dev/programming-guides/json/).
func wellKnown(name protoreflect.FullName) (s scalar, ok bool) {
	switch name {
	case "google.protobuf.BoolValue":
		return scalar{want: "true or false", ok: isType[bool], nullable: true}, true
	case "google.protobuf.StringValue":
		return scalar{want: "a string", ok: isType[string], nullable: true}, true
	case "google.protobuf.DoubleValue", "google.protobuf.FloatValue":
		return scalar{want: "a number", ok: isNumber, nullable: true}, true
	case "google.protobuf.Int32Value":
		return integer(math.MinInt32, math.MaxInt32, true), true
	case "google.protobuf.Int64Value":
		return integer(math.MinInt64, math.MaxInt64, true), true
	case "google.protobuf.UInt32Value":
		return integer(0, math.MaxUint32, true), true
	case "google.protobuf.UInt64Value":
		return integer(0, math.MaxInt64, true), true
	case "google.protobuf.Duration":
		return scalar{want: `a duration such as "10s" or "1m30s"`, ok: isDuration, shown: true}, true
	case "google.protobuf.Timestamp":
		return scalar{want: `a time such as "2006-01-02T15:04:05Z"`, ok: isTime, shown: true}, true
	case "google.protobuf.Struct":
		return scalar{want: "an object", ok: isType[map[string]any]}, true
	case "google.protobuf.ListValue":
		return scalar{want: "a list", ok: isType[[]any]}, true
	case "google.protobuf.Value":
		return scalar{want: "anything", ok: func(any) bool { return true }, nullable: true}, true
	default:
		return scalar{}, false
	}
}

func scalarOf(kind protoreflect.Kind) scalar {
	switch kind {
	case protoreflect.BoolKind:
		return scalar{want: "true or false", ok: isType[bool]}
	case protoreflect.StringKind:
		return scalar{want: "a string", ok: isType[string]}
	case protoreflect.BytesKind:
		return scalar{want: "a base64 string", ok: isBase64}
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return scalar{want: "a number", ok: isNumber}
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return integer(math.MinInt32, math.MaxInt32, false)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return integer(0, math.MaxUint32, false)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return integer(0, math.MaxInt64, false)
	default: // the 64-bit integers: messages, groups and enums do not come here
		return integer(math.MinInt64, math.MaxInt64, false)
	}
}

// known reports a value that is not what the scalar wants.
func (f *faults) known(path string, s scalar, v any) {
	switch {
	case v == nil && s.nullable, v != nil && s.ok(v):
	case v == nil:
		f.mistype(path, s.want, v)
	default:
		want, got := s.want, typeName(v)
		if isNumber(v) && s.limits != "" {
			want += " " + s.limits
		}
		if text, ok := v.(string); ok && s.shown {
			got = quoteShort(text)
		}
		f.mistyped = append(f.mistyped, problem{
			Field: path, Message: "must be " + want + ", not " + got, Mend: requote(s, v),
		})
	}
}

// requote is the advice for a value that has the right look and the wrong quotes; empty when that is not the trouble.
func requote(s scalar, v any) string {
	switch v := v.(type) {
	case bool:
		if s.ok(fmt.Sprint(v)) {
			return fmt.Sprintf("write it in quotes: \"%v\"", v)
		}
	case int64, float64:
		if s.ok("1") { // 1.10 has become 1.1, and 1.0 has become 1: what is left is not the text to quote
			return "write it in quotes"
		}
	case string:
		if n, err := parseNumber(v); err == nil && s.ok(n) || (v == "true" || v == "false") && s.ok(true) {
			return "write it without quotes: " + v
		}
	}
	return ""
}

func parseNumber(s string) (n int64, err error) {
	_, err = fmt.Sscanf(s, "%d", &n)
	if err == nil && fmt.Sprint(n) != s {
		err = fmt.Errorf("read %q: more than a number", s)
	}
	return n, err
}

func integer(low, high int64, nullable bool) scalar {
	limits := fmt.Sprintf("from %d to %d", low, high)
	return scalar{want: "a whole number", limits: limits, nullable: nullable, ok: func(v any) bool {
		switch n := v.(type) {
		case int64:
			return low <= n && n <= high
		case float64:
			return n == math.Trunc(n) && float64(low) <= n && n <= float64(high)
		default:
			return false
		}
	}}
}

func isType[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func isNumber(v any) bool {
	return isType[int64](v) || isType[float64](v)
}

// isDuration takes what the custom resource definitions take: a string that Go reads as a duration.
func isDuration(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	_, err := time.ParseDuration(s)
	return err == nil
}

func isTime(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

func isBase64(v any) bool {
	s, ok := v.(string)
	if !ok {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil
}

// isWrapper says whether null is a value of the field.
func isWrapper(fd protoreflect.FieldDescriptor) bool {
	if fd.Message() == nil || fd.IsMap() {
		return false
	}
	s, _ := wellKnown(fd.Message().FullName())
	return s.nullable
}

// typeName is what a user would call the value.
func typeName(v any) string {
	switch v := v.(type) {
	case nil:
		return "empty"
	case bool:
		return "a boolean"
	case int64:
		return fmt.Sprintf("the number %d", v)
	case float64:
		return fmt.Sprintf("the number %v", v)
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	default:
		return fmt.Sprintf("a %T", v)
	}
}

// quoteShort keeps a message on one line that can be read.
func quoteShort(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
