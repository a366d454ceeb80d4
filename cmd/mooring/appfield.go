package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render/app"
)

// appField is one field of an AppConfiguration's spec, or the spec itself, as the CRD describes it.
type appField struct {
	name     string
	parent   *appField
	required bool
	// schema as it is written at the field, and the one of its items or values where it is a list or a map.
	schema, value *apiextensionsv1.JSONSchemaProps
	fields        []*appField
}

// appFields reads the CRD that is part of this binary.
func appFields() (*appField, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(app.CRD, &crd); err != nil {
		return nil, fmt.Errorf("read the CRD of %s: %w", app.Kind, err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Name == app.Version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			spec := v.Schema.OpenAPIV3Schema.Properties["spec"]
			return newAppField("", nil, &spec, true), nil
		}
	}
	return nil, fmt.Errorf("read the CRD of %s: it has no version %s", app.Kind, app.Version)
}

func newAppField(name string, parent *appField, schema *apiextensionsv1.JSONSchemaProps, required bool) *appField {
	f := &appField{name: name, parent: parent, schema: schema, required: required, value: schema}
	for {
		switch {
		case f.value.Items != nil && f.value.Items.Schema != nil:
			f.value = f.value.Items.Schema
			continue
		case f.value.AdditionalProperties != nil && f.value.AdditionalProperties.Schema != nil:
			f.value = f.value.AdditionalProperties.Schema
			continue
		}
		break
	}
	for _, name := range slices.Sorted(maps.Keys(f.value.Properties)) {
		inner := f.value.Properties[name]
		f.fields = append(f.fields, newAppField(name, f, &inner, slices.Contains(f.value.Required, name)))
	}
	return f
}

// path below spec.
func (f *appField) path() string {
	if f.parent == nil || f.parent.parent == nil {
		return f.name
	}
	return f.parent.path() + "." + f.name
}

// depth is how many fields are above.
func (f *appField) depth() int {
	if f.parent == nil {
		return 0
	}
	return f.parent.depth() + 1
}

// below gives every field inside, each before its own ones.
func (f *appField) below() []*appField {
	var all []*appField
	for _, inner := range f.fields {
		all = append(all, inner)
		all = append(all, inner.below()...)
	}
	return all
}

// typeName is the type as a user of YAML knows it.
func (f *appField) typeName() string { return typeName(f.schema) }

func typeName(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "integer or string"
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typesOf(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typesOf(s.AdditionalProperties.Schema)
	case s.Type == "object" && len(s.Properties) > 0:
		return "mapping"
	case s.Type == "object":
		return "any mapping"
	case s.Type == "":
		return "anything"
	}
	return s.Type
}

// typesOf is a type in the plural.
func typesOf(s *apiextensionsv1.JSONSchemaProps) string {
	name := typeName(s)
	for _, kind := range []string{"string", "integer", "number", "boolean", "mapping"} {
		if name == kind {
			return name + "s"
		}
	}
	return name
}

// requiredText says whether the field may be left out.
func (f *appField) requiredText() string {
	switch {
	case f.required && f.parent != nil && f.parent.parent != nil:
		return "yes, in " + f.parent.path()
	case f.required:
		return "yes"
	}
	return "no"
}

// limit is one thing that holds for what is written.
type limit struct{ name, value string }

// limits are what the API server and a render hold the field to.
func (f *appField) limits() []limit {
	found := limitsOf(f.schema)
	if f.value != f.schema {
		found = append(found, limitsOf(f.value)...)
	}
	return found
}

