package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/gitea"
	"github.com/mooring-dev/mooring/test/world"
)

// house is a site whose repository is on a real forge. Reading and writing have a token each, of an account that is the agent's.
type house struct {
	*site
	on    *gitea.Repository
	team  *gitea.Account
	agent *gitea.Account
}

func newHouse(t *testing.T, w *world.World, content files) *house {
	t.Helper()
	s := &site{t: t, w: w, ns: w.Cluster.Namespace(t)}
	server := gitea.Start(t)
	team, agent := server.User(t, "team"), server.User(t, "mooring")
	on := team.Repository(t, "team", "mesh", s.fill(content))
	on.Collaborator(agent, sdk.AccessModeWrite)
	s.repo = on.TestRepo
	h := &house{site: s, on: on, team: team, agent: agent}
	for name, scope := range map[string]sdk.AccessTokenScope{"git-read": "read:repository", "git-write": "write:repository"} {
		token := agent.Limited(t, scope)
		h.secret(name, map[string]string{"username": agent.Name, "password": token, "token": token, "ca.crt": string(server.CA)})
	}
	for _, env := range []string{"staging", "prod"} {
		on.Push("main:refs/heads/env/" + env)
	}
	return h
}

func (h *house) secret(name string, data map[string]string) {
	h.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: name}, StringData: data}
	if err := h.w.Client().Create(h.t.Context(), secret); err != nil {
		h.t.Fatal(err)
	}
}

// push commits to main on the forge.
func (h *house) push(content files) string {
	h.t.Helper()
	id := h.commit(content)
	h.on.Push("main")
	return id
}

// env makes the Mooring of an environment.
func (h *house) env(name string, change func(*mooring)) *unit {
	return h.mooring(name, func(m *mooring) {
		m.Spec.Source.URL, m.Spec.Source.SecretRef = h.on.URL, &v1alpha1.LocalReference{Name: "git-read"}
		m.Spec.Path = "overlays/" + name
		m.Spec.Interval.Duration = 2 * time.Second
		if change != nil {
			change(m)
		}
	})
}

// by brings commits from another environment in a mode that writes to Git.
func by(mode v1alpha1.PromotionMode, from string) func(*mooring) {
	return func(m *mooring) {
		follows(from, time.Second)(m)
		m.Spec.Source.Ref.Branch = "env/" + m.Name
		m.Spec.Promotion.Mode, m.Spec.Promotion.SecretRef = mode, &v1alpha1.LocalReference{Name: "git-write"}
		if mode == v1alpha1.PromotionPullRequest {
			m.Spec.Promotion.PullRequest = &v1alpha1.PullRequestSpec{Provider: v1alpha1.ProviderGitea}
		}
	}
}

// waits until a commit is proposed.
func (h *house) waits(u *unit, commit string) *v1alpha1.PullRequestStatus {
	h.t.Helper()
	m := u.until(commit+" is proposed", func(m *mooring) error {
		if err := promoted(v1alpha1.ReasonAwaitingMerge, commit, "waits for a person to merge "+h.on.URL[:strings.LastIndex(h.on.URL, "/team/")])(m); err != nil {
			return err
		}
		if pr := m.Status.Promotion.PullRequest; pr == nil || !strings.HasSuffix(pr.Revision, commit) || pr.State != "Open" {
			return fmt.Errorf("the pull request is %+v", pr)
		}
		return nil
	})
	return m.Status.Promotion.PullRequest
}

// TestForgeFollow keeps all on one branch of a private repository, for which the agent may read alone.
func TestForgeFollow(t *testing.T) {
	w := shared(t)
	h := newHouse(t, w.World, overlays("1"))
	h.env("dev", nil)
	h.env("staging", follows("dev", time.Second))
	prod := h.env("prod", follows("staging", time.Second))
	prod.inForce(h.head())
	second := h.push(overlays("2"))
	prod.inForce(second)
	h.want("dev=2 prod=2 staging=2")
}

// TestForgeFastForward moves branches that are protected against everybody but the agent.
func TestForgeFastForward(t *testing.T) {
	w := shared(t)
	h := newHouse(t, w.World, overlays("1"))
	h.on.Protect("env/staging", h.agent.Name)
	h.on.Protect("env/prod", "team")
	h.env("dev", nil)
	h.env("staging", by(v1alpha1.PromotionFastForward, "dev"))
	prod := h.env("prod", by(v1alpha1.PromotionFastForward, "staging"))
	first := h.head()
	prod.inForce(first)
	second := h.push(overlays("2"))
	m := prod.until("the forge says no", promoted(v1alpha1.ReasonPromotionFailed, "protected", "let the user of this credential push to this branch"))
	ready(t, m, metav1.ConditionTrue, v1alpha1.ReasonApplied, first)
	h.want("dev=2 prod=1 staging=2")
	if _, err := h.team.Client.DeleteBranchProtection(h.on.Owner, h.on.Name, "env/prod"); err != nil {
		t.Fatal(err)
	}
	prod.inForce(second)
	if got := h.on.Branch("env/prod"); got != second {
		t.Errorf("env/prod is at %s, want %s", got, second)
	}
}

