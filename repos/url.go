package repos

import (
	"net"
	"net/url"
	"regexp"
	"strings"
)

// endpoint is a URL that was taken apart and found good.
type endpoint struct {
	scheme string // https, http, ssh, file
	user   string // ssh only
	host   string // without port and brackets
	port   string // never empty for ssh, may be for http
	path   string
}

// CheckURL tells whether a repository may be fetched from a URL: https://, ssh:// and git@host:path, and http:// for
// what is public. Everything that runs a program, reads this machine's files or carries credentials inside is refused.
func CheckURL(raw string) error {
	_, err := parseURL(raw, false)
	return locate("check", redact(raw), err)
}

const urlHint = "write it as https://host/path, ssh://git@host/path or git@host:path"

// scpLike is git's short form, user@host:path; a host in brackets may be an IPv6 address.
var scpLike = regexp.MustCompile(`^(?:([^@:/\s]+)@)?(\[[0-9A-Fa-f:.]+\]|[^@:/\[\]\s]+):(.*)$`)

var remoteHelper = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)

// parseURL takes a URL apart. file:// passes where tests allow it.
func parseURL(raw string, allowFile bool) (endpoint, error) {
	switch {
	case raw == "":
		return endpoint{}, failf(KindURL, urlHint, "the url is empty")
	case len(raw) > 2048:
		return endpoint{}, failf(KindURL, urlHint, "the url is longer than 2048 bytes")
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return endpoint{}, failf(KindURL, urlHint, "the url holds spaces or control characters")
	case strings.HasPrefix(raw, "-"):
		return endpoint{}, failf(KindURL, urlHint, "the url begins with a dash, like an option")
	case remoteHelper.MatchString(raw):
		return endpoint{}, failf(KindURL, urlHint, "the url asks for a remote helper, which runs programs")
	case strings.Contains(raw, "://"):
		return parseAbsolute(raw, allowFile)
	}
	m := scpLike.FindStringSubmatch(raw)
	if m == nil || strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, ".") {
		return endpoint{}, failf(KindURL, urlHint, "the url is a path on this machine")
	}
	if strings.Contains(m[3], "@") && m[1] == "" {
		return endpoint{}, failf(KindURL, "put the password into a Secret", "the url holds a password")
	}
	e := endpoint{scheme: "ssh", user: m[1], host: strings.Trim(m[2], "[]"), port: "22", path: m[3]}
	return e, e.check()
}

func parseAbsolute(raw string, allowFile bool) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return endpoint{}, failf(KindURL, urlHint, "the url does not parse") // url.Error quotes it, password and all
	}
	e := endpoint{scheme: u.Scheme, host: u.Hostname(), port: u.Port(), path: u.Path}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return endpoint{}, failf(KindURL, urlHint+"; tokens belong into a Secret", "the url has a query or a fragment")
	}
	switch u.Scheme {
	case "https", "http":
		if u.User != nil {
			return endpoint{}, failf(KindURL, "take user and password out of the url and put them into a Secret as username and password", "the url holds credentials")
		}
		e.path = strings.TrimSuffix(u.EscapedPath(), "/")
	case "ssh":
		if _, hasPassword := u.User.Password(); hasPassword {
			return endpoint{}, failf(KindURL, "take the password out of the url; ssh is used with a key from a Secret", "the url holds a password")
		}
		e.user = u.User.Username()
		if e.port == "" {
			e.port = "22"
		}
		if strings.HasPrefix(e.path, "/~") { // as git does: a path below a home
			e.path = e.path[1:]
		}
	case "file":
		if allowFile && u.Host == "" {
			return e, nil
		}
		return endpoint{}, failf(KindURL, urlHint, "the url is a path on this machine")
	case "git":
		return endpoint{}, failf(KindURL, urlHint, "git:// neither encrypts nor proves who answers")
	default:
		return endpoint{}, failf(KindURL, urlHint, "scheme %q is not supported", u.Scheme)
	}
	return e, e.check()
}

// check finds what would be taken for an option or leads nowhere.
func (e endpoint) check() error {
	switch {
	case e.host == "":
		return failf(KindURL, urlHint, "the url has no host")
	case strings.HasPrefix(e.host, "-"), strings.HasPrefix(e.user, "-"), strings.HasPrefix(e.path, "-"):
		return failf(KindURL, urlHint, "a part of the url begins with a dash, like an option")
	case strings.Trim(e.path, "/") == "":
		return failf(KindURL, urlHint, "the url names no repository")
	}
	return nil
}

// addr is host:port as a dialer wants it.
func (e endpoint) addr() string { return net.JoinHostPort(e.host, e.port) }

// String writes the endpoint in one form, whatever form the user chose. There are no secrets in it.
func (e endpoint) String() string {
	host := e.host
	switch {
	case e.port != "" && !(e.scheme == "ssh" && e.port == "22"):
		host = e.addr()
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	if e.user != "" {
		host = e.user + "@" + host
	}
	path := e.path
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return e.scheme + "://" + host + path
}

// redact takes everything out of a URL that may be a secret, also where it does not parse.
func redact(raw string) string {
	raw, _, _ = strings.Cut(raw, "?")
	raw, _, _ = strings.Cut(raw, "#")
	scheme, rest, absolute := strings.Cut(raw, "://")
	if !absolute {
		if before, after, ok := strings.Cut(raw, "@"); ok && strings.Contains(before, ":") {
			return clean("…@" + after)
		}
		return clean(raw)
	}
	authority, path, _ := strings.Cut(rest, "/")
	user := ""
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		if scheme == "ssh" && !strings.Contains(authority[:i], ":") {
			user = authority[:i+1]
		}
		authority = authority[i+1:]
	}
	return clean(scheme + "://" + user + authority + "/" + path)
}
