package gitea

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/mooring-dev/mooring/test/poll"
)

// mergeTimeout bounds the wait until Gitea has found out whether a pull request can be merged, which it does in the background.
const mergeTimeout = 30 * time.Second

// Protect keeps everybody from pushing to a branch, but these accounts. It may still be merged to.
func (r *Repository) Protect(branch string, pushers ...string) {
	r.t.Helper()
	_, _, err := r.by.Client.CreateBranchProtection(r.Owner, r.Name, gitea.CreateBranchProtectionOption{
		BranchName: branch, RuleName: branch, EnablePush: len(pushers) > 0, EnablePushWhitelist: len(pushers) > 0, PushWhitelistUsernames: pushers,
	})
	if err != nil {
		r.t.Fatalf("protect branch %s: %v", branch, err)
	}
}

// Collaborator gives another account a right to the repository: read, write or admin.
func (r *Repository) Collaborator(who *Account, right gitea.AccessMode) {
	r.t.Helper()
	if _, err := r.by.Client.AddCollaborator(r.Owner, r.Name, who.Name, gitea.AddCollaboratorOption{Permission: &right}); err != nil {
		r.t.Fatalf("let %s %s: %v", who.Name, right, err)
	}
}

// Request gives a pull request.
func (r *Repository) Request(number int64) *gitea.PullRequest {
	r.t.Helper()
	pr, _, err := r.by.Client.GetPullRequest(r.Owner, r.Name, number)
	if err != nil {
		r.t.Fatalf("get pull request #%d: %v", number, err)
	}
	return pr
}

// Requests gives all pull requests, the newest first.
func (r *Repository) Requests() []*gitea.PullRequest {
	r.t.Helper()
	var all []*gitea.PullRequest
	o := gitea.ListPullRequestsOptions{State: gitea.StateAll}
	for o.Page = 1; o.Page > 0; {
		some, answer, err := r.by.Client.ListRepoPullRequests(r.Owner, r.Name, o)
		if err != nil {
			r.t.Fatalf("list pull requests: %v", err)
		}
		all = append(all, some...)
		o.Page = answer.NextPage
	}
	return all
}

// OpenRequest opens one, as a person does.
func (r *Repository) OpenRequest(head, base, title string) *gitea.PullRequest {
	r.t.Helper()
	pr, _, err := r.by.Client.CreatePullRequest(r.Owner, r.Name, gitea.CreatePullRequestOption{Head: head, Base: base, Title: title})
	if err != nil {
		r.t.Fatalf("open a pull request: %v", err)
	}
	return pr
}

// Merge merges one, as a person does.
func (r *Repository) Merge(number int64, style gitea.MergeStyle) {
	r.t.Helper()
	poll.Await(r.t, mergeTimeout, fmt.Sprintf("pull request #%d is merged", number), func() error {
		merged, answer, err := r.by.Client.MergePullRequest(r.Owner, r.Name, number, gitea.MergePullRequestOption{Style: style})
		if merged {
			return nil
		}
		err = errors.Join(errors.New("it is not merged"), err)
		// 405 is "please try again later" while it looks for conflicts, and also the answer to a merge that cannot be.
		if answer == nil || answer.StatusCode != http.StatusMethodNotAllowed {
			return poll.Final(err)
		}
		return err
	})
}

// Close turns one down, as a person does.
func (r *Repository) Close(number int64) {
	r.t.Helper()
	closed := gitea.StateClosed
	if _, _, err := r.by.Client.EditPullRequest(r.Owner, r.Name, number, gitea.EditPullRequestOption{State: &closed}); err != nil {
		r.t.Fatalf("close pull request #%d: %v", number, err)
	}
}

// Reopen opens one again, as a person does.
func (r *Repository) Reopen(number int64) {
	r.t.Helper()
	open := gitea.StateOpen
	if _, _, err := r.by.Client.EditPullRequest(r.Owner, r.Name, number, gitea.EditPullRequestOption{State: &open}); err != nil {
		r.t.Fatalf("open pull request #%d again: %v", number, err)
	}
}
