package forge

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
)

// Proposal is what a pull request is to say.
type Proposal struct {
	// Head is the branch with the commit, in the same repository, and the caller's own: it is there, and is at Commit, before Propose is called.
	Head string
	// Base is the branch that a person is to merge it to: the environment's.
	Base string
	// Commit that is proposed: its whole id.
	Commit string
	// Title, one line.
	Title string
	// Body in Markdown. What is longer than the forge takes is left out, and a sentence says so.
	Body string
}

// PullRequest is the pull request of a Proposal.
type PullRequest struct {
	// Number in the repository; on GitLab the merge request's !number.
	Number int64
	// URL of its page.
	URL string
	// State of it.
	State State
	// Commit that it proposes. While it is open, this is what the forge has for the head branch, which may be a moment behind a push.
	Commit string
	// MergeCommit is the commit of the base branch that holds it once it is Merged, where the forge says it: with a squash or a rebase, another one than Commit.
	MergeCommit string
	// Opened says that this call opened it, Updated that this call wrote to it.
	Opened, Updated bool
}

// Propose sees to it that there is one pull request of the head branch to the base branch, that it is about this commit, and says what became of it.
//
// One that is open is kept, and its text is brought up to date where it says something else; nothing is written where it does not. When none is
// open, one for this very commit that a person merged or closed is reported as it is, and not opened again: it was decided. Else one is opened. Nothing is ever approved,
// merged, closed or opened again.
func (f *Forge) Propose(ctx context.Context, p Proposal) (PullRequest, error) {
	if err := p.check(); err != nil {
		return PullRequest{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	defer f.transport.CloseIdleConnections()
	w := &wire{next: f.transport}
	client, err := f.client(ctx, w)
	if err != nil {
		return PullRequest{}, f.explain("reach the API", w, err)
	}
	found, err := client.find(ctx, p.Head, p.Base)
	if err != nil {
		return PullRequest{}, f.explain("look for the pull request of "+p.Head, w, err)
	}
	for _, r := range found {
		if r.state == Open {
			return f.keep(ctx, client, w, r, p)
		}
	}
	for _, r := range found {
		if r.decides(p.Commit) {
			return PullRequest{Number: r.number, URL: r.page, State: r.state, Commit: p.Commit, MergeCommit: r.merge}, nil
		}
	}
	return f.open(ctx, client, w, p)
}

// open opens one. When the forge has one that its list did not show, which GitHub's does for some seconds after it was opened, that is kept.
func (f *Forge) open(ctx context.Context, client api, w *wire, p Proposal) (PullRequest, error) {
	title := oneLine(p.Title)
	made, err := client.open(ctx, p.Head, p.Base, text{title: title, body: compose(p, part{}, sum(title), f.place.Provider)})
	if err == nil {
		return PullRequest{Number: made.number, URL: made.page, State: made.state, Commit: cmp.Or(made.head, p.Commit), Opened: true}, nil
	}
	const op = "open a pull request"
	refusal := w.refusal()
	if refusal == nil || !refusal.exists() {
		return PullRequest{}, f.explain(op, w, err)
	}
	found, again := client.find(ctx, p.Head, p.Base)
	if again != nil {
		return PullRequest{}, f.explain("look for the pull request of "+p.Head, w, again)
	}
	for _, r := range found {
		if r.state == Open {
			return f.keep(ctx, client, w, r, p)
		}
	}
	e := f.refused(refusal)
	e.Kind, e.Hint, e.Op, e.Place = KindUnavailable, "the forge has one that it does not show yet: it is looked for again", op, f.name()
	return PullRequest{}, e
}

// keep brings an open one up to date. What a person wrote stays: the text around ours in the body, and the title once somebody changed it.
func (f *Forge) keep(ctx context.Context, client api, w *wire, r request, p Proposal) (PullRequest, error) {
	pr := PullRequest{Number: r.number, URL: r.page, State: Open, Commit: cmp.Or(r.head, p.Commit)}
	var change text
	ours, title := split(r.body), oneLine(p.Title)
	wrote := sum(title)
	switch {
	case r.title == title:
	case ours.title == sum(r.title):
		change.title = title
	case ours.title != "":
		wrote = ours.title // so that a person who takes his own title back gets ours again
	}
	if body := compose(p, ours, wrote, f.place.Provider); body != plain(r.body) {
		change.body = body
	}
	if change == (text{}) {
		return pr, nil
	}
	if _, err := client.edit(ctx, r.number, change); err != nil {
		return pr, f.explain(fmt.Sprintf("update pull request #%d", r.number), w, err)
	}
	pr.Updated = true
	return pr, nil
}

// decides tells whether a pull request that is no longer open was about this commit. Our own line in its body counts, and never the id that the forge gives for the head of
// a closed one: on Gitea that is the branch as it is now, which may have moved on to a commit that nobody turned down. The id at its end is for those
// whose body somebody emptied, and for those that were merged in the moment between our push and our line.
func (r request) decides(commit string) bool {
	said := promoted(r.body)
	return said == commit || r.final == commit && (said == "" || r.state == Merged)
}

var commitID = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// check finds a proposal that no forge takes, or that would be taken for another one.
func (p Proposal) check() error {
	var missing string
	switch {
	case p.Head == "" || p.Base == "":
		missing = "a pull request needs a head and a base branch"
	case p.Head == p.Base:
		missing = "head and base are the same branch, " + p.Base
	case !commitID.MatchString(p.Commit):
		missing = fmt.Sprintf("%q is no commit's whole id", p.Commit)
	case oneLine(p.Title) == "":
		missing = "a pull request needs a title"
	default:
		return nil
	}
	return failf(KindOptions, "set spec.source.ref.branch to the environment's branch", "%s", missing)
}

// name of the forge and the repository, for errors.
func (f *Forge) name() string { return string(f.place.Provider) + " " + f.place.Repository }
