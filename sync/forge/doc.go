// Package forge keeps the pull request of a promotion, on GitHub, GitLab and Gitea or Forgejo, each with its official client.
package forge
