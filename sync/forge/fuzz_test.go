package forge_test

import (
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/sync/forge"
)

// Whatever a commit's message says and a person makes of the body: our part stays one, a second pass writes nothing, and a no is recognised.
func FuzzBody(f *testing.F) {
	f.Add("text", "", "")
	f.Add("<!-- mooring:begin -->\n<!-- mooring:end 00 -->", "before", "after")
	f.Add("```\ncode", "Mooring-Promotion: "+commitOf(2), "\r\n<!-- mooring:end 12 -->\r\n")
	f.Add("Mooring-Promotion: "+commitOf(2), "<!-- mooring:begin -->", "")
	f.Add("0", "\r", "0")
	f.Add("x\r\ny  \n\n", "\n\n", "<!-- mooring:begin -->\nx")
	f.Fuzz(func(t *testing.T, said, before, after string) {
		p, next := proposal(commitOf(1)), proposal(commitOf(3))
		p.Body, next.Body = said, said
		for _, provider := range []forge.Provider{forge.GitHub, forge.GitLab} {
			first := forge.Body(p, before, provider)
			edited := first + "\n" + after
			second := forge.Body(p, edited, provider)
			if again := forge.Body(p, second, provider); again != second {
				t.Errorf("nothing changed, and\n%q\nbecomes\n%q", second, again)
			}
			if got := forge.Promoted(second); got != p.Commit {
				t.Errorf("it is about %q:\n%q", got, second)
			}
			moved := forge.Body(next, second, provider)
			if got := forge.Promoted(moved); got != next.Commit {
				t.Errorf("it is about %q:\n%q", got, moved)
			}
			trim := func(text string) string {
				return strings.TrimRight(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), " \t\n")
			}
			if !strings.HasPrefix(moved, trim(before)) || !strings.HasSuffix(moved, trim(after)) {
				t.Errorf("what a person wrote is gone from\n%q", moved)
			}
		}
	})
}

func FuzzLocate(f *testing.F) {
	for _, url := range []string{"https://github.com/a/b", "git@gitlab.com:a/b/c.git", "ssh://git@[::1]:22/a/b", "https://u:p@x/%2f/..", ":", "a@b:c"} {
		f.Add(url, "", "")
		f.Add(url, "https://git.example.com/x/api/v1", "a/b")
	}
	f.Fuzz(func(t *testing.T, url, api, repository string) {
		for _, provider := range []forge.Provider{"", forge.GitHub, forge.GitLab, forge.Gitea} {
			place, err := forge.Locate(url, forge.Place{Provider: provider, URL: api, Repository: repository})
			if err != nil {
				continue
			}
			if !strings.HasPrefix(place.URL, "https://") || strings.Contains(place.URL, "@") || strings.ContainsAny(place.Repository, "?#% \n") || strings.Contains("/"+place.Repository+"/", "/../") {
				t.Errorf("%q leads to %+v", url, place)
			}
			if _, err := forge.New(forge.Options{Place: place, Token: "t"}); err != nil {
				t.Errorf("%+v, from Locate, is refused: %v", place, err)
			}
		}
	})
}
