package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/mooring-dev/mooring/render"
)

// HealthCheck says by CEL expressions how objects of a kind are, where their status is one that nobody else can read. Names and meaning are
// those of healthCheckExprs in Flux (https://fluxcd.io/flux/components/kustomize/kustomizations/#health-check-expressions): while
// status.observedGeneration is another than metadata.generation the object is InProgress; then InProgress, Failed and Current are asked in this order,
// and the first that is true is the answer; when none is, the object is InProgress. The version is not compared. In scope are the
// object's top-level fields; metadata, spec and status are there, if need be empty, in every object. The functions are the API server's.
type HealthCheck struct {
	APIVersion, Kind string
	// Current must be there, the other two may be empty.
	Current, InProgress, Failed string
}

// HealthChecks are compiled. They are safe for concurrent use, and nil is none.
type HealthChecks struct {
	key    string
	byKind map[schema.GroupKind]*healthCheck
}

// healthCheck is the compiled check of one kind.
type healthCheck struct {
	asks []ask
}

// ask is one expression and what it means when it is true.
type ask struct {
	where  string // names the expression in messages
	status status.Status
	cel.Program
}

// CompileHealthChecks compiles. The error joins all that is wrong, each with its place in a list that the user knows as field, such as "spec.healthChecks".
func CompileHealthChecks(field string, checks []HealthCheck) (*HealthChecks, error) {
	if len(checks) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(checks)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	all := &HealthChecks{key: hex.EncodeToString(sum[:]), byKind: make(map[schema.GroupKind]*healthCheck)}
	var errs []error
	for i, c := range checks {
		at := fmt.Sprintf("%s[%d]", field, i)
		gv, err := schema.ParseGroupVersion(c.APIVersion)
		if err != nil || gv.Version == "" || c.Kind == "" {
			errs = append(errs, fmt.Errorf("%s: %q of %q is no kind; write apiVersion and kind as on an object", at, c.Kind, c.APIVersion))
			continue
		}
		kind := gv.WithKind(c.Kind).GroupKind()
		if all.byKind[kind] != nil {
			errs = append(errs, fmt.Errorf("%s: %s is there twice; write one entry for it", at, kind))
			continue
		}
		compiled, err := compileHealthCheck(at, c)
		if err != nil {
			errs = append(errs, err)
		}
		all.byKind[kind] = compiled
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return all, nil
}

// Key stands for the expressions: another key, and what is remembered of an object's health counts no longer.
func (h *HealthChecks) Key() string {
	if h == nil {
		return ""
	}
	return h.key
}

func (h *HealthChecks) of(kind schema.GroupKind) *healthCheck {
	if h == nil {
		return nil
	}
	return h.byKind[kind]
}

func compileHealthCheck(at string, c HealthCheck) (*healthCheck, error) {
	compiled := &healthCheck{}
	var errs []error
	for _, e := range []struct {
		field, text string
		status      status.Status
	}{
		{"inProgress", c.InProgress, status.InProgressStatus}, {"failed", c.Failed, status.FailedStatus}, {"current", c.Current, status.CurrentStatus},
	} {
		where := at + "." + e.field
		switch blank := strings.TrimSpace(e.text) == ""; {
		case blank && e.field == "current":
			errs = append(errs, fmt.Errorf("%s is empty: nothing would ever be healthy", where))
			continue
		case blank:
			continue
		}
		program, err := compileExpression(where, e.text)
		if err != nil {
			errs = append(errs, err)
		}
		compiled.asks = append(compiled.asks, ask{where: where, status: e.status, Program: program})
	}
	return compiled, errors.Join(errs...)
}

// compileExpression checks names of functions, syntax and the type of the whole. An object may have any top-level field, so every name that
// the expression does not make itself is one.
func compileExpression(where, text string) (cel.Program, error) {
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.NewExpressions)
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s does not compile: %w", where, issues.Err())
	}
	var fields []cel.EnvOption
	for name := range topLevel(env, parsed) {
		fields = append(fields, cel.Variable(name, cel.DynType))
	}
	if env, err = env.Extend(fields...); err != nil {
		return nil, fmt.Errorf("%s does not compile: %w", where, err)
	}
	checked, issues := env.Check(parsed)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s does not compile: %w", where, issues.Err())
	}
	return Decides(where, env, checked)
}

// Decides makes a program of an expression that says yes or no; where it was written is for the error. It costs no more than what an API server allows one call.
func Decides(where string, env *cel.Env, checked *cel.Ast) (cel.Program, error) {
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%s gives a %s, want true or false", where, got)
	}
	program, err := env.Program(checked, cel.CostLimit(celconfig.PerCallLimit))
	if err != nil {
		return nil, fmt.Errorf("%s does not compile: %w", where, err)
	}
	return program, nil
}

// topLevel are the names in an expression that it does not bind itself, and that are no types.
func topLevel(env *cel.Env, parsed *cel.Ast) map[string]bool {
	names, bound := make(map[string]bool), make(map[string]bool)
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			names[e.AsIdent()] = true
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			bound[c.IterVar()], bound[c.IterVar2()], bound[c.AccuVar()] = true, true, true
		}
	}))
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		_, known := env.CELTypeProvider().FindIdent(name)
		return bound[name] || known
	})
	return names
}

// judge asks the expressions. One that cannot be evaluated leaves the health unknown, and says how to mend it.
func (c *healthCheck) judge(full *unstructured.Unstructured) (status.Status, string) {
	observed, found, err := unstructured.NestedInt64(full.Object, "status", "observedGeneration")
	if err == nil && found && observed != full.GetGeneration() {
		return status.InProgressStatus, fmt.Sprintf("status.observedGeneration is %d, and the generation %d", observed, full.GetGeneration())
	}
	scope := maps.Clone(full.Object)
	for _, field := range []string{"metadata", "spec", "status"} {
		if scope[field] == nil {
			scope[field] = map[string]any{}
		}
	}
	if render.IDOf(full).GroupKind() == kindSecret {
		delete(scope, "data") // an error may quote what it stumbles over
		delete(scope, "stringData")
		scope["metadata"] = map[string]any{} // kubectl keeps a copy in an annotation
	}
	for _, a := range c.asks {
		yes, err := a.eval(scope)
		if err != nil {
			return status.UnknownStatus, err.Error()
		}
		if yes && a.status == status.CurrentStatus {
			return status.CurrentStatus, ""
		}
		if yes {
			return a.status, a.where + " is true"
		}
	}
	return status.InProgressStatus, c.asks[len(c.asks)-1].where + " is not true"
}

// eval one expression. A panic of the library is an error of the expression.
func (a ask) eval(scope map[string]any) (yes bool, err error) {
	err = safely(func() error {
		value, _, err := a.Eval(scope)
		if err != nil {
			return err
		}
		var ok bool
		if yes, ok = value.Value().(bool); !ok {
			return fmt.Errorf("it gives a %s, want true or false", value.Type().TypeName())
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("evaluate %s: %w; use has(…) or status.?field.orValue(…) for what may be missing", a.where, err)
	}
	return yes, nil
}
