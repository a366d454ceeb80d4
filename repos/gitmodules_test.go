package repos_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mooring-dev/mooring/repos"
)

func TestSubmoduleURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ parent, url, want string }{
		{"https://git.example.com/mesh/config.git", "../base.git", "https://git.example.com/mesh/base.git"},
		{"https://git.example.com/mesh/config.git/", "../base.git/", "https://git.example.com/mesh/base.git"},
		{"https://git.example.com/mesh/config.git", "./base.git", "https://git.example.com/mesh/config.git/base.git"},
		{"https://git.example.com/mesh/config.git", "../../libs/base.git", "https://git.example.com/libs/base.git"},
		{"https://git.example.com/mesh/config.git", ".././../libs/base", "https://git.example.com/libs/base"},
		{"https://git.example.com/a%20b/config.git", "../base.git", "https://git.example.com/a%20b/base.git"},
		{"https://git.example.com/mesh/config.git", "https://git.example.com/libs/base.git", "https://git.example.com/libs/base.git"},
		{"https://git.example.com/mesh/config.git", "https://GIT.example.com:443/libs/base.git", "https://GIT.example.com:443/libs/base.git"},
		{"https://git.example.com:8443/mesh/config.git", "../base.git", "https://git.example.com:8443/mesh/base.git"},
		{"git@git.example.com:mesh/config.git", "../base.git", "git@git.example.com:mesh/base.git"},
		{"git@git.example.com:mesh/config.git", "../../base.git", "git@git.example.com:base.git"},
		{"git@git.example.com:/mesh/config.git", "../base.git", "ssh://git@git.example.com/mesh/base.git"},
		{"git@git.example.com:mesh/config.git", "ssh://git@git.example.com/libs/base.git", "ssh://git@git.example.com/libs/base.git"},
		{"git@git.example.com:mesh/config.git", "git.example.com:libs/base.git", "git@git.example.com:libs/base.git"},
		{"ssh://git@git.example.com:2222/mesh/config.git", "../base.git", "ssh://git@git.example.com:2222/mesh/base.git"},
		{"ssh://git@git.example.com:2222/~mesh/config.git", "../base.git", "ssh://git@git.example.com:2222/~mesh/base.git"},
		{"ssh://git@[::1]:2222/mesh/config.git", "../base.git", "ssh://git@[::1]:2222/mesh/base.git"},
		{"git@[::1]:mesh/config.git", "../base.git", "git@[::1]:mesh/base.git"},
		{"https://git.example.com/mesh/config.git", "../..//evil.org/x", "https://git.example.com/evil.org/x"},
	} {
		got, err := repos.SubmoduleURL(c.parent, c.url)
		if got != c.want || err != nil {
			t.Errorf("%s in %s is at %q, %v; want %q", c.url, c.parent, got, err, c.want)
		}
		if err := repos.CheckURL(got); err != nil {
			t.Errorf("%s: %v", got, err)
		}
	}
	for _, c := range []struct{ parent, url string }{
		{"https://git.example.com/mesh/config.git", "https://git.example.com:8443/mesh/base.git"},
		{"https://git.example.com/mesh/config.git", "http://git.example.com/mesh/base.git"},
		{"https://git.example.com/mesh/config.git", "https://git.example.com.evil.org/mesh/base.git"},
		{"https://git.example.com/mesh/config.git", "git@git.example.com:mesh/base.git"},
		{"https://git.example.com/mesh/config.git", "../../../base.git"},
		{"https://git.example.com/mesh/config.git", "../../"},
		{"https://git.example.com/mesh/config.git", "../@evil.org/x y"},
		{"https://git.example.com/mesh/config.git", ".."},
		{"https://git.example.com/mesh/config.git", "base.git"},
		{"git@git.example.com:mesh/config.git", "root@git.example.com:mesh/base.git"},
		{"git@git.example.com:mesh/config.git", "../../-oProxyCommand=x"},
		{"git@git.example.com:mesh/config.git", "ssh://-oProxyCommand=x/base.git"},
		{"git@git.example.com:config.git", "../../base.git"},
	} {
		got, err := repos.SubmoduleURL(c.parent, c.url)
		if repos.KindOf(err) != repos.KindContent || repos.HintOf(err) == "" {
			t.Errorf("%s in %s is at %q, %v; hint %q", c.url, c.parent, got, err, repos.HintOf(err))
		}
	}
}

// Whatever .gitmodules says, reading it ends, and what comes of it is a url on the same server or an error with a hint.
func FuzzSubmodules(f *testing.F) {
	for _, seed := range []string{
		entryFor("sub", "../base.git"), "[submodule \"a\\\"b\"]\npath=sub\nurl=\"..\\\\x\"", "[submodule]\npath=sub\nurl=x", "[submodule \"x\"]\npath\nurl", "[\x00]", "\xef\xbb\xbf[submodule \"x\"]",
		"[submodule \"sub\"]\n\tpath = sub ; comment\n\turl = ../a\\\nb", "[include]\n\tpath = /etc/passwd\n[submodule \"sub\"]\npath = sub\nurl = git@git.example.com:x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		urls, err := repos.ReadModules(fstest.MapFS{".gitmodules": {Data: content}})
		if err != nil && repos.KindOf(err) == "" {
			t.Errorf("error without a kind: %v", err)
		}
		for path, url := range urls {
			for _, parent := range []string{"https://git.example.com/mesh/config.git", "git@git.example.com:mesh/config.git"} {
				got, err := repos.SubmoduleURL(parent, url)
				if err != nil {
					continue
				}
				host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(got, "https://"), "ssh://"), "/")
				if host, _, _ = strings.Cut(host, ":"); !strings.EqualFold(strings.TrimPrefix(host, "git@"), "git.example.com") {
					t.Errorf("%q, %q of %s is at %s", path, url, parent, got)
				}
			}
		}
	})
}
