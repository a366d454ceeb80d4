package forge_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/sync/forge"
)

func TestLocate(t *testing.T) {
	for _, test := range []struct {
		url  string
		said forge.Place
		want forge.Place
	}{
		{"https://github.com/mesh/config", forge.Place{}, forge.Place{Provider: "GitHub", URL: "https://api.github.com/", Repository: "mesh/config"}},
		{"https://GitHub.com/mesh/config.git/", forge.Place{}, forge.Place{Provider: "GitHub", URL: "https://api.github.com/", Repository: "mesh/config"}},
		{"git@github.com:mesh/config.git", forge.Place{}, forge.Place{Provider: "GitHub", URL: "https://api.github.com/", Repository: "mesh/config"}},
		{"git@github.com:/mesh/config.git", forge.Place{}, forge.Place{Provider: "GitHub", URL: "https://api.github.com/", Repository: "mesh/config"}},
		{"ssh://git@ssh.github.com:443/mesh/config.git", forge.Place{}, forge.Place{Provider: "GitHub", URL: "https://api.github.com/", Repository: "mesh/config"}},
		{"https://mesh.ghe.com/mesh/config", forge.Place{}, forge.Place{Provider: "GitHub", URL: "https://api.mesh.ghe.com/", Repository: "mesh/config"}},
		{"https://git.example.com:8443/mesh/config.git", forge.Place{Provider: "GitHub"}, forge.Place{Provider: "GitHub", URL: "https://git.example.com:8443/api/v3/", Repository: "mesh/config"}},
		{"ssh://git@git.example.com:2222/mesh/config.git", forge.Place{Provider: "GitHub"}, forge.Place{Provider: "GitHub", URL: "https://git.example.com/api/v3/", Repository: "mesh/config"}},
		{"https://git.example.com/mesh/config", forge.Place{Provider: "GitHub", URL: "https://git.example.com/api/v3"}, forge.Place{Provider: "GitHub", URL: "https://git.example.com/api/v3/", Repository: "mesh/config"}},
		{"https://github.com/mesh/config", forge.Place{URL: "https://github.com"}, forge.Place{Provider: "GitHub", URL: "https://api.github.com/", Repository: "mesh/config"}},

		{"https://gitlab.com/a/b/c/config.git", forge.Place{}, forge.Place{Provider: "GitLab", URL: "https://gitlab.com/api/v4/", Repository: "a/b/c/config"}},
		{"ssh://git@altssh.gitlab.com:443/a/config.git", forge.Place{}, forge.Place{Provider: "GitLab", URL: "https://gitlab.com/api/v4/", Repository: "a/config"}},
		{"https://git.example.com/gitlab/a/b/config.git", forge.Place{Provider: "GitLab", URL: "https://git.example.com/gitlab"}, forge.Place{Provider: "GitLab", URL: "https://git.example.com/gitlab/api/v4/", Repository: "a/b/config"}},
		{"https://git.example.com/gitlab/a/b/config.git", forge.Place{Provider: "GitLab", URL: "https://git.example.com/gitlab/api/v4/"}, forge.Place{Provider: "GitLab", URL: "https://git.example.com/gitlab/api/v4/", Repository: "a/b/config"}},

		{"https://codeberg.org/mesh/config.git", forge.Place{}, forge.Place{Provider: "Gitea", URL: "https://codeberg.org/", Repository: "mesh/config"}},
		{"https://[2001:db8::1]:3000/mesh/config.git", forge.Place{Provider: "Gitea"}, forge.Place{Provider: "Gitea", URL: "https://[2001:db8::1]:3000/", Repository: "mesh/config"}},
		{"git@[2001:db8::1]:mesh/config.git", forge.Place{Provider: "Gitea"}, forge.Place{Provider: "Gitea", URL: "https://[2001:db8::1]/", Repository: "mesh/config"}},
		{"https://git.example.com/git/mesh/config.git", forge.Place{Provider: "Gitea", URL: "https://git.example.com/git/api/v1"}, forge.Place{Provider: "Gitea", URL: "https://git.example.com/git/", Repository: "mesh/config"}},
		// A mirror is read from, and the forge is another host.
		{"https://mirror.example.com/x", forge.Place{Provider: "Gitea", URL: "https://git.example.com", Repository: "mesh/config"}, forge.Place{Provider: "Gitea", URL: "https://git.example.com/", Repository: "mesh/config"}},
		{"http://git.example.com:8080/mesh/config", forge.Place{Provider: "Gitea"}, forge.Place{Provider: "Gitea", URL: "https://git.example.com/", Repository: "mesh/config"}},
	} {
		got, err := forge.Locate(test.url, test.said)
		if err != nil {
			t.Errorf("%s with %+v: %v", test.url, test.said, err)
			continue
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s with %+v (-want +got):\n%s", test.url, test.said, diff)
		}
		if again, err := forge.Locate(test.url, got); err != nil || again != got {
			t.Errorf("%s, once more: %+v, %v", test.url, again, err)
		}
	}
}

