package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Promotion brings a commit from one environment, which is a Mooring, to the next: when it is proven there (proven.go), and every gate of this environment is
// open. Of several that are, it is the newest. What waits is told in the condition Promoted and in status.promotion, and does not make the Mooring less ready: what is
// in force here is what should be. Ready is False with PromotionPending only as long as nothing is.
//
//   - Follow (follow below) makes the proven commit the one that the pass works for. It never goes backwards: not to a commit that the one in force contains.
//   - FastForward and PullRequest (advance.go) bring it to the branch of this environment, in Git; that branch is then followed as ever.
//
// Each pass asks anew until the commit is begun here, so that one that falls ill there meanwhile does not come. What was begun is finished.

// promoting is what a pass knows of the environment that is followed.
type promoting struct {
	from   types.NamespacedName
	there  *v1alpha1.Mooring // nil when it is missing
	all    []candidate
	chosen *candidate // what comes now; nil when nothing does
}

// has says whether a commit was in force there.
func (w *promoting) has(commit repos.Commit) bool {
	return w != nil && w.there != nil && slices.ContainsFunc(w.there.Status.History, func(e v1alpha1.HistoryEntry) bool {
		rev, err := repos.ParseRevision(e.Revision)
		return err == nil && rev.Commit == commit
	})
}

// index of a candidate.
func (w *promoting) index(c *candidate) int {
	return slices.IndexFunc(w.all, func(other candidate) bool { return other.rev == c.rev })
}

// follow is the revision that a pass works for in mode Follow: the newest one that may come, else the one that is here.
func (p *pass) follow(ctx context.Context, remote repos.Remote) (repos.Revision, error) {
	here := p.here()
	way, err := p.lookThere(ctx, here.Commit)
	if err != nil {
		return repos.Revision{}, err
	}
	if err := p.forwardsOnly(ctx, remote, way, here); err != nil {
		return repos.Revision{}, err
	}
	p.choose(ctx, way)
	p.tell(way)
	switch {
	case way.chosen != nil:
		return repos.Revision{Ref: p.mooring.Spec.Source.Ref.Branch, Commit: way.chosen.rev.Commit}, nil
	case !here.IsZero():
		return here, nil
	}
	return repos.Revision{}, &StageError{Stage: report.StagePromotion, Err: errors.New("nothing is in force here yet, and " + p.out.Promotion.Message)}
}

// here is the revision that is in force, or was begun.
func (p *pass) here() repos.Revision {
	if begun, err := repos.ParseRevision(p.unit.unfinished); err == nil && !begun.IsZero() {
		return begun
	}
	return p.out.Applied
}

// lookThere reads the environment that is followed, live: a cache may not know yet what it was woken for.
func (p *pass) lookThere(ctx context.Context, here repos.Commit) (*promoting, error) {
	spec := p.mooring.Spec.Promotion
	way := &promoting{from: followed(p.mooring)}
	p.way, p.unit.soaks = way, time.Time{}
	if way.from == client.ObjectKeyFromObject(p.mooring) {
		return nil, &StageError{Stage: report.StagePromotion, Err: &mendable{error: errors.New("spec.promotion.from names the Mooring itself"), mend: editMooring}}
	}
	there := &v1alpha1.Mooring{}
	switch err := p.reader.Get(ctx, way.from, there); {
	case apierrors.IsNotFound(err):
		return way, nil
	case err != nil:
		return nil, &StageError{Stage: report.StageFetch, Err: fmt.Errorf("read Mooring %s, which this one follows: %w", way.from, err)}
	}
	if branch, ours := there.Spec.Source.Ref.Branch, p.mooring.Spec.Source.Ref.Branch; spec.Mode == v1alpha1.PromotionFollow && branch != ours {
		return nil, &StageError{Stage: report.StagePromotion, Err: &mendable{
			error: fmt.Errorf("the followed Mooring %s follows branch %q and this one %q; in mode Follow both follow the same", way.from, branch, ours),
			mend:  "name the same branch in spec.source.ref, or use mode FastForward or PullRequest",
		}}
	}
	if err := p.circling(ctx, there); err != nil {
		return nil, err
	}
	way.there = there
	if there.DeletionTimestamp.IsZero() {
		way.all = candidates(there, here, spec.Soak.Duration, time.Now())
	}
	for i := range way.all {
		if why := p.failedHere(way.all[i].rev); why != "" {
			way.all[i].state, way.all[i].waits, way.all[i].until = v1alpha1.CandidateFailed, "was not healthy in time here: "+why, time.Time{}
		}
	}
	return way, nil
}

