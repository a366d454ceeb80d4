package repos_test

import (
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
)

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://git.example.com/mesh/config.git",
		"https://git.example.com:8443/mesh/config",
		"https://git.example.com/mesh/config/",
		"https://[2001:db8::1]/mesh/config.git",
		"http://git.example.com/public.git",
		"ssh://git@git.example.com/mesh/config.git",
		"ssh://git.example.com:2222/mesh/config.git",
		"ssh://git@git.example.com/~mesh/config.git",
		"git@git.example.com:mesh/config.git",
		"git.example.com:mesh/config.git",
		"git@[2001:db8::1]:mesh/config.git",
		"git@git.example.com:/srv/config.git",
	} {
		if err := repos.CheckURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	const s3cret = "s3cret"
	for _, c := range []struct{ url, says string }{
		{"", "empty"},
		{"file:///srv/config.git", "path on this machine"},
		{"/srv/config.git", "path on this machine"},
		{"./config.git", "path on this machine"},
		{"../config.git:x", "path on this machine"},
		{"config", "path on this machine"},
		{"ext::sh -c id", "spaces"},
		{"ext::sh%20-c%20id", "remote helper"},
		{"fd::3", "remote helper"},
		{"git://git.example.com/config.git", "neither encrypts"},
		{"ftp://git.example.com/config.git", `"ftp" is not supported`},
		{"-oProxyCommand=id", "dash"},
		{"--upload-pack=/bin/sh", "dash"},
		{"ssh://-oProxyCommand=id/x", "dash"},
		{"ssh://-oProxyCommand=id@host/x", "dash"},
		{"git@-oProxyCommand=id:x", "dash"},
		{"git@host:-x", "dash"},
		{"https://user:" + s3cret + "@git.example.com/config.git", "username and password"},
		{"https://" + s3cret + "@git.example.com/config.git", "Secret"},
		{"ssh://git:" + s3cret + "@git.example.com/config.git", "password"},
		{"git:" + s3cret + "@git.example.com:config.git", "password"},
		{"https://user:" + s3cret + "%zz@git.example.com/config.git", "does not parse"},
		{"https://git.example.com/config.git?token=" + s3cret, "query"},
		{"https://git.example.com/config.git#main", "fragment"},
		{"https://git.example.com", "names no repository"},
		{"https:///config.git", "no host"},
		{"git@host:", "names no repository"},
		{"https://git.example.com/a\nb", "control"},
		{"https://git.example.com/\x00", "control"},
		{"https://git.example.com/" + strings.Repeat("a", 3000), "longer"},
	} {
		err := repos.CheckURL(c.url)
		wantKind(t, err, repos.KindURL, c.says)
		if repos.HintOf(err) == "" {
			t.Errorf("%s: no hint", c.url)
		}
		if text := err.Error() + repos.HintOf(err); strings.Contains(text, s3cret) {
			t.Errorf("%q shows the password", text)
		}
	}
}

// However a URL is mangled, there is no panic, and a password in front of the host does not come out in the error.
func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{
		"https://host/x", "ssh://git@host/x", "git@host:x", "ext::sh", "https://u:hunter2@host/x", "u:hunter2@host:x",
		"https://u:hunter2@[::1/x", "file:///x", "-x", "ssh://u:hunter2@host:port/x", "https://u:hunter2@h/%zz", "a://b://u:hunter2@c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		err := repos.CheckURL(url)
		if err == nil {
			return
		}
		if repos.KindOf(err) != repos.KindURL || repos.HintOf(err) == "" {
			t.Errorf("%q: kind %q, hint %q", url, repos.KindOf(err), repos.HintOf(err))
		}
		scheme, rest, ok := strings.Cut(url, "://")
		if !ok || strings.ContainsAny(scheme, "/?#@:") {
			return
		}
		authority, _, _ := strings.Cut(rest, "/")
		userinfo, _, ok := strings.Cut(authority, "@")
		if _, password, has := strings.Cut(userinfo, ":"); ok && has && password == "hunter2" && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q shows the password of %q", err, url)
		}
	})
}
