package sync

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/forge"
	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// In mode PullRequest the agent has one branch of its own for each Mooring, mooring/NAMESPACE/NAME, which it lets point at the proven commit, and one pull request from it. What
// became of it is known by the forge alone, so an agent that was killed in between finds its own again, and one that a person closed is not opened anew.

// proposer keeps the pull request of a promotion.
type proposer func(ctx context.Context, o forge.Options, proposal forge.Proposal) (forge.PullRequest, error)

// toForge is the proposer that asks a real one.
func toForge(ctx context.Context, o forge.Options, proposal forge.Proposal) (forge.PullRequest, error) {
	f, err := forge.New(o)
	if err != nil {
		return forge.PullRequest{}, err
	}
	return f.Propose(ctx, proposal)
}

// proposal is what is remembered of a pull request.
type proposal struct {
	// text that was made, and for what.
	of, text string
	later    later
}

// propose opens the pull request for a commit, or brings it up to date, and notes how it stands.
func (p *pass) propose(ctx context.Context, way *promoting, c *candidate, at repos.Revision) {
	if known := p.proposed(c); known != nil && !p.askedGit { // the forge is asked as often as Git
		p.noteRequest(way, c, known)
		return
	}
	pr, err := p.ask(ctx, way, c, at)
	if err != nil {
		c.state, c.waits = v1alpha1.ReasonPromotionFailed, "is proven there, and could not be proposed"
		p.tell(way)
		p.notPromoted(c.state, mendableByForge(err))
		return
	}
	p.noteRequest(way, c, &v1alpha1.PullRequestStatus{Number: pr.Number, URL: pr.URL, State: string(pr.State), Revision: c.rev.String()})
}

// proposed is what is known of the pull request for a commit; nil when there is none.
func (p *pass) proposed(c *candidate) *v1alpha1.PullRequestStatus {
	if s := p.mooring.Status.Promotion; s != nil && s.PullRequest != nil && s.PullRequest.Revision == c.rev.String() {
		return s.PullRequest
	}
	return nil
}

// noteRequest notes how the pull request for a commit stands.
func (p *pass) noteRequest(way *promoting, c *candidate, pr *v1alpha1.PullRequestStatus) {
	switch forge.State(pr.State) {
	case forge.Merged: // squashed or rebased, it has another id in the branch
		way.all = way.all[:way.index(c)]
	case forge.Closed:
		c.state = v1alpha1.ReasonDeclined
		c.waits = fmt.Sprintf("is proven there, but a person closed pull request #%d: it does not come, and the next one that is proven is proposed", pr.Number)
	default:
		c.state, c.waits = v1alpha1.ReasonAwaitingMerge, fmt.Sprintf("is proven there and waits for a person to merge %s", pr.URL)
	}
	p.tell(way)
	p.out.Promotion.Promoted, p.out.Promotion.PullRequest = c.rev, pr
}