func limitsOf(s *apiextensionsv1.JSONSchemaProps) []limit {
	var found []limit
	add := func(name, format string, args ...any) {
		found = append(found, limit{name, fmt.Sprintf(format, args...)})
	}
	if len(s.Enum) > 0 {
		add("ALLOWED", "%s", strings.Join(jsonValues(s.Enum), ", "))
	}
	if s.Default != nil {
		add("DEFAULT", "%s", jsonValues([]apiextensionsv1.JSON{*s.Default})[0])
	}
	if s.Pattern != "" {
		add("PATTERN", "%s", s.Pattern)
	}
	if text := between(s.Minimum, s.Maximum, formatNumber); text != "" {
		add("RANGE", "%s", text)
	}
	if text := between(s.MinLength, s.MaxLength, formatCount); text != "" {
		add("LENGTH", "%s", text)
	}
	if text := between(s.MinItems, s.MaxItems, formatCount); text != "" {
		add("ITEMS", "%s", text)
	}
	if text := between(s.MinProperties, s.MaxProperties, formatCount); text != "" {
		add("ENTRIES", "%s", text)
	}
	if len(s.XListMapKeys) > 0 {
		add("KEY", "%s: no two items have the same, and an overlay changes one of them by it", strings.Join(s.XListMapKeys, ", "))
	}
	for _, rule := range s.XValidations {
		if rule.Message != "" {
			add("RULE", "%s", rule.Message)
		} else {
			add("RULE", "%s", rule.Rule)
		}
	}
	return found
}

func formatNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
func formatCount(n int64) string    { return strconv.FormatInt(n, 10) }

// between writes a range of which either end may be open.
func between[T any](least, most *T, format func(T) string) string {
	switch {
	case least != nil && most != nil:
		return format(*least) + " to " + format(*most)
	case least != nil:
		return format(*least) + " or more"
	case most != nil:
		return "at most " + format(*most)
	}
	return ""
}

// jsonValues writes values as they stand in YAML; strings without quotes.
func jsonValues(values []apiextensionsv1.JSON) []string {
	var all []string
	for _, v := range values {
		var text string
		if json.Unmarshal(v.Raw, &text) != nil || text == "" {
			text = string(v.Raw)
		}
		all = append(all, text)
	}
	return all
}

// becomesSentence is how a description ends: "Becomes KIND spec.path."
var becomesSentence = regexp.MustCompile(`(?s)(?:^|\s)((?:Each |It |They |All )?[Bb]ecomes? .+?)(?:\.(?:\s|$)|$)`)

// words of the description, without line breaks but for those between paragraphs.
func (f *appField) words() string {
	text := f.schema.Description
	if text == "" {
		text = f.value.Description
	}
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}

// becomesAt is the place of the last sentence that begins with "Becomes" or "Each becomes".
func (f *appField) becomesAt() (begin, end int, ok bool) {
	words := f.words()
	for _, at := range becomesSentence.FindAllStringSubmatchIndex(words, -1) {
		begins := words[at[2]] >= 'A' && words[at[2]] <= 'Z'
		if begins {
			begin, end, ok = at[2], at[3], true
		}
	}
	return begin, end, ok
}

// becomes is what the field says itself of what it becomes; empty when it says nothing.
func (f *appField) becomes() string {
	begin, end, ok := f.becomesAt()
	if !ok {
		return ""
	}
	return f.words()[begin:end]
}

// becomesText is what the field becomes, or what that becomes which it is a part of.
func (f *appField) becomesText() string {
	for up := f; up != nil; up = up.parent {
		_, what, found := strings.Cut(up.becomes(), "ecomes ")
		if !found {
			_, what, found = strings.Cut(up.becomes(), "ecome ")
		}
		switch {
		case !found:
			continue
		case up == f && strings.HasPrefix(f.becomes(), "Each"):
			return "each " + what
		case up == f:
			return what
		}
		return "a part of what " + up.path() + " becomes: " + what
	}
	return ""
}

// description is what is said of the field, but for what it becomes.
func (f *appField) description() string {
	words := f.words()
	begin, end, ok := f.becomesAt()
	if !ok {
		return words
	}
	rest := strings.TrimPrefix(words[end:], ".")
	return strings.TrimSpace(strings.TrimSpace(words[:begin]) + " " + strings.TrimSpace(rest))
}

var sentenceEnd = regexp.MustCompile(`\.(\s|$)`)

// firstSentence is the short form of the description.
func (f *appField) firstSentence() string {
	text := strings.ReplaceAll(f.description(), "\n\n", " ")
	if end := sentenceEnd.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	return strings.TrimSuffix(text, ".")
}
