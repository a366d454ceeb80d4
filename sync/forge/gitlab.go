package forge

import (
	"cmp"
	"context"
	"net/http"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

type gitLab struct {
	client  *gitlab.Client
	project string
}

func newGitLab(p Place, token string, over *http.Client) (*gitLab, error) {
	// Whoever calls tries again, later and with less hurry than this client would.
	client, err := gitlab.NewClient(token, gitlab.WithHTTPClient(over), gitlab.WithBaseURL(p.URL), gitlab.WithUserAgent(userAgent), gitlab.WithoutRetries())
	if err != nil {
		return nil, err
	}
	return &gitLab{client: client, project: p.Repository}, nil
}

func (g *gitLab) find(ctx context.Context, head, base string) ([]request, error) {
	found, _, err := g.client.MergeRequests.ListProjectMergeRequests(g.project, &gitlab.ListProjectMergeRequestsOptions{
		SourceBranch: &head, TargetBranch: &base, OrderBy: new("created_at"), Sort: new("desc"),
		ListOptions: gitlab.ListOptions{PerPage: newest},
	}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	var all []request
	for _, mr := range found {
		if mr.SourceProjectID == mr.TargetProjectID {
			all = append(all, g.request(mr))
		}
	}
	return all, nil
}

func (g *gitLab) open(ctx context.Context, head, base string, t text) (request, error) {
	mr, _, err := g.client.MergeRequests.CreateMergeRequest(g.project, &gitlab.CreateMergeRequestOptions{
		Title: &t.title, Description: &t.body, SourceBranch: &head, TargetBranch: &base,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return request{}, err
	}
	return g.request(&mr.BasicMergeRequest), nil
}

func (g *gitLab) edit(ctx context.Context, number int64, t text) (request, error) {
	change := &gitlab.UpdateMergeRequestOptions{}
	if t.title != "" {
		change.Title = &t.title
	}
	if t.body != "" {
		change.Description = &t.body
	}
	mr, _, err := g.client.MergeRequests.UpdateMergeRequest(g.project, number, change, gitlab.WithContext(ctx))
	if err != nil {
		return request{}, err
	}
	return g.request(&mr.BasicMergeRequest), nil
}

func (g *gitLab) request(mr *gitlab.BasicMergeRequest) request {
	r := request{
		number: mr.IID, page: mr.WebURL, state: Open, head: mr.SHA,
		text: text{title: mr.Title, body: mr.Description},
	}
	switch mr.State { // opened, and locked while it is being merged
	case "merged":
		// A fast forward makes no commit of its own.
		r.state, r.merge, r.final = Merged, cmp.Or(mr.MergeCommitSHA, mr.SquashCommitSHA, mr.SHA), mr.SHA
	case "closed":
		r.state = Closed
	}
	return r
}
