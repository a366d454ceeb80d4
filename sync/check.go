package sync

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
)

// checker finds the faults of a set.
type checker interface {
	Check(ctx context.Context, q check.Request) (*check.Report, error)
}

// surveyor reads what lives in the cluster.
type surveyor interface {
	Surroundings(ctx context.Context) (*apply.Surroundings, error)
}

// verdict is what came of checking a target.
type verdict struct {
	// by is the house that it was checked by.
	by       string
	findings []check.Finding
	gaps     []check.Gap
	// refused is why the commit may not be applied; nil when it may.
	refused error
	// stands is true for a commit that an agent before this one accepted: what it found is in the status.
	stands bool
}

// open is true for a refusal that may be another one when something else lives: it is looked at again at each pass.
func (v *verdict) open() bool {
	var at *StageError
	return errors.As(v.refused, &at) && at.Again == report.AgainAtInterval
}

// judge checks a target, or remembers what came of it. What was accepted is not looked at again before the commit, spec.check, a policy or the version of Mooring changes.
func (p *pass) judge(ctx context.Context, remote repos.Remote, t *target) error {
	p.stage = report.StageCheck
	p.out.FailOn = p.failOn()
	if p.whenErr != nil {
		return &StageError{Stage: report.StageCheck, Err: p.whenErr}
	}
	if _, err := p.healthChecks(); err != nil {
		return &StageError{Stage: report.StageCheck, Err: err}
	}
	house, err := p.house(ctx)
	if err == nil && t.verdict == nil && p.stands(t, house) {
		t.verdict = &verdict{by: house.key, stands: true}
	}
	if err == nil && (t.verdict == nil || t.verdict.by != house.key || t.verdict.open() && !p.woken) {
		var v *verdict
		if v, err = p.look(ctx, remote, t, house); err == nil {
			t.verdict = v
		}
	}
	if t.verdict != nil {
		p.out.Findings, p.out.NotChecked = t.verdict.findings, t.verdict.gaps
		if t.verdict.stands {
			p.out.Standing = &p.mooring.Status
		}
	}
	if !final(err) { // Git did not give the policies
		return err
	}
	if err != nil { // this says nothing about the commit, and the next pass may do better
		return &StageError{Stage: report.StageCheck, Again: report.AgainSoon, Err: err}
	}
	if t.verdict.refused == nil {
		p.out.Accepted = p.acceptance(t, house)
	}
	return t.verdict.refused
}

// stands is true for what is in force, as an agent before this one accepted it: of the same version of Mooring, by the same house. What it found must be in the
// status as a whole. So a start does not look at the whole mesh once for each Mooring.
func (p *pass) stands(t *target, h house) bool {
	s := &p.mooring.Status
	return !p.previewing && s.Accepted != "" && s.Accepted == p.acceptance(t, h) &&
		t.rev.Commit == p.out.Applied.Commit && t.digest == p.out.Digest &&
		int(s.FindingCount) == len(s.Findings) && int(s.NotCheckedCount) == len(s.NotChecked)
}

// acceptance stands for a target and all that it was checked by, but what lived in the cluster.
func (p *pass) acceptance(t *target, h house) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %t %q %q %q", p.parent.tool, h.key, *p.mooring.Spec.Prune.Enabled, t.key.commit, t.key.path, t.digest))
	return hex.EncodeToString(sum[:16])
}

// look checks a target beside what lives in the cluster. An error means that it could not be checked; a refusal is in the verdict.
func (p *pass) look(ctx context.Context, remote repos.Remote, t *target, h house) (*verdict, error) {
	defer p.took(report.StageCheck)()
	q, err := p.request(ctx, remote, t, h)
	if _, bad := errors.AsType[*ruleError](err); bad {
		return &verdict{by: h.key, refused: &StageError{Stage: report.StageCheck, Err: err}}, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := p.checker.Check(ctx, q)
	if err != nil {
		return nil, err
	}
	v := &verdict{by: h.key, findings: concerning(found.Findings, p.failOn()), gaps: found.Gaps}
	if blocking := found.Blocking(p.failOn()); len(blocking) > 0 {
		refused := &StageError{Stage: report.StageCheck, Again: report.AgainAtInterval, Err: errBlocked}
		if slices.ContainsFunc(blocking, func(f check.Finding) bool { return f.Inherent }) {
			refused.Again = report.AgainNever // no cluster cures it
		}
		v.refused = refused
	}
	return v, nil
}

// request is what the checker is asked about a target.
func (p *pass) request(ctx context.Context, remote repos.Remote, t *target, h house) (check.Request, error) {
	q := check.Request{Set: t.set}
	if spec := p.mooring.Spec.Check; spec != nil {
		for _, code := range spec.Ignore {
			q.Ignore = append(q.Ignore, string(code))
		}
		for _, s := range spec.Suppress {
			q.Suppress = append(q.Suppress, check.Suppression{Code: s.Code, Resource: s.Resource})
		}
	}
	documents, err := p.documents(ctx, remote, t, h)
	if err != nil {
		return q, err
	}
	if q.Policies, err = policies(documents); err != nil {
		return q, err
	}
	q.Mooring = forPolicies(p.mooring, t.rev)
	surroundings, err := p.surveyor.Surroundings(ctx)
	if err == nil {
		err = p.noteBeside(ctx, surroundings)
	}
	if err != nil {
		return q, err
	}
	unit := ""
	if *p.mooring.Spec.Prune.Enabled {
		unit = ID(p.mooring)
	}
	q.Cluster = clusterOf(surroundings, unit)
	return q, nil
}

// failOn is the mildest level that refuses a commit.
func (p *pass) failOn() check.Level {
	if spec := p.mooring.Spec.Check; spec != nil && spec.FailOn != "" {
		return check.Level(spec.FailOn)
	}
	return check.Error
}

// concerning lists the findings that are this Mooring's concern, those that block first. What the mesh has already in objects of others is theirs.
func concerning(all []check.Finding, failOn check.Level) []check.Finding {
	var blocking, rest []check.Finding
	for _, f := range all {
		switch {
		case f.Blocks(failOn):
			blocking = append(blocking, f)
		case !f.Foreign || !f.Known:
			rest = append(rest, f)
		}
	}
	return append(blocking, rest...)
}
