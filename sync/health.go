package sync

import (
	"slices"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// healthChecks are what came of compiling spec.healthChecks.
type healthChecks struct {
	of       []v1alpha1.HealthCheck
	compiled *apply.HealthChecks
	err      error
}

// healthChecks of the Mooring, compiled once. An error is one of the spec, which no commit cures.
func (p *pass) healthChecks() (*apply.HealthChecks, error) {
	spec := p.mooring.Spec.HealthChecks
	if c := p.unit.checks; slices.Equal(c.of, spec) {
		return c.compiled, c.err
	}
	var checks []apply.HealthCheck
	for _, c := range spec {
		checks = append(checks, apply.HealthCheck{APIVersion: c.APIVersion, Kind: c.Kind, Current: c.Current, InProgress: c.InProgress, Failed: c.Failed})
	}
	p.unit.checks = healthChecks{of: spec}
	var err error
	if p.unit.checks.compiled, err = apply.CompileHealthChecks("spec.healthChecks", checks); err != nil {
		p.unit.checks.err = &mendable{error: err, mend: "no commit mends that: edit the Mooring"}
	}
	return p.unit.checks.compiled, p.unit.checks.err
}