// What is missing is named by the field that it is missing from, and nothing secret is in it.
func TestLocateSaysWhatIsMissing(t *testing.T) {
	for _, test := range []struct {
		url        string
		said       forge.Place
		want, hint string
	}{
		{"https://git.example.com/mesh/config", forge.Place{}, "nothing says which forge git.example.com is", "spec.promotion.pullRequest.provider"},
		{"https://gitlab.example.com/mesh/config", forge.Place{}, "nothing says which forge gitlab.example.com is", "spec.promotion.pullRequest.provider"},
		{"https://github.com.example.com/mesh/config", forge.Place{}, "nothing says which forge", "spec.promotion.pullRequest.provider"},
		{"https://dev.azure.com/mesh/_git/config", forge.Place{}, "nothing says which forge dev.azure.com is", "FastForward"},
		{"https://github.com/config", forge.Place{}, `"config" is no repository's name on GitHub: it has 1 parts`, "spec.promotion.pullRequest.repository"},
		{"https://codeberg.org/a/b/c", forge.Place{}, "it has 3 parts", "spec.promotion.pullRequest.repository"},
		{"https://gitlab.com/a/../b", forge.Place{}, "is no repository's name", "spec.promotion.pullRequest.repository"},
		{"https://github.com/mesh/config", forge.Place{Repository: "mesh/config?x=1"}, "is no repository's name", "spec.promotion.pullRequest.repository"},
		{"https://github.com/mesh/config", forge.Place{URL: "http://git.example.com"}, "everybody on the way can read it", "https://"},
		{"https://github.com/mesh/config", forge.Place{URL: "https://me:hunter2@git.example.com"}, "holds credentials", "under the key token"},
		{"https://github.com/mesh/config", forge.Place{Provider: "Bitbucket"}, `"Bitbucket" is no provider`, "spec.promotion.pullRequest.provider"},
		{"/srv/git/config", forge.Place{}, "names no host", "spec.source.url such as"},
		{"https://me:hunter2@/%zz", forge.Place{}, "names no host", "spec.source.url such as"},
	} {
		_, err := forge.Locate(test.url, test.said)
		var e *forge.Error
		if !errors.As(err, &e) || e.Kind != forge.KindOptions || e.Retry() {
			t.Errorf("%s with %+v: %v", test.url, test.said, err)
			continue
		}
		if !strings.Contains(e.Error(), test.want) || !strings.Contains(e.Hint, test.hint) || strings.Contains(e.Error(), "hunter2") {
			t.Errorf("%s with %+v: %v (hint %q)", test.url, test.said, e, e.Hint)
		}
	}
	if _, err := forge.New(forge.Options{Place: forge.Place{Provider: "GitHub", URL: "https://github.com", Repository: "a/b"}, Token: "\n"}); err == nil {
		t.Error("no token is no error")
	}
}
