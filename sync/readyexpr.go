package sync

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// readyExpression says by CEL what a Mooring must be beside ready. In dependsOn its name and its two variables, dep and self, are those of Flux
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#dependency-ready-expression); the functions are the API server's.
type readyExpression struct {
	where string
	// other is the variable that the other Mooring has.
	other string
	cel.Program
}

// compileReady compiles an expression about self and another Mooring.
func compileReady(where, text, other string) (*readyExpression, error) {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err == nil {
		env, err = env.Extend(cel.Variable(other, cel.DynType), cel.Variable("self", cel.DynType))
	}
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s does not compile: %w", where, issues.Err())
	}
	program, err := apply.Decides(where, env, checked)
	if err != nil {
		return nil, err
	}
	return &readyExpression{where: where, other: other, Program: program}, nil
}

// unready is why a Mooring is not what the expression asks for; empty when it is, or when nothing is asked.
func (e *readyExpression) unready(self, other *v1alpha1.Mooring) string {
	if e == nil {
		return ""
	}
	variables := map[string]any{}
	for name, m := range map[string]*v1alpha1.Mooring{"self": self, e.other: other} {
		content, err := contentOf(m)
		if err != nil {
			return err.Error()
		}
		variables[name] = content
	}
	answer, _, err := e.Eval(variables)
	if err != nil {
		return fmt.Sprintf("is not what %s asks for: %v", e.where, err)
	}
	if yes, ok := answer.Value().(bool); !ok || !yes {
		return fmt.Sprintf("is not what %s asks for", e.where)
	}
	return ""
}