// circling is an error when those that are followed, one after the other, come back to this Mooring. A circle of others is theirs to tell.
func (p *pass) circling(ctx context.Context, there *v1alpha1.Mooring) error {
	self := client.ObjectKeyFromObject(p.mooring)
	way := []types.NamespacedName{self, client.ObjectKeyFromObject(there)}
	for there.Spec.Promotion != nil {
		next := followed(there)
		if next == self {
			names := make([]string, 0, len(way)+1)
			for _, name := range append(way, self) {
				names = append(names, name.String())
			}
			return &StageError{Stage: report.StagePromotion, Err: &mendable{
				error: fmt.Errorf("spec.promotion goes round in a circle: %s", strings.Join(names, " → ")),
				mend:  "take it out of the one where commits come first: each follows the next, and nothing new comes to any",
			}}
		}
		if slices.Contains(way, next) {
			return nil
		}
		way, there = append(way, next), &v1alpha1.Mooring{}
		if err := p.reader.Get(ctx, next, there); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return &StageError{Stage: report.StageFetch, Err: fmt.Errorf("read Mooring %s, to see whether promotion goes round in a circle: %w", next, err)}
		}
	}
	return nil
}

// followed is the Mooring that another one follows.
func followed(m *v1alpha1.Mooring) types.NamespacedName {
	from := m.Spec.Promotion.From
	name := types.NamespacedName{Namespace: from.Namespace, Name: from.Name}
	if name.Namespace == "" {
		name.Namespace = m.Namespace
	}
	return name
}

// failedHere is why a commit was not good enough in this very environment; empty when it was, or was not here.
func (p *pass) failedHere(rev repos.Revision) string {
	if rb := p.out.Rollback; rb != nil {
		if bad, err := repos.ParseRevision(rb.Bad); err == nil && bad.Commit == rev.Commit {
			return rb.Why
		}
	}
	for _, e := range p.mooring.Status.History {
		if at, err := repos.ParseRevision(e.Revision); err == nil && at.Commit == rev.Commit {
			return e.Failed
		}
	}
	return ""
}

// forwardsOnly takes those commits out that the one in force contains. That is asked of Git only where the other environment's history does not tell: where it does
// not have what is in force here.
func (p *pass) forwardsOnly(ctx context.Context, remote repos.Remote, way *promoting, here repos.Revision) error {
	first := slices.IndexFunc(way.all, func(c candidate) bool { return c.state == "" })
	if here.IsZero() || way.has(here.Commit) || first < 0 {
		return nil
	}
	relation, err := p.relate(ctx, remote, here.Commit, way.all[first].rev.Commit)
	if err != nil {
		return &StageError{Stage: report.StageFetch, Err: fmt.Errorf("find out whether %s is newer than %s: %w", way.all[first].rev, here, err)}
	}
	if relation == repos.Behind { // and so are all that came before it
		way.all = way.all[:first]
	}
	return nil
}

// relate asks Git, which may take its time. A commit that no branch has any more, since somebody has rewritten one, is contained in nothing.
func (p *pass) relate(ctx context.Context, remote repos.Remote, from, to repos.Commit) (repos.Relation, error) {
	p.slots.give()
	defer p.slots.take()
	relation, err := p.pusher.Relate(ctx, remote, from, to)
	if repos.KindOf(err) == repos.KindCommitNotFound {
		return repos.Diverged, nil
	}
	return relation, err
}

// choose finds the newest commit for which everything speaks, and notes of the others what they wait for.
func (p *pass) choose(ctx context.Context, way *promoting) {
	for i := range way.all {
		c := &way.all[i]
		if c.state == "" && !p.approved(c.rev.Commit) {
			c.state = v1alpha1.ReasonAwaitingApproval
			c.waits = fmt.Sprintf("is proven there and waits for a person: mooring promote %s -n %s", p.mooring.Name, p.mooring.Namespace)
		}
		if c.state != "" {
			continue
		}
		for j := range way.all[i+1:] {
			if older := &way.all[i+1+j]; older.state == "" {
				older.state, older.waits = v1alpha1.CandidateSkipped, "a newer one is proven"
			}
		}
		if p.previewing {
			way.chosen = c
		} else if c.state, c.waits = p.gates(ctx, way, c); c.state == "" {
			way.chosen = c
		}
		break
	}
	if p.previewing && way.chosen == nil {
		p.foresee(way)
	}
}

// foresee chooses what a preview shows the plan of: the newest commit that may come one day, and why not now.
func (p *pass) foresee(way *promoting) {
	for i := range way.all {
		if c := &way.all[i]; c.state != v1alpha1.CandidateFailed && c.state != v1alpha1.CandidateSkipped {
			way.chosen, p.heldThere = c, fmt.Errorf("%s %s (Mooring %s)", c.rev, c.waits, way.from)
			return
		}
	}
}

// gates are what this environment asks of a commit that is proven in the other one; the first that is closed, and why. Those that cost most come last.
func (p *pass) gates(ctx context.Context, way *promoting, c *candidate) (state, why string) {
	spec := p.mooring.Spec.Promotion
	if now := time.Now(); spec.Mode != v1alpha1.PromotionFollow && !p.when.Windows.None() && !p.when.Windows.Open(now) {
		return v1alpha1.ReasonAwaitingWindow, "is proven there, and " + closed(p.when.Windows, p.when.Windows.At(now)).Error()
	}
	expression, err := p.promotionExpr()
	if err != nil {
		return v1alpha1.ReasonGateClosed, err.Error()
	}
	if why := expression.unready(p.mooring, way.there); why != "" {
		return v1alpha1.ReasonGateClosed, fmt.Sprintf("is proven there, but Mooring %s %s", way.from, why)
	}
	if why := p.metrics(ctx); why != "" {
		return v1alpha1.ReasonGateClosed, "is proven there, but " + why
	}
	return "", ""
}

