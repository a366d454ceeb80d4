package schema

import (
	"math"
	"slices"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// plain says that the library finds nothing wrong with v: of most objects that can be told in a fraction of the time, without a tree of validators for each value.
// False says nothing: the library has to be asked. So whatever is rare, such as a null, a pattern or a format, gives false.
func plain(s *schema.Structural, v any) bool {
	if s.XEmbeddedResource {
		return false
	}
	rules := s.ValueValidation
	if rules == nil {
		rules = &schema.ValueValidation{}
	}
	if s.XIntOrString {
		return plainIntOrString(rules, v)
	}
	if !plainJunctors(rules, v) {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		return s.Type == "object" && plainObject(s, rules, v)
	case []any:
		return s.Type == "array" && plainList(s, rules, v)
	case string:
		return s.Type == "string" && plainString(rules, v)
	case bool:
		return s.Type == "boolean" && len(rules.Enum) == 0 && rules.Format == ""
	case int64:
		return (s.Type == "integer" || s.Type == "number") && plainNumber(rules, float64(v))
	case float64:
		return s.Type == "number" && plainNumber(rules, v)
	}
	return false
}

func plainObject(s *schema.Structural, rules *schema.ValueValidation, m map[string]any) bool {
	if len(rules.Enum) > 0 || rules.Format != "" || !between(len(m), rules.MinProperties, rules.MaxProperties) {
		return false
	}
	for _, name := range rules.Required {
		if _, ok := m[name]; !ok {
			return false
		}
	}
	for name, v := range m {
		if property, ok := s.Properties[name]; ok {
			if !plain(&property, v) {
				return false
			}
			continue
		}
		switch more := s.AdditionalProperties; {
		case more == nil:
		case more.Structural != nil:
			if !plain(more.Structural, v) {
				return false
			}
		case !more.Bool:
			return false
		}
	}
	return true
}

func plainList(s *schema.Structural, rules *schema.ValueValidation, list []any) bool {
	if len(rules.Enum) > 0 || rules.Format != "" || rules.UniqueItems || !between(len(list), rules.MinItems, rules.MaxItems) {
		return false
	}
	if s.Items == nil {
		return true
	}
	return !slices.ContainsFunc(list, func(v any) bool { return !plain(s.Items, v) })
}

func plainString(rules *schema.ValueValidation, text string) bool {
	if rules.Format != "" || rules.Pattern != "" {
		return false
	}
	if len(rules.Enum) > 0 && !slices.ContainsFunc(rules.Enum, func(j schema.JSON) bool { return j.Object == text }) {
		return false
	}
	return rules.MinLength == nil && rules.MaxLength == nil || between(utf8.RuneCountInString(text), rules.MinLength, rules.MaxLength)
}

func plainNumber(rules *schema.ValueValidation, n float64) bool {
	if len(rules.Enum) > 0 || rules.MultipleOf != nil {
		return false
	}
	most := float64(1 << 53) // beyond, whole numbers are no longer told apart
	switch rules.Format {
	case "", "double", "int64":
	case "int32":
		most = math.MaxInt32
	default:
		return false
	}
	if math.IsNaN(n) || math.Abs(n) > most {
		return false
	}
	low, high := rules.Minimum, rules.Maximum
	if low != nil && (n < *low || rules.ExclusiveMinimum && n == *low) {
		return false
	}
	return high == nil || n < *high || n == *high && !rules.ExclusiveMaximum
}

// plainIntOrString takes the one form that generators write, anyOf an integer and a string, without more.
func plainIntOrString(rules *schema.ValueValidation, v any) bool {
	bare := *rules
	bare.AnyOf = nil
	if !empty(&bare) {
		return false
	}
	switch v.(type) {
	case int64, string:
		return true
	}
	return false
}

// empty says that the rules forbid nothing.
func empty(r *schema.ValueValidation) bool {
	return r.Format == "" && r.Maximum == nil && r.Minimum == nil && r.MaxLength == nil && r.MinLength == nil && r.Pattern == "" &&
		r.MaxItems == nil && r.MinItems == nil && !r.UniqueItems && r.MultipleOf == nil && len(r.Enum) == 0 && r.MaxProperties == nil &&
		r.MinProperties == nil && len(r.Required) == 0 && len(r.AllOf) == 0 && len(r.OneOf) == 0 && len(r.AnyOf) == 0 && r.Not == nil
}

func between(n int, low, high *int64) bool {
	return (low == nil || int64(n) >= *low) && (high == nil || int64(n) <= *high)
}

// plainJunctors says that allOf, anyOf, oneOf and not are kept for certain.
func plainJunctors(r *schema.ValueValidation, v any) bool {
	if len(r.AllOf) == 0 && len(r.AnyOf) == 0 && len(r.OneOf) == 0 && r.Not == nil {
		return true
	}
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	held, sure := junctors(r, m)
	return held && sure
}

// junctors says whether an object keeps the rules about its alternatives, and whether that is sure.
func junctors(r *schema.ValueValidation, m map[string]any) (held, sure bool) {
	count := func(all []schema.NestedValueValidation) (n int, sure bool) {
		for i := range all {
			held, sure := alternative(&all[i], m)
			if !sure {
				return 0, false
			}
			if held {
				n++
			}
		}
		return n, true
	}
	every, sureEvery := count(r.AllOf)
	some, sureSome := count(r.AnyOf)
	one, sureOne := count(r.OneOf)
	forbidden, sureNot := false, true
	if r.Not != nil {
		forbidden, sureNot = alternative(r.Not, m)
	}
	held = every == len(r.AllOf) && (some > 0 || len(r.AnyOf) == 0) && (one == 1 || len(r.OneOf) == 0) && !forbidden
	return held, sureEvery && sureSome && sureOne && sureNot
}

// alternative understands what generators write of fields that exclude each other: which are required, and junctors of that.
func alternative(n *schema.NestedValueValidation, m map[string]any) (held, sure bool) {
	rest := n.ValueValidation
	rest.Required, rest.AllOf, rest.OneOf, rest.AnyOf, rest.Not = nil, nil, nil, nil, nil
	if !empty(&rest) || n.Items != nil || n.AdditionalProperties != nil || n.ForbiddenGenerics.Type != "" {
		return false, false
	}
	for _, property := range n.Properties {
		if !empty(&property.ValueValidation) || property.Items != nil || property.AdditionalProperties != nil || len(property.Properties) > 0 || property.ForbiddenGenerics.Type != "" {
			return false, false
		}
	}
	held, sure = junctors(&n.ValueValidation, m)
	for _, name := range n.Required {
		if _, ok := m[name]; !ok {
			held = false
		}
	}
	return held, sure
}
