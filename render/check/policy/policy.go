package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Policy is a compiled policy. It is safe for concurrent use.
type Policy struct {
	// Name of the document, and the File that it is in.
	Name, File string
	// Code and Level of its findings; Level is Error, Warning or Info.
	Code, Level string

	match       match
	conditions  []program
	variables   []program
	validations []check
}

// program is a compiled expression.
type program struct {
	// name of the variable or of the condition; where says which expression of the document it is.
	name, where string
	cel.Program
}

// check is a compiled validation.
type check struct {
	validation
	must    program
	message *program
}

// Violation is an object's fault against a policy.
type Violation struct {
	// Field is the path of the fault in the object; empty when the policy does not name one.
	Field         string
	Message, Mend string
}

// compile makes the programs of a document. The error joins all that do not compile.
func compile(d document) (*Policy, error) {
	env, err := environmentOf(d)
	if err != nil {
		return nil, err
	}
	p := &Policy{Name: d.Metadata.Name, Code: d.Spec.Code, Level: d.Spec.Level, match: d.Spec.Match}
	var errs []error
	program := func(where, name, text string, want *cel.Type) program {
		compiled, err := compileOne(env, where, text, want)
		if err != nil {
			errs = append(errs, err)
		}
		compiled.name = name
		return compiled
	}
	for i, c := range d.Spec.MatchConditions {
		p.conditions = append(p.conditions, program(fmt.Sprintf("spec.matchConditions[%d].expression", i), c.Name, c.Expression, cel.BoolType))
	}
	for i, v := range d.Spec.Variables {
		p.variables = append(p.variables, program(fmt.Sprintf("spec.variables[%d].expression", i), v.Name, v.Expression, cel.DynType))
	}
	for i, v := range d.Spec.Validations {
		where := fmt.Sprintf("spec.validations[%d].", i)
		c := check{validation: v, must: program(where+"expression", "", v.Expression, cel.BoolType)}
		if v.MessageExpression != "" {
			message := program(where+"messageExpression", "", v.MessageExpression, cel.StringType)
			c.message = &message
		}
		p.validations = append(p.validations, c)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// environmentOf has the API server's functions and the variables that are in scope. A document without variables may not name them.
func environmentOf(d document) (*cel.Env, error) {
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	options := []cel.EnvOption{
		cel.Variable("object", cel.DynType), cel.Variable("old", cel.DynType), cel.Variable("mooring", cel.MapType(cel.StringType, cel.DynType)),
	}
	if len(d.Spec.Variables) > 0 {
		options = append(options, cel.Variable("variables", cel.MapType(cel.StringType, cel.DynType)))
	}
	env, err := base.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	return env, nil
}

func compileOne(env *cel.Env, where, text string, want *cel.Type) (program, error) {
	if strings.TrimSpace(text) == "" {
		return program{}, fmt.Errorf("%s is empty", where)
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return program{}, fmt.Errorf("%s does not compile: %w", where, issues.Err())
	}
	if got := ast.OutputType(); !want.IsExactType(cel.DynType) && !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return program{}, fmt.Errorf("%s gives a %s, want a %s", where, got, want)
	}
	compiled, err := env.Program(ast, cel.CostLimit(celconfig.PerCallLimit), cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return program{}, fmt.Errorf("%s does not compile: %w", where, err)
	}
	return program{where: where, Program: compiled}, nil
}

// Matches says whether the policy's match names the object. The conditions are evaluated by [Policy.Check].
func (p *Policy) Matches(group, kind, namespace, name string) bool {
	return p.match.matches(group, kind, namespace, name)
}

// Check says what the policy has against an object. The old object is nil when none lives, mooring when there is none. The error names the
// expression that could not be evaluated.
func (p *Policy) Check(ctx context.Context, object, old, mooring map[string]any) ([]Violation, error) {
	scope := map[string]any{"object": discreet(object), "old": nil, "mooring": mooring}
	if old != nil {
		scope["old"] = discreet(old)
	}
	if mooring == nil {
		scope["mooring"] = map[string]any{}
	}
	for _, c := range p.conditions {
		yes, err := c.bool(ctx, scope)
		if err != nil || !yes {
			return nil, err
		}
	}
	if err := p.define(ctx, scope); err != nil {
		return nil, err
	}
	var found []Violation
	var errs []error
	for _, c := range p.validations {
		switch yes, err := c.must.bool(ctx, scope); {
		case err != nil:
			errs = append(errs, err)
		case !yes:
			found = append(found, Violation{Field: c.Field, Message: c.say(ctx, scope), Mend: c.Mend})
		}
	}
	return found, errors.Join(errs...)
}

// define evaluates the variables in order: each sees those before it.
func (p *Policy) define(ctx context.Context, scope map[string]any) error {
	values := map[string]any{}
	scope["variables"] = values
	for _, v := range p.variables {
		value, err := v.eval(ctx, scope)
		if err != nil {
			return err
		}
		values[v.name] = value
	}
	return nil
}

// say is the message of a validation that does not hold. An expression that gives none leaves the word to the message.
func (c *check) say(ctx context.Context, scope map[string]any) string {
	if c.message != nil {
		if v, err := c.message.eval(ctx, scope); err == nil {
			if text, ok := v.Value().(string); ok && strings.TrimSpace(text) != "" {
				return strings.Join(strings.Fields(text), " ")
			}
		}
	}
	if c.Message != "" {
		return c.Message
	}
	return "does not hold: " + strings.Join(strings.Fields(c.Expression), " ")
}
