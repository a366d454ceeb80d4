package forge

import (
	"net/url"
	"regexp"
	"strings"
)

const (
	providerHint   = "set spec.promotion.pullRequest.provider to GitHub, GitLab or Gitea (Forgejo is Gitea here)"
	repositoryHint = "set spec.promotion.pullRequest.repository to owner/name, on GitLab with all groups: group/subgroup/name"
)

// known are the hosts that say which forge they are. No other name is guessed at: a token goes only where somebody said.
func known(host string) (Provider, string) {
	switch host {
	case "github.com", "www.github.com", "ssh.github.com":
		return GitHub, "github.com"
	case "gitlab.com", "www.gitlab.com", "altssh.gitlab.com":
		return GitLab, "gitlab.com"
	case "codeberg.org", "gitea.com":
		return Gitea, host
	}
	if strings.HasSuffix(host, ".ghe.com") {
		return GitHub, host
	}
	return "", host
}

// scpLike is git's short form, user@host:path.
var scpLike = regexp.MustCompile(`^(?:[^@:/\s]+@)?(\[[0-9A-Fa-f:.]+\]|[^@:/\[\]\s]+):([^\s]*)$`)

// Locate says where the pull requests of a Git repository are: what the Mooring says of it, and for what it leaves open, what the repository's own address says.
// Whatever is missing then is named by its field.
func Locate(gitURL string, said Place) (Place, error) {
	host, port, path, err := take(gitURL)
	if err != nil {
		return said, err
	}
	provider, host := known(strings.ToLower(host))
	p := said
	if p.Provider == "" {
		p.Provider = provider
	}
	if p.Provider == "" {
		return p, failf(KindOptions, providerHint+"; for any other forge take spec.promotion.mode FastForward", "nothing says which forge %s is", host)
	}
	if p.URL == "" {
		p.URL = "https://" + bracket(host) + port
	}
	if p.Repository == "" {
		p.Repository = repository(path, p)
	}
	return p.complete()
}

// take a Git URL apart: the port only where it is that of https, since that of ssh leads to no API.
func take(gitURL string) (host, port, path string, err error) {
	if !strings.Contains(gitURL, "://") {
		m := scpLike.FindStringSubmatch(gitURL)
		if m == nil {
			return "", "", "", failf(KindOptions, "pull requests need a spec.source.url such as https://host/owner/name or git@host:owner/name", "spec.source.url names no host")
		}
		return strings.Trim(m[1], "[]"), "", m[2], nil
	}
	u, err := url.Parse(gitURL)
	if err != nil || u.Hostname() == "" { // not the parser's words: they hold what may be a password
		return "", "", "", failf(KindOptions, "pull requests need a spec.source.url such as https://host/owner/name or ssh://git@host/owner/name", "spec.source.url names no host")
	}
	if u.Scheme == "https" && u.Port() != "" {
		port = ":" + u.Port()
	}
	return u.Hostname(), port, u.Path, nil
}

// bracket writes an IPv6 address as a URL does.
func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// repository is what a Git URL's path says of its name. A forge that lives below a path of its host, as spec.promotion.pullRequest.url says it, has that path before its repositories.
func repository(path string, p Place) string {
	name := strings.Trim(path, "/")
	if u, err := url.Parse(p.URL); err == nil {
		below := strings.Trim(u.Path, "/")
		for _, api := range []string{"api/v1", "api/v3", "api/v4"} {
			below = strings.Trim(strings.TrimSuffix(below, api), "/")
		}
		if below != "" {
			name = strings.TrimPrefix(name, below+"/")
		}
	}
	return strings.TrimSuffix(name, ".git")
}

// segment of a repository's name. The forges allow less; this is what changes no path.
var segment = regexp.MustCompile(`^[\p{L}\p{N}_.+-]+$`)

func (p Place) checkRepository() error {
	parts := strings.Split(p.Repository, "/")
	for _, part := range parts {
		if !segment.MatchString(part) || strings.Trim(part, ".") == "" {
			return failf(KindOptions, repositoryHint, "%q is no repository's name on %s", p.Repository, p.Provider)
		}
	}
	if len(parts) < 2 || len(parts) > 2 && p.Provider != GitLab {
		return failf(KindOptions, repositoryHint, "%q is no repository's name on %s: it has %d parts", p.Repository, p.Provider, len(parts))
	}
	return nil
}
