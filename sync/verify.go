package sync

import (
	"context"
	"errors"
	"fmt"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/repos/signature"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// A revision that spec.source.verify asks something of is looked at before any of it is read: also one that is pinned or promoted. What is in force stays, whoever has signed it.
// The Secret with the keys is read at each pass; with the same keys, no revision is looked at twice, but one whose tag is refused.

// verdictKey is what an answer depends on.
type verdictKey struct {
	rev   repos.Revision
	mode  v1alpha1.VerifyMode
	keys  string
	after repos.Commit // that it must be a descendant of; empty where it need not
}

// verdicts are answers about the last revisions.
type verdicts map[verdictKey]signing

// signing is who signed a revision, or why that does not count.
type signing struct {
	by  repos.Signed
	err error
}

// maxVerdicts are more than the revisions of one pass, and few enough to forget all when there are more.
const maxVerdicts = 16

// verify says why a revision may not be taken up, or was not found out about; nil where nothing is asked of it.
func (p *pass) verify(ctx context.Context, remote repos.Remote, rev repos.Revision) error {
	v := p.mooring.Spec.Source.Verify
	if v == nil {
		p.unit.verdicts = nil
		return nil
	}
	defer p.took(report.StageVerify)()
	by, err := p.signers(ctx, v)
	if err != nil {
		return err
	}
	key := verdictKey{rev: rev, mode: v.Mode, keys: by.Digest()}
	if v.DescendantsOnly && !p.goesBack() && !p.confirmed(rev) && p.out.Applied.Commit != rev.Commit {
		key.after = p.out.Applied.Commit
	}
	if verdict, known := p.unit.verdicts[key]; known {
		p.out.SignedBy = verdict.by.String()
		return verdict.err
	}
	who, err := p.signed(ctx, remote, rev, by)
	if err == nil && key.after != "" {
		err = p.descends(ctx, remote, rev)
	}
	if lasts(err, v.Mode) && ctx.Err() == nil {
		if len(p.unit.verdicts) >= maxVerdicts || p.unit.verdicts == nil {
			p.unit.verdicts = verdicts{}
		}
		p.unit.verdicts[key] = signing{who, err}
	}
	p.out.SignedBy = who.String()
	return err
}

// lasts is true for what stays so as long as the keys do. A tag that is refused may be made anew for the same commit.
func lasts(err error, mode v1alpha1.VerifyMode) bool {
	if err == nil {
		return true
	}
	if mode != v1alpha1.VerifyHead {
		return false
	}
	var at *StageError
	if why, ok := errors.AsType[*signature.Error](err); ok && why.Passing() {
		return false
	}
	return errors.As(err, &at) && at.Stage == report.StageVerify
}

// signers are those whose signatures count, read once in a pass.
func (p *pass) signers(ctx context.Context, v *v1alpha1.Verify) (*repos.Signers, error) {
	if p.trusted != nil {
		return p.trusted, nil
	}
	data, err := p.secret(ctx, v.SecretRef.Name, "spec.source.verify.secretRef")
	if err != nil {
		return nil, &StageError{Stage: report.StageVerify, Again: report.AgainSoon, Err: err}
	}
	if p.trusted, err = repos.SignersFromSecret(data); err != nil {
		return nil, &StageError{Stage: report.StageVerify, Err: fmt.Errorf("read Secret %s/%s: %w", p.mooring.Namespace, v.SecretRef.Name, err)}
	}
	return p.trusted, nil
}

// signed asks who signed, which may take its time as the revision may have to be fetched.
func (p *pass) signed(ctx context.Context, remote repos.Remote, rev repos.Revision, by *repos.Signers) (repos.Signed, error) {
	p.slots.give()
	defer p.slots.take()
	v := p.mooring.Spec.Source.Verify
	who, err := p.source.Verify(ctx, remote, rev, repos.VerifyMode(v.Mode), by)
	if err == nil {
		return who, nil
	}
	e, ok := errors.AsType[*repos.Error](err)
	if !ok || e.Kind != repos.KindVerification {
		return repos.Signed{}, &StageError{Stage: report.StageFetch, Err: err}
	}
	told := *e
	if told.Hint != "" {
		told.Hint += ". "
	}
	told.Hint += fmt.Sprintf("The keys that are trusted are those of Secret %s/%s", p.mooring.Namespace, v.SecretRef.Name)
	return repos.Signed{}, &StageError{Stage: report.StageVerify, Err: fmt.Errorf("%s is not taken up: %w", rev, &told)}
}

// descends says why a revision is not what comes after the one in force.
func (p *pass) descends(ctx context.Context, remote repos.Remote, rev repos.Revision) error {
	relation, err := p.relate(ctx, remote, p.out.Applied.Commit, rev.Commit)
	if err != nil && repos.KindOf(err) != repos.KindCommitNotFound {
		return &StageError{Stage: report.StageFetch, Err: fmt.Errorf("find out whether %s is a descendant of %s: %w", rev, p.out.Applied, err)}
	}
	if err == nil && (relation == repos.Ahead || relation == repos.Same) {
		return nil
	}
	how := "the two have diverged"
	switch {
	case err != nil:
		how = "the server does not have that one any more"
	case relation == repos.Behind:
		how = "it is an ancestor of it"
	}
	return &StageError{Stage: report.StageVerify, Err: &mendable{
		error: fmt.Errorf("%s is not taken up: it is not a descendant of %s, which is in force: %s", rev, p.out.Applied, how),
		mend: fmt.Sprintf("find out who pushed by force. To take it up all the same, with what it deletes: kubectl annotate mooring -n %s %s --overwrite %s=%s",
			p.mooring.Namespace, p.mooring.Name, v1alpha1.ConfirmAnnotation, rev),
	}}
}
