package app

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/render"
)

// CRD is the CustomResourceDefinition of AppConfiguration, as YAML. It is written by controller-gen from the types of this package.
//
//go:embed crd.yaml
var CRD []byte

// rulebook is the CRD's schema, ready to hold objects against.
type rulebook struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// theRules are made from CRD once. That cannot go wrong unless the build is broken, which every test of this package would show.
var theRules = sync.OnceValues(readRules)

func readRules() (*rulebook, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(CRD, &crd); err != nil {
		return nil, fmt.Errorf("read the CRD of %s: %w", Kind, err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", Kind, err)
	}
	structural, err := structuralschema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", Kind, err)
	}
	schema, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", Kind, err)
	}
	return &rulebook{structural, schema, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// conforms holds an AppConfiguration against its CRD, as the API server would on create, and refuses fields that are not in it.
func conforms(o render.Object) error {
	rules, err := theRules()
	if err != nil {
		return err
	}
	var bad render.Faults
	object := o.Unstructured().Object
	content := runtime.DeepCopyJSON(object)
	options := structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, unknown := range pruning.PruneWithOptions(content, rules.structural, true, options) {
		bad.Add(faultAt(o, pathOf(unknown), "look at its spelling and indentation", "there is no such field"))
	}
	found := validation.ValidateCustomResource(nil, object, rules.schema)
	found = append(found, listtype.ValidateListSetsAndMaps(nil, rules.structural, object)...)
	if len(found) == 0 { // the rules rely on the types
		fromRules, _ := rules.rules.Validate(context.Background(), nil, rules.structural, object, nil, math.MaxInt64)
		found = append(found, fromRules...)
	}
	// The library goes through maps, so its order is another each time.
	slices.SortStableFunc(found, func(a, b *field.Error) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Error(), b.Error()))
	})
	for _, f := range found {
		bad.Add(faultAt(o, pathOf(f.Field), "", "%s", detail(f)))
	}
	return bad.Join()
}

// detail says what the API server's library says, without the path, which it may give twice.
func detail(f *field.Error) string {
	text := strings.TrimPrefix(f.ErrorBody(), "Invalid value: ")
	if value, rest, ok := strings.Cut(text, ": "+f.Field+" in body "); ok {
		return value + " " + rest
	}
	return text
}

var step = regexp.MustCompile(`[^.\[\]]+`)

// pathOf takes a path as the API server's libraries write it apart.
func pathOf(name string) []string {
	if name == "" || name == "<nil>" {
		return nil
	}
	return step.FindAllString(name, -1)
}