// ask the forge, with the branch in its place.
func (p *pass) ask(ctx context.Context, way *promoting, c *candidate, at repos.Revision) (forge.PullRequest, error) {
	options, err := p.forge(ctx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	if err := p.unit.proposal.later.holds(options, time.Now()); err != nil {
		return forge.PullRequest{}, err
	}
	text, err := p.proposalText(ctx, way, c, at)
	if err != nil {
		return forge.PullRequest{}, err
	}
	remote, err := p.writable(ctx)
	if err != nil {
		return forge.PullRequest{}, err
	}
	pr, err := p.submit(ctx, remote, options, c, text)
	return pr, p.unit.proposal.later.note(options, err, time.Now())
}

// submit brings the branch to the commit and asks for the pull request, which may take its time.
func (p *pass) submit(ctx context.Context, remote repos.Remote, options forge.Options, c *candidate, text string) (forge.PullRequest, error) {
	p.slots.give()
	defer p.slots.take()
	head := "mooring/" + p.mooring.Namespace + "/" + p.mooring.Name
	if known := p.proposed(c); known == nil || known.State == string(forge.Open) { // a person may have deleted the branch of one that was closed
		if err := p.place(ctx, remote, head, c.rev.Commit); err != nil {
			return forge.PullRequest{}, err
		}
	}
	return p.proposer(ctx, options, forge.Proposal{
		Head: head, Base: p.branch(), Commit: string(c.rev.Commit),
		Title: fmt.Sprintf("Promote %s to %s: %s", short(c.rev.Commit), p.mooring.Name, orElse(c.subject, "no subject")), Body: text,
	})
}

// place lets the branch of the pull request point at a commit.
func (p *pass) place(ctx context.Context, remote repos.Remote, branch string, to repos.Commit) error {
	now, err := p.source.Resolve(ctx, remote, repos.Ref{Branch: branch})
	if err != nil && !errors.Is(err, repos.ErrRefNotFound) {
		return err
	}
	if now.Commit == to {
		return nil
	}
	return p.pusher.SetBranch(ctx, remote, branch, now.Commit, to)
}

// forge is where the pull request goes, and by whose word.
func (p *pass) forge(ctx context.Context) (forge.Options, error) {
	promotion := p.mooring.Spec.Promotion
	var said forge.Place
	if s := promotion.PullRequest; s != nil {
		said = forge.Place{Provider: forge.Provider(s.Provider), URL: s.URL, Repository: s.Repository}
	}
	var o forge.Options
	var err error
	if o.Place, err = forge.Locate(p.mooring.Spec.Source.URL, said); err != nil {
		return o, err
	}
	way, err := p.viaProxy(ctx, p.address())
	if err != nil {
		return o, err
	}
	o.Proxy = way.Proxy
	if promotion.SecretRef == nil {
		return o, errors.New("spec.promotion.secretRef is missing")
	}
	data, err := p.secret(ctx, promotion.SecretRef.Name, "spec.promotion.secretRef")
	if err != nil {
		return o, err
	}
	for _, key := range []string{"token", "bearerToken", "password"} {
		if o.Token = strings.TrimSpace(string(data[key])); o.Token != "" {
			break
		}
	}
	if o.Token == "" { // a GitHub App gets one that is good for an hour
		remote, err := p.writable(ctx)
		if err == nil {
			o.Token, err = p.pusher.Token(ctx, remote)
		}
		if err != nil {
			return o, err
		}
	}
	if ca := data["ca.crt"]; len(ca) > 0 {
		o.RootCAs = x509.NewCertPool()
		if !o.RootCAs.AppendCertsFromPEM(ca) {
			return o, fmt.Errorf("read Secret %s/%s: ca.crt holds no certificate", p.mooring.Namespace, promotion.SecretRef.Name)
		}
	}
	return o, nil
}

// proposalText is what a person reads before merging: what would change here, what the check says of it, and how it fares where it comes from. The first two are made once for a
// commit and what is in force.
func (p *pass) proposalText(ctx context.Context, way *promoting, c *candidate, at repos.Revision) (string, error) {
	of := c.rev.String() + " " + at.String() + " " + p.out.Applied.String()
	if p.unit.proposal.of != of {
		text, err := p.foretold(ctx, c)
		if err != nil {
			return "", err
		}
		p.unit.proposal.of, p.unit.proposal.text = of, text
	}
	return report.Proposal(report.ProposalParts{
		Mooring: p.mooring.Namespace + "/" + p.mooring.Name, From: way.from.String(), Revision: c.rev.String(),
		Health: healthThere(way, c), Foretold: p.unit.proposal.text,
	}), nil
}

// healthThere says how a commit fares in the environment that it comes from, without a word that changes while nothing happens.
func healthThere(way *promoting, c *candidate) string {
	var b strings.Builder
	for _, e := range way.there.Status.History {
		if rev, err := repos.ParseRevision(e.Revision); err != nil || rev.Commit != c.rev.Commit {
			continue
		}
		fmt.Fprintf(&b, "- In force there since %s", e.AppliedAt.UTC().Format(time.RFC3339))
		if e.Author != "" {
			fmt.Fprintf(&b, "; written by %s", e.Author)
		}
		b.WriteString(".\n")
		if e.HealthySince != nil {
			fmt.Fprintf(&b, "- Without a break since %s every object was healthy, with no drift left standing and no finding of level Error.\n", e.HealthySince.UTC().Format(time.RFC3339))
		}
		if e.ReplacedAt != nil {
			fmt.Fprintf(&b, "- Replaced there by a newer commit at %s.\n", e.ReplacedAt.UTC().Format(time.RFC3339))
		}
		break
	}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionHealthy} {
		if condition := meta.FindStatusCondition(way.there.Status.Conditions, kind); condition != nil {
			fmt.Fprintf(&b, "- %s is %s there now (%s).\n", kind, condition.Status, condition.Reason)
		}
	}
	return b.String()
}

// foretold is the plan for a commit, and what the check finds in it. Nothing of it is written anywhere. A commit that does not render here is proposed all the same, with that
// for a text: whoever reads it knows what to do.
func (p *pass) foretold(ctx context.Context, c *candidate) (string, error) {
	remote, err := p.remote(ctx)
	if err != nil {
		return "", err
	}
	t, err := p.render(ctx, remote, c.rev)
	switch {
	case err != nil && !final(err):
		return "", err
	case err != nil:
		return report.Foretold(nil, nil, err), nil
	}
	house, err := p.house(ctx)
	if err != nil {
		return "", err
	}
	v, err := p.look(ctx, remote, t, house)
	if err != nil {
		return "", err
	}
	plan, err := p.applier.Plan(ctx, p.owner(c.rev), t.set, p.policy(c.rev))
	if err != nil {
		return report.Foretold(nil, v.findings, err), nil
	}
	var b bytes.Buffer
	if err := plan.Print(&b, nil); err != nil {
		return "", err
	}
	return report.Foretold(b.Bytes(), v.findings, nil), nil
}

// mendableByForge gives a forge's error the next step that it knows.
func mendableByForge(err error) error {
	if e, ok := errors.AsType[*forge.Error](err); ok && e.Hint != "" {
		return &mendable{error: err, mend: e.Hint}
	}
	return err
}

// short form of a commit's id, for people.
func short(c repos.Commit) string { return string(c[:min(len(c), 10)]) }

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
