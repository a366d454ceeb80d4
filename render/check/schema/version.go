package schema

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// version is one version of a kind, ready to hold objects against.
type version struct {
	structural *schema.Structural
	types      validation.SchemaValidator
	// defaults says that the schema has any.
	defaults bool
	// rules in CEL; nil when there are none.
	rules *cel.Validator
}

func compile(from *apiextensionsv1.JSONSchemaProps) (*version, error) {
	if from == nil {
		return nil, errors.New("it has no schema")
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(from, &props, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, err
	}
	types, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, err
	}
	return &version{structural, types, hasDefaults(structural), cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// check does what the API server does on create, in its order: defaults, types, lists, and rules unless the types are too wrong for them.
func (v *version) check(ctx context.Context, object map[string]any) ([]Fault, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	content := object
	if v.defaults || hasNull(object) { // without either there is nothing to write, and so nothing to copy
		content = runtime.DeepCopyJSON(object)
		defaulting.PruneNonNullableNullsWithoutDefaults(content, v.structural)
		defaulting.Default(content, v.structural)
	}
	var found field.ErrorList
	if !plain(v.structural, content) {
		found = validation.ValidateCustomResource(nil, content, v.types)
	}
	found = append(found, listtype.ValidateListSetsAndMaps(nil, v.structural, content)...)
	if v.rules != nil && !slices.ContainsFunc(found, hidesRules) {
		broken, _ := v.rules.Validate(ctx, nil, v.structural, content, nil, celconfig.RuntimeCELCostBudget)
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		found = append(found, broken...)
	}
	return faults(content, found), nil
}

func hasDefaults(s *schema.Structural) (found bool) {
	visitor := schema.Visitor{Structural: func(s *schema.Structural) bool {
		found = found || s.Default.Object != nil
		return false
	}}
	visitor.Visit(s)
	return found
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, in := range v {
			if hasNull(in) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}

// unknown are the fields that the schema does not have, and that the API server drops or refuses.
func (v *version) unknown(object map[string]any) []Fault {
	options := schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	var found []Fault
	for _, path := range pruning.PruneWithOptions(runtime.DeepCopyJSON(object), v.structural, true, options) {
		found = append(found, Fault{Field: path, Message: "the definition has no such field"})
	}
	return found
}

// hidesRules are the errors after which the API server does not ask the rules, because they rely on types and sizes.
func hidesRules(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// faults in an order that is the same each time: the library goes through maps.
func faults(content map[string]any, found field.ErrorList) []Fault {
	var all []Fault
	for _, e := range found {
		all = append(all, fault(content, e))
	}
	clearer := slices.Clone(all)
	all = slices.DeleteFunc(all, func(f Fault) bool { // where a rule says which alternatives, that is enough
		return f.Message == choiceMessage && slices.ContainsFunc(clearer, func(other Fault) bool { return other.Field == f.Field && other.Message != choiceMessage })
	})
	slices.SortFunc(all, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(all)
}
