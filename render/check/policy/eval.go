package policy

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/cel-go/common/types/ref"
)

// eval gives the value of an expression. A panic of the library is an error of the expression.
func (p program) eval(ctx context.Context, scope map[string]any) (v ref.Val, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("evaluate %s: %v", p.where, r)
		}
	}()
	v, _, err = p.ContextEval(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w; use has(…) or object.?spec.?field.orValue(…) for what may be missing", p.where, err)
	}
	return v, nil
}

func (p program) bool(ctx context.Context, scope map[string]any) (bool, error) {
	v, err := p.eval(ctx, scope)
	if err != nil {
		return false, err
	}
	yes, ok := v.Value().(bool)
	if !ok {
		return false, fmt.Errorf("evaluate %s: it gives a %s, want true or false", p.where, v.Type().TypeName())
	}
	return yes, nil
}

// placeholder stands for each value of a Secret.
const placeholder = "<redacted>"

// discreet is an object without the values of a Secret.
func discreet(object map[string]any) map[string]any {
	if object["kind"] != "Secret" || object["apiVersion"] != "v1" {
		return object
	}
	object = maps.Clone(object)
	for _, field := range []string{"data", "stringData"} {
		values, ok := object[field].(map[string]any)
		if !ok {
			continue
		}
		hidden := make(map[string]any, len(values))
		for key := range values {
			hidden[key] = placeholder
		}
		object[field] = hidden
	}
	return object
}
