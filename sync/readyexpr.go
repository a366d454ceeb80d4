package sync

import (
	"fmt"

	"github.com/google/cel-go/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// readyExpression says by CEL what a Mooring must be beside ready. Its name and its two variables, dep and self, are those of dependsOn in Flux
// (https://fluxcd.io/flux/components/kustomize/kustomizations/#dependency-ready-expression); the functions are the API server's.
type readyExpression struct {
	where string
	cel.Program
}

func compileReady(where, text string) (*readyExpression, error) {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err == nil {
		env, err = env.Extend(cel.Variable("dep", cel.DynType), cel.Variable("self", cel.DynType))
	}
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	checked, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s does not compile: %w", where, issues.Err())
	}
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%s gives a %s, want true or false", where, got)
	}
	program, err := env.Program(checked, cel.CostLimit(celconfig.PerCallLimit))
	if err != nil {
		return nil, fmt.Errorf("%s does not compile: %w", where, err)
	}
	return &readyExpression{where: where, Program: program}, nil
}

// unready is why a Mooring is not what the expression asks for; empty when it is, or when nothing is asked.
func (e *readyExpression) unready(self, dep *v1alpha1.Mooring) string {
	if e == nil {
		return ""
	}
	variables := map[string]any{}
	for name, m := range map[string]*v1alpha1.Mooring{"self": self, "dep": dep} {
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