// approval is the value of the annotation by which a person lets a promotion through: a revision, and perhaps why.
type approval string

// covers says whether it was given for a commit.
func (w approval) covers(commit repos.Commit) bool {
	id, _, _ := strings.Cut(string(w), " ")
	rev, err := repos.ParseRevision(id)
	return commit != "" && (id == string(commit) || err == nil && rev.Commit == commit)
}

func (w approval) reason() string {
	_, reason, _ := strings.Cut(string(w), " ")
	return strings.TrimSpace(reason)
}

func (p *pass) approval() approval {
	return approval(strings.TrimSpace(p.mooring.Annotations[v1alpha1.PromoteAnnotation]))
}

// approved says whether a commit needs nobody's word, or has it.
func (p *pass) approved(commit repos.Commit) bool {
	return p.mooring.Spec.Promotion.Approval != v1alpha1.ApprovalManual || p.approval().covers(commit)
}

// tell makes the report of what was found.
func (p *pass) tell(way *promoting) {
	r := &report.Promotion{From: way.from.String()}
	p.out.Promotion = r
	for i := range way.all {
		c := &way.all[i]
		if !c.until.IsZero() {
			p.unit.soaks = c.until
		}
		if c == way.chosen {
			continue // it comes now
		}
		r.Candidates = append(r.Candidates, v1alpha1.PromotionCandidate{Revision: c.rev.String(), State: c.state, WaitsFor: c.waits, Subject: c.subject})
		if r.Reason == "" && c.state != v1alpha1.CandidateFailed && c.state != v1alpha1.CandidateSkipped {
			r.Reason, r.Message = c.state, fmt.Sprintf("%s %s (Mooring %s)", c.rev, c.waits, way.from)
		}
	}
	if r.Reason == "" || way.chosen != nil {
		r.Reason, r.Message = way.nothingWaits()
	}
	r.WordUsed = p.approval() != "" && way.there != nil && !slices.ContainsFunc(way.all, func(c candidate) bool { return p.approval().covers(c.rev.Commit) })
}

// nothingWaits is the condition Promoted where no commit waits.
func (w *promoting) nothingWaits() (reason, message string) {
	switch {
	case w.there == nil:
		return v1alpha1.ReasonNothingProven, fmt.Sprintf("Mooring %s, which this one follows, does not exist", w.from)
	case len(w.there.Status.History) == 0:
		return v1alpha1.ReasonNothingProven, fmt.Sprintf("Mooring %s, which this one follows, has nothing in force yet", w.from)
	case w.chosen == nil && len(w.all) > 0 && w.all[0].state == v1alpha1.CandidateFailed:
		return v1alpha1.ReasonNothingProven, fmt.Sprintf("%s %s (Mooring %s); the next commit is looked at as usual", w.all[0].rev, w.all[0].waits, w.from)
	}
	return v1alpha1.ReasonUpToDate, fmt.Sprintf("all that is proven in Mooring %s is here", w.from)
}

// tellChosen says of a commit that was let through what became of it: it is here, or something else holds it.
func (p *pass) tellChosen() {
	if p.way == nil || p.way.chosen == nil || p.previewing || p.mooring.Spec.Promotion.Mode != v1alpha1.PromotionFollow {
		return
	}
	r, c := p.out.Promotion, p.way.chosen
	at := min(p.way.index(c), len(r.Candidates))
	if p.out.Applied.Commit == c.rev.Commit {
		r.Promoted, r.Candidates = c.rev, r.Candidates[:at] // those below it are older
		return
	}
	r.Reason, r.Message = p.out.Reason, fmt.Sprintf("%s is proven in Mooring %s, and is held here: see the condition Ready", c.rev, p.way.from)
	held := v1alpha1.PromotionCandidate{Revision: c.rev.String(), State: p.out.Reason, WaitsFor: "is proven there, and is held here: see the condition Ready", Subject: c.subject}
	r.Candidates = slices.Insert(r.Candidates, at, held)
}

// promotionExpr is spec.promotion.readyExpr, compiled once; nil where there is none.
func (p *pass) promotionExpr() (*readyExpression, error) {
	text := strings.TrimSpace(p.mooring.Spec.Promotion.ReadyExpr)
	if text == "" {
		return nil, nil
	}
	if c := &p.unit.promotionExpr; c.text != text {
		c.text = text
		c.compiled, c.err = compileReady("spec.promotion.readyExpr", text, "from")
	}
	return p.unit.promotionExpr.compiled, p.unit.promotionExpr.err
}

// compiledExpr is what came of compiling an expression.
type compiledExpr struct {
	text     string
	compiled *readyExpression
	err      error
}
