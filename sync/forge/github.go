package forge

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/go-github/v88/github"
)

// newest is how many pull requests of our head branch are looked at. Each is one promotion, so more are of no use.
const newest = 50

type gitHub struct {
	client      *github.Client
	owner, name string
}

func newGitHub(p Place, token string, over *http.Client) (*gitHub, error) {
	// The client's own memory of the rate limit would hide what the forge says of it now; see explain.
	client, err := github.NewClient(github.WithHTTPClient(over), github.WithAuthToken(token), github.WithURLs(&p.URL, nil), github.WithUserAgent(userAgent), github.WithDisableRateLimitCheck())
	if err != nil {
		return nil, err
	}
	owner, name, _ := strings.Cut(p.Repository, "/")
	return &gitHub{client: client, owner: owner, name: name}, nil
}

func (g *gitHub) find(ctx context.Context, head, base string) ([]request, error) {
	found, _, err := g.client.PullRequests.List(ctx, g.owner, g.name, &github.PullRequestListOptions{
		State: "all", Head: g.owner + ":" + head, Base: base, Sort: "created", Direction: "desc",
		ListOptions: github.ListOptions{PerPage: newest},
	})
	if err != nil {
		return nil, err
	}
	var all []request
	for _, pr := range found {
		// The owner may have a fork of his own repository under another name.
		if from := pr.GetHead().GetRepo(); from != nil && from.GetID() != pr.GetBase().GetRepo().GetID() {
			continue
		}
		all = append(all, g.request(pr))
	}
	return all, nil
}

func (g *gitHub) open(ctx context.Context, head, base string, t text) (request, error) {
	pr, _, err := g.client.PullRequests.Create(ctx, g.owner, g.name, &github.NewPullRequest{Title: &t.title, Body: &t.body, Head: &head, Base: &base})
	if err != nil {
		return request{}, err
	}
	return g.request(pr), nil
}

func (g *gitHub) edit(ctx context.Context, number int64, t text) (request, error) {
	change := &github.PullRequest{}
	if t.title != "" {
		change.Title = &t.title
	}
	if t.body != "" {
		change.Body = &t.body
	}
	pr, _, err := g.client.PullRequests.Edit(ctx, g.owner, g.name, int(number), change)
	if err != nil {
		return request{}, err
	}
	return g.request(pr), nil
}

func (g *gitHub) request(pr *github.PullRequest) request {
	r := request{
		number: int64(pr.GetNumber()), page: pr.GetHTMLURL(), state: Open, head: pr.GetHead().GetSHA(),
		text: text{title: pr.GetTitle(), body: pr.GetBody()},
	}
	switch {
	case pr.MergedAt != nil:
		// Of one that is open, this is a merge that GitHub only tried.
		r.state, r.merge, r.final = Merged, pr.GetMergeCommitSHA(), r.head
	case pr.GetState() == "closed":
		r.state, r.final = Closed, r.head // what is pushed later does not come to it any more
	}
	return r
}
