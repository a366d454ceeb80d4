package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/render"
	"github.com/mooring-dev/mooring/render/check/schema"
)

// refused finds what the custom resource definitions forbid and nobody else has said: limits, lists that are sets, and rules in CEL. Strict reading
// comes first, since what it finds would be found here once more in other words. Where Istio's validation finds the same fault, Istio says it,
// at the field that the definition names.
var refused = rule{
	Rule: Rule{
		Code: "MOOR015", Level: Error,
		Title: "the API server refuses the object",
		Mend:  "write what the definition of the kind allows",
	},
	check: func(s *subject) []problem {
		if s.schema == nil {
			return nil
		}
		s.compareRefusals()
		var ps []problem
		for i, f := range s.refusals {
			if !s.said[i] {
				ps = append(ps, problem{Field: f.Field, Message: f.Message, Mend: "see " + reference(s.schema)})
			}
		}
		return ps
	},
}

// compareRefusals asks the definition, and finds out which of its faults are those that Istio's validation found. It does so once.
func (s *subject) compareRefusals() {
	if s.compared || s.schemas == nil || s.faults.hideTheRest() || s.decodeErr != nil {
		return
	}
	s.compared = true // before the calls: should one panic, the second rule must not report the same
	// No context: what is found is remembered, so it must not be cut short, and the API server's limit on the cost of rules bounds it.
	found, err := s.schemas.Check(context.Background(), s.Unstructured())
	if err != nil {
		found = []schema.Fault{{Message: "not comparable with its definition: " + err.Error()}}
	}
	s.refusals, s.said, s.fields = found, make([]bool, len(found)), map[string]string{}
	_, invalid := s.validate()
	texts := errorTexts(invalid)
	for i, f := range found {
		for _, text := range texts {
			if s.fields[text] == "" && s.saysSame(f, text, texts) {
				s.fields[text], s.said[i] = f.Field, true
			} else if s.fields[text] == f.Field && f.Field != "" {
				s.said[i] = true // the type and the rule of one value
			}
		}
	}
}

// saysSame finds out whether Istio's error is about the fault of the definition: whether it goes away with the value. A whole message of the
// spec has too much in it to tell, unless there is nothing else to be said.
func (s *subject) saysSame(f schema.Fault, text string, texts []string) bool {
	alone := len(s.refusals) == 1 && len(texts) == 1
	steps := schema.Steps(f.Field)
	if len(steps) == 0 {
		return alone
	}
	last := steps[len(steps)-1]
	value, there := schema.Value(s.root(), f.Field)
	if f.Missing || value == "" { // nothing goes away with it, so the name of the field has to tell
		return (alone || there) && strings.Contains(strings.ToLower(text), strings.ToLower(last))
	}
	if !there || !alone && !simple(value) {
		return false
	}
	return !slices.Contains(s.textsWithout(steps), text)
}

// textsWithout are Istio's errors about the object without one value; nil when it cannot be read without it.
func (s *subject) textsWithout(steps []string) []string {
	other := *s
	root := runtime.DeepCopyJSON(s.root())
	root["spec"] = remove(root["spec"], steps[1:])
	other.Content = render.ContentOf(&unstructured.Unstructured{Object: root})
	other.validated = false
	var err error
	if other.config, err = other.decode(); err != nil {
		return nil
	}
	_, err = other.validate()
	return errorTexts(err)
}

// remove takes the value at the end of the steps out of v.
func remove(v any, steps []string) any {
	if len(steps) == 0 {
		return nil
	}
	switch in := v.(type) {
	case map[string]any:
		if len(steps) == 1 {
			delete(in, steps[0])
		} else {
			in[steps[0]] = remove(in[steps[0]], steps[1:])
		}
	case []any:
		i, err := strconv.Atoi(steps[0])
		if err != nil || i < 0 || i >= len(in) {
			return v
		}
		if len(steps) == 1 {
			return slices.Delete(in, i, i+1)
		}
		in[i] = remove(in[i], steps[1:])
	}
	return v
}

// simple values hold no others that have fields of their own.
func simple(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, in := range v {
			if _, object := in.(map[string]any); object || !simple(in) {
				return false
			}
		}
		return len(v) <= 1
	case []any:
		return !slices.ContainsFunc(v, func(in any) bool {
			_, object := in.(map[string]any)
			return object
		})
	}
	return true
}

// ownDefinitions are those that the set brings along, of kinds that are not Istio's: Istio's are held against those of the release.
func (c *Checker) ownDefinitions(set *render.Set) (own map[kinds.GroupKind]*schema.Definition, found []Finding) {
	own = map[kinds.GroupKind]*schema.Definition{}
	for _, o := range set.Objects {
		if o.Content == nil || o.GroupVersionKind().GroupKind() != (kinds.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		if c.kinds.hasGroup(text(o.Unstructured(), "spec", "group")) {
			continue
		}
		made := c.definitions.Of(o.Unstructured(), func() definition { return define(o.Unstructured()) })
		if made.err != nil {
			found = append(found, refused.finding(o.ID(), o.Origin, problem{Field: "spec", Message: made.err.Error()}))
			continue
		}
		own[made.Kind] = made.Definition
	}
	return own, found
}

// definition is what became of a CustomResourceDefinition.
type definition struct {
	*schema.Definition
	err error
}

func define(crd *unstructured.Unstructured) (d definition) {
	defer func() {
		if p := recover(); p != nil {
			d.err = fmt.Errorf("the definition cannot be read: %v", p)
		}
	}()
	d.Definition, d.err = schema.Define(crd)
	return d
}

// checkOwn holds the custom resources of a set against the definitions in the same set.
func (c *Checker) checkOwn(ctx context.Context, set *render.Set) ([]Finding, error) {
	own, found := c.ownDefinitions(set)
	if len(own) == 0 {
		return found, nil
	}
	for _, o := range set.Objects {
		if o.Content == nil || own[o.GroupVersionKind().GroupKind()] == nil {
			continue
		}
		faults, err := own[o.GroupVersionKind().GroupKind()].Check(ctx, o.Unstructured())
		if err != nil {
			return nil, err
		}
		for _, f := range faults {
			p := problem{Field: f.Field, Message: f.Message}
			finding := refused.finding(o.ID(), placeOf(o, p), p)
			finding.From = o.From
			found = append(found, finding)
		}
	}
	return found, nil
}
