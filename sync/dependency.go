package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// A Mooring with spec.dependsOn takes a new revision up when those that it depends on are ready at the revision that they should have: of the same ref of the same
// repository that is the very commit, of any other the newest that it knows. That holds for a commit that changes nothing here, too: who depends on this Mooring
// relies on what it depends on. What is in force is kept so whatever becomes of the others, and what was begun is finished.
//
// Nobody asks over and over: who becomes ready wakes those that wait for it. Those of another shard's agent look when their own pause is over.

// awaits is why a target may not be taken up yet; nil when it may.
func (p *pass) awaits(ctx context.Context, t *target) error {
	dependencies := p.mooring.Spec.DependsOn
	inForce := t.rev.Commit == p.out.Applied.Commit && t.digest == p.out.Digest
	if len(dependencies) == 0 || inForce || p.unit.unfinished == t.rev.String() {
		return nil
	}
	expressions, err := p.readiness()
	if err != nil {
		return &StageError{Stage: report.StageCheck, Err: err}
	}
	var list v1alpha1.MooringList
	if err := p.listMoorings(ctx, &list); err != nil {
		return &StageError{Stage: report.StagePlan, Err: err}
	}
	all := make(map[types.NamespacedName]*v1alpha1.Mooring, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		m.Default()
		all[client.ObjectKeyFromObject(m)] = m
	}
	all[client.ObjectKeyFromObject(p.mooring)] = p.mooring
	if round := circle(all, client.ObjectKeyFromObject(p.mooring)); round != nil {
		return &StageError{Stage: report.StageDependency, Err: &mendable{
			error: fmt.Errorf("spec.dependsOn goes round in a circle: %s", strings.Join(round, " → ")),
			mend:  "take one of them out: each waits for the next, and nothing new is applied by any",
		}}
	}
	var waits []error
	for i, d := range dependencies {
		name := nameOf(p.mooring, d)
		if why := p.unready(all[name], expressions[i], t); why != "" {
			waits = append(waits, fmt.Errorf("for Mooring %s, which %s", name, why))
			p.out.Awaits = append(p.out.Awaits, name)
		}
	}
	if len(waits) == 0 {
		return nil
	}
	return &StageError{Stage: report.StageDependency, Err: errors.Join(waits...)}
}

// unready is why a Mooring is not what the target waits for; empty when it is.
func (p *pass) unready(m *v1alpha1.Mooring, more *readyExpression, t *target) string {
	switch {
	case m == nil:
		return "does not exist"
	case !m.DeletionTimestamp.IsZero():
		return "is being deleted"
	}
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	applied, _ := repos.ParseRevision(m.Status.LastAppliedRevision) // the zero revision where nothing is in force
	switch {
	case ready == nil || m.Status.ObservedGeneration != m.Generation:
		return "was not looked at since it was made or changed"
	case ready.Status != metav1.ConditionTrue:
		return "is not ready (" + ready.Reason + ")"
	case sameSource(p.mooring, m) && applied.Commit != t.rev.Commit && m.Spec.Suspend:
		return "is suspended at another commit"
	case sameSource(p.mooring, m) && applied.Commit != t.rev.Commit:
		return "has not this commit in force yet"
	}
	return more.unready(p.mooring, m)
}

// nameOf a dependency: it is of the same namespace where nothing else is said.
func nameOf(m *v1alpha1.Mooring, d v1alpha1.Dependency) types.NamespacedName {
	name := types.NamespacedName{Namespace: d.Namespace, Name: d.Name}
	if name.Namespace == "" {
		name.Namespace = m.Namespace
	}
	return name
}

// circle is the way from a Mooring over what it depends on back to itself; nil when there is none.
func circle(all map[types.NamespacedName]*v1alpha1.Mooring, from types.NamespacedName) []string {
	seen := make(map[types.NamespacedName]bool)
	var walk func(at types.NamespacedName) []string
	walk = func(at types.NamespacedName) []string {
		m := all[at]
		if m == nil || seen[at] {
			return nil
		}
		seen[at] = true
		for _, d := range m.Spec.DependsOn {
			next := nameOf(m, d)
			if next == from {
				return []string{at.String(), next.String()}
			}
			if way := walk(next); way != nil {
				return append([]string{at.String()}, way...)
			}
		}
		return nil
	}
	return walk(from)
}

// readyExpressions are what came of compiling the expressions of spec.dependsOn.
type readyExpressions struct {
	of       []v1alpha1.Dependency
	compiled []*readyExpression
	err      error
}

// readiness is the compiled expression of each dependency, nil where it has none. They are compiled once. An error is one of the spec, which no commit cures.
func (p *pass) readiness() ([]*readyExpression, error) {
	spec := p.mooring.Spec.DependsOn
	if c := p.unit.readiness; slices.Equal(c.of, spec) {
		return c.compiled, c.err
	}
	c := readyExpressions{of: slices.Clone(spec), compiled: make([]*readyExpression, len(spec))}
	var errs []error
	for i, d := range spec {
		if strings.TrimSpace(d.ReadyExpr) == "" {
			continue
		}
		var err error
		if c.compiled[i], err = compileReady(fmt.Sprintf("spec.dependsOn[%d].readyExpr", i), d.ReadyExpr, "dep"); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		c.err = &mendable{error: err, mend: editMooring}
	}
	p.unit.readiness = c
	return c.compiled, c.err
}

// contentOf a Mooring, as an expression sees it.
func contentOf(m *v1alpha1.Mooring) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, fmt.Errorf("read Mooring %s: %w", client.ObjectKeyFromObject(m), err)
	}
	for _, field := range []string{"spec", "status"} {
		if content[field] == nil {
			content[field] = map[string]any{}
		}
	}
	return content, nil
}