// TestForgePullRequest proposes for prod what staging has proven. A person merges one, closes the next, and merges the one after that; and a bad commit never comes so far.
func TestForgePullRequest(t *testing.T) {
	w := shared(t)
	h := newHouse(t, w.World, all(overlays("1"), under("overlays/staging", files{"web.yaml": deployment("web", "web:1")})))
	web := func(n int) files {
		return all(overlays(fmt.Sprint(n)), under("overlays/staging", files{"web.yaml": deployment("web", fmt.Sprintf("web:%d", n))}))
	}
	h.env("dev", nil)
	staging := h.env("staging", these(by(v1alpha1.PromotionFastForward, "dev"), waiting(15*time.Second)))
	prod := h.env("prod", by(v1alpha1.PromotionPullRequest, "staging"))
	first := h.head()
	h.rollOut("web", "web:1")
	prod.inForce(first)

	second := h.push(web(2))
	h.rollOut("web", "web:2")
	pr := h.waits(prod, second)
	request := h.on.Request(pr.Number)
	if request.Base.Ref != "env/prod" || request.Head.Sha != second || request.Poster.UserName != h.agent.Name {
		t.Errorf("the pull request is of %s by %s to %s", request.Head.Sha, request.Poster.UserName, request.Base.Ref)
	}
	if lack := lacks(request.Body, []string{
		"Mooring `" + h.ns + "/prod` would get", "proven in Mooring `" + h.ns + "/staging`", "Without a break since", "ConfigMap/" + h.ns + "/prod", "### What the check found",
	}); lack != "" {
		t.Errorf("the text lacks %q:\n%s", lack, request.Body)
	}
	h.want("dev=2 prod=1 staging=2") // nobody has merged it
	prod.event(v1alpha1.ReasonAwaitingMerge, request.HTMLURL)

	// A newer commit is proven: the same pull request has it now.
	third := h.push(web(3))
	h.rollOut("web", "web:3")
	if again := h.waits(prod, third); again.Number != pr.Number {
		t.Errorf("pull request #%d was opened beside #%d", again.Number, pr.Number)
	}
	h.on.Merge(pr.Number, sdk.MergeStyleMerge)
	m := prod.until("it is merged and in force", func(m *mooring) error {
		if pr := m.Status.Promotion.PullRequest; pr == nil || pr.State != "Merged" {
			return fmt.Errorf("the pull request is %+v", pr)
		}
		return promoted(v1alpha1.ReasonUpToDate)(m)
	})
	h.becomes("dev=3 prod=3 staging=3")
	if candidates(m) != "" {
		t.Errorf("still waits: %s", candidates(m))
	}

	// A person says no to one, which stays so; not to the next.
	fourth := h.push(web(4))
	h.rollOut("web", "web:4")
	pr = h.waits(prod, fourth)
	h.on.Close(pr.Number)
	prod.until("it is declined", promoted(v1alpha1.ReasonDeclined, fourth, fmt.Sprintf("#%d", pr.Number)))
	prod.sync()
	prod.until("it is declined still", promoted(v1alpha1.ReasonDeclined, fourth))
	if open := h.open(); open != 0 {
		t.Errorf("%d pull requests are open", open)
	}

	// A bad commit goes no further than staging.
	bad := h.push(web(5))
	staging.until("it is not healthy in time", world.HasReason(v1alpha1.ReasonHealthTimeout))
	prod.until("it failed there", promoted(v1alpha1.ReasonDeclined))
	if open := h.open(); open != 0 {
		t.Errorf("%d pull requests are open for %s", open, bad)
	}
	sixth := h.push(web(6))
	h.rollOut("web", "web:6")
	pr = h.waits(prod, sixth)
	h.on.Merge(pr.Number, sdk.MergeStyleMerge)
	h.becomes("dev=6 prod=6 staging=6")
	h.want("dev=6 prod=6 staging=6")
	h.repo.Git("fsck", "--strict")
}

// open pull requests on the forge.
func (h *house) open() int {
	n := 0
	for _, r := range h.on.Requests() {
		if r.State == sdk.StateOpen {
			n++
		}
	}
	return n
}

// TestForgeAgentKilledAfterItsProposal finds its own pull request again, and opens no second one.
func TestForgeAgentKilledAfterItsProposal(t *testing.T) {
	w := quiet(t)
	agent := startAgent(t, w, world.AgentOptions{})
	h := newHouse(t, w, overlays("1"))
	h.env("dev", nil)
	prod := h.env("prod", by(v1alpha1.PromotionPullRequest, "dev"))
	prod.inForce(h.head())
	second := h.push(overlays("2"))
	eventually(t, "it is proposed", func() error {
		if h.open() == 0 {
			return fmt.Errorf("no pull request is open")
		}
		return nil
	})
	agent.Kill()
	startAgent(t, w, world.AgentOptions{})
	pr := h.waits(prod, second)
	if all := h.on.Requests(); len(all) != 1 || all[0].Index != pr.Number {
		t.Errorf("%d pull requests", len(all))
	}
}
