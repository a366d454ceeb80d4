package gitea

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/mooring-dev/mooring/test/gitserver"
)

// Account is a user of the forge.
type Account struct {
	Name, Password string
	// Token for all that the account may do.
	Token string
	// Client with that token.
	Client *gitea.Client

	server *Server
}

func secret() string { return "S3cret-" + rand.Text() }

// Client with a token; without one it sees what everybody does.
func (s *Server) Client(token string) (*gitea.Client, error) {
	return gitea.NewClient(s.URL, gitea.SetHTTPClient(s.client), gitea.SetToken(token), gitea.SetGiteaVersion(s.Version))
}

// Admin may do everything.
func (s *Server) Admin() *Account { return s.admin }

// User makes an account.
func (s *Server) User(t testing.TB, name string) *Account {
	t.Helper()
	a := &Account{Name: name, Password: secret(), server: s}
	mustChange := false
	_, _, err := s.admin.Client.AdminCreateUser(gitea.CreateUserOption{
		Username: name, LoginName: name, Email: name + "@example.com", Password: a.Password, MustChangePassword: &mustChange,
	})
	if err != nil {
		t.Fatalf("make user %s: %v", name, err)
	}
	a.Token = a.Limited(t, "all")
	if a.Client, err = s.Client(a.Token); err != nil {
		t.Fatal(err)
	}
	return a
}

// Limited makes one more token of an account, for these scopes alone: write:repository, read:repository, ...
func (a *Account) Limited(t testing.TB, scopes ...gitea.AccessTokenScope) string {
	t.Helper()
	token, err := a.token(t.Context(), scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func (a *Account) token(ctx context.Context, scopes ...gitea.AccessTokenScope) (string, error) {
	// Tokens are made with the password alone.
	client, err := gitea.NewClient(a.server.URL, gitea.SetContext(ctx), gitea.SetHTTPClient(a.server.client), gitea.SetBasicAuth(a.Name, a.Password), gitea.SetGiteaVersion(a.server.Version))
	if err != nil {
		return "", err
	}
	token, _, err := client.CreateAccessToken(gitea.CreateAccessTokenOption{Name: rand.Text(), Scopes: scopes})
	if err != nil {
		return "", fmt.Errorf("make a token for %s: %w", a.Name, err)
	}
	return token.Token, nil
}

// Org makes an organisation, whose owners these accounts are.
func (s *Server) Org(t testing.TB, name string, owners ...*Account) {
	t.Helper()
	if _, _, err := s.admin.Client.CreateOrg(gitea.CreateOrgOption{Name: name, Visibility: gitea.VisibleTypePublic}); err != nil {
		t.Fatalf("make organisation %s: %v", name, err)
	}
	teams, _, err := s.admin.Client.ListOrgTeams(name, gitea.ListTeamsOptions{})
	if err != nil || len(teams) == 0 {
		t.Fatalf("find the owners of %s: %d teams, %v", name, len(teams), err)
	}
	for _, owner := range owners {
		if _, err := s.admin.Client.AddTeamMember(teams[0].ID, owner.Name); err != nil {
			t.Fatalf("make %s an owner of %s: %v", owner.Name, name, err)
		}
	}
}

// Repository on the forge, with a bare one of its own beside it, in which commits are made and from which they are pushed.
type Repository struct {
	*gitserver.TestRepo
	// Owner and Name of it; Owner is an account or an organisation.
	Owner, Name string
	// URL for Git, without credentials; what spec.source.url would be.
	URL string

	t  testing.TB
	by *Account
}

// Repository makes a private one, under the account or under an organisation that it owns, whose branch main has one commit with these files.
func (a *Account) Repository(t testing.TB, owner, name string, files map[string]string) *Repository {
	t.Helper()
	o := gitea.CreateRepoOption{Name: name, Private: true, DefaultBranch: gitserver.DefaultBranch}
	var err error
	if owner == a.Name {
		_, _, err = a.Client.CreateRepo(o)
	} else {
		_, _, err = a.Client.CreateOrgRepo(owner, o)
	}
	if err != nil {
		t.Fatalf("make repository %s/%s: %v", owner, name, err)
	}
	r := &Repository{
		TestRepo: gitserver.NewRepo(t, files), Owner: owner, Name: name, URL: fmt.Sprintf("%s/%s/%s.git", a.server.URL, owner, name),
		t: t, by: a,
	}
	origin, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	origin.User = url.UserPassword(a.Name, a.Token)
	r.Config("remote.origin.url", origin.String())
	r.Config("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
	r.Config("http.sslCAInfo", filepath.Join(a.server.dir, "ca.pem"))
	if len(files) > 0 {
		r.Push(gitserver.DefaultBranch)
	}
	return r
}

// FullName is owner/name.
func (r *Repository) FullName() string { return r.Owner + "/" + r.Name }

// Push sends refs: a branch's name, or what git push takes, such as +main:env/prod, or :old to delete.
func (r *Repository) Push(refs ...string) {
	r.t.Helper()
	r.Git(append([]string{"push", "--quiet", "origin"}, refs...)...)
}

// Branch gives the commit of a branch on the forge, or nothing where it has none.
func (r *Repository) Branch(name string) string {
	r.t.Helper()
	line := r.Git("ls-remote", "origin", "refs/heads/"+name)
	commit, _, _ := strings.Cut(line, "\t")
	return commit
}
