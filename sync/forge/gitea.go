package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// pages of the list of pull requests that are looked through, of 50 each: of those that are open, and of those that are not.
const openPages, donePages = 10, 4

// maxEnds is how many pull requests are asked for their last commit, one by one.
const maxEnds = 5

type giteaClient struct {
	client      *gitea.Client
	listing     *listing
	owner, name string
}

// newGitea makes a client for one Propose: Gitea's keeps the context that it was made with.
func newGitea(ctx context.Context, p Place, token string, over *http.Client) (*giteaClient, error) {
	lists := &listing{next: over.Transport}
	over.Transport = lists
	client, err := gitea.NewClient(strings.TrimSuffix(p.URL, "/"), gitea.SetContext(ctx), gitea.SetHTTPClient(over), gitea.SetToken(token), gitea.SetUserAgent(userAgent),
		gitea.SetGiteaVersion("")) // else it asks for the version first, which tells us nothing that we need
	if err != nil {
		return nil, err
	}
	owner, name, _ := strings.Cut(p.Repository, "/")
	return &giteaClient{client: client, listing: lists, owner: owner, name: name}, nil
}

// listing asks for the pull requests to one base branch alone, for which the client has no option. Servers from before 1.24, and Forgejo, give all of them.
type listing struct {
	next http.RoundTripper
	base string
}

func (l *listing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pulls") {
		r = r.Clone(r.Context())
		q := r.URL.Query()
		q.Set("base_branch", l.base)
		r.URL.RawQuery = q.Encode()
	}
	return l.next.RoundTrip(r)
}

// find goes through the list. There is a request for one pair of branches (GetPullRequestByBaseHead), but where several pull requests have that pair, it gives any of them.
func (g *giteaClient) find(_ context.Context, head, base string) ([]request, error) {
	g.listing.base = base
	open, err := g.list(head, base, gitea.ListPullRequestsOptions{State: gitea.StateOpen}, openPages)
	if err != nil || len(open) > 0 {
		return open, err
	}
	done, err := g.list(head, base, gitea.ListPullRequestsOptions{State: gitea.StateClosed, Sort: "recentupdate"}, donePages)
	if err != nil {
		return nil, err
	}
	return done, g.ends(done)
}

// ends finds what the last commits were of those whose bodies no longer tell. What is pushed to the branch later does not come to the ref of one that is closed.
func (g *giteaClient) ends(done []request) error {
	asked := 0
	for i := range done {
		if promoted(done[i].body) != "" || asked == maxEnds {
			continue
		}
		asked++
		ref, answer, err := g.client.GetRepoRef(g.owner, g.name, fmt.Sprintf("pull/%d/head", done[i].number))
		switch {
		case err == nil && ref.Object != nil:
			done[i].final = ref.Object.SHA
		case err != nil && (answer == nil || answer.StatusCode != http.StatusNotFound):
			return err
		}
	}
	return nil
}

func (g *giteaClient) list(head, base string, o gitea.ListPullRequestsOptions, pages int) ([]request, error) {
	var all []request
	o.Page, o.PageSize = 1, newest
	for range pages {
		found, answer, err := g.client.ListRepoPullRequests(g.owner, g.name, o)
		if err != nil {
			return nil, err
		}
		for _, pr := range found {
			if pr.Head != nil && pr.Base != nil && pr.Head.Name == head && pr.Base.Ref == base && pr.Head.RepoID == pr.Base.RepoID {
				all = append(all, g.request(pr))
			}
		}
		if answer.NextPage == 0 || o.State == gitea.StateOpen && len(all) > 0 {
			break
		}
		o.Page = answer.NextPage
	}
	return all, nil
}

func (g *giteaClient) open(_ context.Context, head, base string, t text) (request, error) {
	pr, _, err := g.client.CreatePullRequest(g.owner, g.name, gitea.CreatePullRequestOption{Head: head, Base: base, Title: t.title, Body: t.body})
	if err != nil {
		return request{}, err
	}
	return g.request(pr), nil
}

func (g *giteaClient) edit(_ context.Context, number int64, t text) (request, error) {
	change := gitea.EditPullRequestOption{Title: t.title}
	if t.body != "" {
		change.Body = &t.body
	}
	pr, _, err := g.client.EditPullRequest(g.owner, g.name, number, change)
	if err != nil {
		return request{}, err
	}
	return g.request(pr), nil
}

func (g *giteaClient) request(pr *gitea.PullRequest) request {
	r := request{number: pr.Index, page: pr.HTMLURL, state: Open, text: text{title: pr.Title, body: pr.Body}}
	if pr.Head != nil {
		r.head = pr.Head.Sha
	}
	switch {
	case pr.HasMerged:
		r.state = Merged
		if pr.MergedCommitID != nil {
			r.merge = *pr.MergedCommitID
		}
	case pr.State == gitea.StateClosed:
		r.state = Closed
	}
	return r
}
