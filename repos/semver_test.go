package repos_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

func TestSemVer(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, s *gitserver.Server, auth repos.Auth) {
		repo := s.Repo(t, "shop.git", map[string]string{"v": "0"})
		ids := map[string]string{}
		for _, tag := range []string{
			"v1.0.0", "v1.2.0", "v1.10.0", "1.9.0", "v2.0.0-rc.1", "v2.0.0-rc.10", "v2.0.0-rc.9", "v0.9.1", "v1.10.1-alpha", "3.0.0+1", "3.0.0+2",
			"v4", "v4.1", "latest", "app/v9.0.0", "v5.0.0.0", "v01.2.3", "vv6.0.0", "v7.0.0-rc_1",
		} {
			message := ""
			if strings.HasSuffix(tag, "0") {
				message = "annotated"
			}
			ids[tag] = repo.Commit(gitserver.Change{Files: map[string]string{"v": tag}})
			repo.Tag(tag, "main", message)
		}
		repo.SetBranch("v8.0.0", "main") // no tag
		remote := repos.Remote{URL: repo.URL, Auth: auth}
		store, _ := open(t, repos.Options{})
		for within, want := range map[string]string{
			"1.x": "v1.10.0", "~1.2": "v1.2.0", "^1.0.0": "v1.10.0", ">=1.0.0 <1.10.0": "1.9.0", ">=1.0.0, <1.10.0": "1.9.0", "1.0 - 1.9": "1.9.0",
			"0.x": "v0.9.1", "*": "3.0.0+2", "v1.0.0": "v1.0.0", "=1.2.0": "v1.2.0", "0.x || ~1.2": "v1.2.0", "<=1.5": "v1.2.0", "!=3.x": "v1.10.0",
			">=2.0.0-0 <3.0.0-0": "v2.0.0-rc.10", "2.0.0-rc.9": "v2.0.0-rc.9", "~1.10.0-0": "v1.10.1-alpha", ">=1.10.0 <3": "v1.10.0",
		} {
			rev, err := store.Resolve(t.Context(), remote, repos.Ref{SemVer: within})
			if err != nil {
				t.Errorf("%s: %v", within, err)
				continue
			}
			if got := (repos.Revision{Ref: want, Commit: repos.Commit(ids[want])}); rev != got {
				t.Errorf("%s: %s, want %s", within, rev, got)
			}
			if again, err := repos.ParseRevision(rev.String()); err != nil || again != rev {
				t.Errorf("%s parsed again = %v, %v", rev, again, err)
			}
		}
		snap := pull(t, store, remote, repos.Ref{SemVer: "1.x"})
		if got := read(t, snap.FS(), "v"); got != "v1.10.0" {
			t.Errorf("content = %q, want that of v1.10.0", got)
		}
		// A new tag is the new revision.
		repo.Commit(gitserver.Change{Files: map[string]string{"v": "next"}})
		repo.Tag("v1.11.0", "main", "")
		if snap := pull(t, store, remote, repos.Ref{SemVer: "1.x"}); snap.Revision.Ref != "v1.11.0" || read(t, snap.FS(), "v") != "next" {
			t.Errorf("after a new tag: %s", snap.Revision)
		}
	})
}

// When no tag is in the range, the error says what there is and what would help.
func TestSemVerMissing(t *testing.T) {
	t.Parallel()
	s := gitserver.HTTP(t, gitserver.HTTPOptions{})
	store, _ := open(t, repos.Options{})
	for _, c := range []struct {
		name   string
		tags   []string
		within string
		exist  []string
		total  int
		says   []string
	}{
		{"none", nil, "1.x", nil, 0, []string{`no tag is in the range "1.x"`, "has no tag that is a version", "push a tag, such as v1.0.0"}},
		{"other names", []string{"latest", "release-1"}, "1.x", nil, 0, []string{"has no tag that is a version", "named otherwise: ", "latest", "release-1"}},
		{
			"lower",
			[]string{"v1.0.0", "v1.1.0", "v1.2.0", "v1.3.0", "v1.4.0", "v1.10.0", "latest"},
			">=2",
			[]string{"v1.10.0", "v1.4.0", "v1.3.0", "v1.2.0", "v1.1.0"},
			6,
			[]string{"highest versions that there are: v1.10.0, v1.4.0", "widen the range"},
		},
		{
			"pre-release",
			[]string{"v1.0.0", "v2.0.0-rc.1"},
			"2.x",
			[]string{"v2.0.0-rc.1", "v1.0.0"},
			2,
			[]string{`v2.0.0-rc.1 is a pre-release; a range that shall take those names one, as ">=2.0.0-0" does`},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			repo := s.Repo(t, strings.ReplaceAll(c.name, " ", "_")+".git", map[string]string{"v": "1"})
			for _, tag := range c.tags {
				repo.Tag(tag, "main", "")
			}
			_, err := store.Resolve(t.Context(), repos.Remote{URL: repo.URL}, repos.Ref{SemVer: c.within})
			wantKind(t, err, repos.KindRefNotFound, c.says...)
			missing, ok := errors.AsType[*repos.RefNotFoundError](err)
			if !ok || !errors.Is(err, repos.ErrRefNotFound) {
				t.Fatalf("%v is not a RefNotFoundError and ErrRefNotFound", err)
			}
			want := &repos.RefNotFoundError{Ref: repos.Ref{SemVer: c.within}, Exist: c.exist, Total: c.total}
			if diff := cmp.Diff(want, missing); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
