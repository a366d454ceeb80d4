// Package forge keeps the pull request of a promotion, on GitHub, GitLab and Gitea or Forgejo, each through its official client.
//
//	place, err := forge.Locate(gitURL, forge.Place{Provider: …, URL: …, Repository: …}) // what the Mooring says; the rest comes from the URL
//	f, err := forge.New(forge.Options{Place: place, Token: …, RootCAs: …})              // asks nothing yet
//	pr, err := f.Propose(ctx, forge.Proposal{Head: …, Base: …, Commit: …, Title: …, Body: …})
//
// There is one head branch for each Mooring, and its pull request goes on when a newer commit replaces the one that was proposed. So nothing is ever closed here: whoever calls moves
// the branch, then calls Propose, and may do so on every pass. While nothing has changed that is one request that reads. It should be called only for a commit that the base branch
// does not have: GitHub refuses a pull request without a change ([KindNoChanges]), GitLab and Gitea take it.
//
// # What is remembered, and where
//
// Only on the forge. A line in the body, Mooring-Promotion: COMMIT, says which commit a pull request is about, so that a person's no holds for that commit also after the agent was
// started anew, and for no other. The id that a forge gives for the head of a pull request would not do: Gitea gives, for a closed one as well, the branch as it is now. That line and what
// the proposal says stand between two comments in the body, which no page shows. The text before and after them is people's and stays; theirs in between is
// replaced. The title is ours for as long as it is the one that we wrote, and whoever changed it keeps his: the second comment holds a hash of ours. Labels, reviewers,
// assignees, milestones, drafts and comments are never touched.
//
// Where a person empties the body, the line is written again while it is open. Once it is closed GitHub and Gitea still tell which commit it ended with; on GitLab the commit
// would be proposed again. Of a branch's pull requests the newest fifty count; on Gitea, which lists those of all branches, ten pages of open ones and four of others,
// the base branch's alone where the server knows how (Gitea from 1.24).
//
// # Errors
//
// Every error is an [Error]: a [Kind], the forge's own words, a hint that names the field or the right that is missing, and how long the forge asks us to wait. Nothing is
// tried twice here. No redirect is followed, since the token would go along; no answer is read beyond 16 MiB; and the token is in no error.
//
// What the forges take and say is from their documentation: docs.github.com/rest/pulls, docs.gitlab.com/api/merge_requests, and for Gitea from its source and from a real one.
package forge
