package gitea_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/mooring-dev/mooring/test/gitea"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// What a promotion by pull request goes through, done by people.
func TestForge(t *testing.T) {
	begun := time.Now()
	s := gitea.Start(t)
	t.Logf("Gitea %s answers after %s", s.Version, time.Since(begun).Round(10*time.Millisecond))

	alice, bob := s.User(t, "alice"), s.User(t, "bob")
	s.Org(t, "mesh", alice)
	repo := alice.Repository(t, "mesh", "config", map[string]string{"a.yaml": "a: 1\n"})
	main := repo.Resolve("main")
	if got := repo.Branch("main"); got != main {
		t.Fatalf("main is %q on the forge, want %q", got, main)
	}
	repo.Push("main:env/prod")
	repo.Protect("env/prod")

	t.Run("a branch that is protected takes no push", func(t *testing.T) {
		repo.Commit(gitserver.Change{Files: map[string]string{"b.yaml": "b: 1\n"}})
		repo.Push("main")
		if out, err := repo.Repo.Git(t.Context(), "push", "origin", "main:env/prod"); err == nil || !strings.Contains(err.Error(), "protected branch") {
			t.Errorf("the push was answered with %q, %v", out, err)
		}
		if got := repo.Branch("env/prod"); got != main {
			t.Errorf("env/prod is %q, want what it was", got)
		}
	})
	t.Run("a pull request is merged", func(t *testing.T) {
		pr := repo.OpenRequest("main", "env/prod", "promote")
		repo.Merge(pr.Index, sdk.MergeStyleFastForwardOnly)
		if got := repo.Request(pr.Index); !got.HasMerged {
			t.Errorf("#%d is %s", pr.Index, got.State)
		}
		if got, want := repo.Branch("env/prod"), repo.Resolve("main"); got != want {
			t.Errorf("env/prod is %q, want %q", got, want)
		}
	})
	t.Run("one is closed, and opened again", func(t *testing.T) {
		repo.Commit(gitserver.Change{Files: map[string]string{"c.yaml": "c: 1\n"}})
		repo.Push("main")
		pr := repo.OpenRequest("main", "env/prod", "promote again")
		repo.Close(pr.Index)
		if got := repo.Requests(); len(got) != 2 || got[0].State != sdk.StateClosed || got[0].HasMerged {
			t.Errorf("the pull requests are %v", got)
		}
		repo.Reopen(pr.Index)
		if got := repo.Request(pr.Index); got.State != sdk.StateOpen {
			t.Errorf("#%d is %s", pr.Index, got.State)
		}
	})
	t.Run("who has no right sees nothing", func(t *testing.T) {
		_, answer, err := bob.Client.GetRepo("mesh", "config")
		if err == nil || answer.StatusCode != http.StatusNotFound {
			t.Errorf("bob got %v", err)
		}
		repo.Collaborator(bob, sdk.AccessModeRead)
		if _, _, err := bob.Client.GetRepo("mesh", "config"); err != nil {
			t.Error(err)
		}
	})
	t.Logf("resident at most: %s", resident(t, s.PID()))
}

// Two at once do not get into each other's way, and nothing is left of them.
func TestNothingStaysBehind(t *testing.T) {
	var pids []int
	t.Run("two forges", func(t *testing.T) {
		one, two := gitea.Start(t), gitea.Start(t)
		if one.URL == two.URL {
			t.Fatalf("both are %s", one.URL)
		}
		if _, _, err := two.Admin().Client.GetUserInfo(one.User(t, "alice").Name); err == nil {
			t.Error("the second forge knows the first one's user")
		}
		pids = append(pids, one.PID(), two.PID())
	})
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !os.IsNotExist(err) {
			t.Errorf("process %d is left: %v", pid, err)
		}
	}
}

// resident is the most memory that a process had.
func resident(t *testing.T, pid int) string {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}
