package repos

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/go-git/go-git/v5/config"
)

// maxModulesBytes is how long .gitmodules may be. Each entry costs as much as there are entries before it.
const maxModulesBytes = 128 << 10

const gitmodules = ".gitmodules"

// readModules reads which submodule of a tree is to be had where, as gitmodules(5) has it: from path to url. What else the file says, of branches and of commands to
// run, does not matter here. Entries whose name or path leads out of the tree count for nothing, as for Git.
func readModules(tree fs.FS) (map[string]string, error) {
	info, err := fs.Lstat(tree, gitmodules)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return map[string]string{}, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // Git does not follow a link either
		return nil, failf(KindContent, "commit it as a file", "%s is no file", gitmodules)
	case info.Size() > maxModulesBytes:
		return nil, failf(KindLimit, "", "%s has more than %s", gitmodules, size(maxModulesBytes))
	}
	content, err := fs.ReadFile(tree, gitmodules)
	if err != nil {
		return nil, err
	}
	if len(content) > maxModulesBytes {
		return nil, failf(KindLimit, "", "%s has more than %s", gitmodules, size(maxModulesBytes))
	}
	parsed := config.NewModules()
	if err := parsed.Unmarshal(content); err != nil {
		return nil, failf(KindContent, "write it as git submodule add does", "%s does not parse: %s", gitmodules, clean(err.Error()))
	}
	urls := map[string]string{}
	for _, m := range parsed.Submodules {
		at := strings.TrimSuffix(m.Path, "/")
		if before, twice := urls[at]; twice && before != m.URL {
			return nil, failf(KindContent, "keep one of them", "%s has two entries for %q", gitmodules, clean(at))
		}
		urls[at] = m.URL
	}
	return urls, nil
}

// sameHostHint goes with every url of a submodule that is not fetched from.
const sameHostHint = "submodules are fetched from the source's own server, with the source's credentials: write the url relative to that of this repository, such as ../name.git, " +
	"or copy the files here"

// submoduleURL finds where a submodule is, whose parent is at an endpoint, and refuses what is not on the parent's own server. A url that begins with ./ or ../ is relative
// to the parent's.
func submoduleURL(parent endpoint, raw string, allowFile bool) (string, error) {
	var at endpoint
	if strings.HasPrefix(raw, "./") || strings.HasPrefix(raw, "../") {
		path, ok := relativePath(parent.path, raw)
		if !ok {
			return "", failf(KindContent, sameHostHint, "its url %q leads out of the server", clean(raw))
		}
		at = parent
		at.path = path
	} else {
		var err error
		if at, err = parseURL(raw, allowFile); err != nil {
			e, _ := errors.AsType[*Error](err)
			return "", failf(KindContent, sameHostHint, "its url %s is not fetched from: %w", redact(raw), e.Err)
		}
	}
	if at.user == "" {
		at.user = parent.user
	}
	for part := range strings.SplitSeq(at.path, "/") {
		if part == ".." || part == "." {
			return "", failf(KindContent, sameHostHint, `its url %s holds "." or ".."`, redact(raw))
		}
	}
	if at.server() != parent.server() {
		return "", failf(KindContent, sameHostHint, "it is at %s, and this repository at %s: that is another server", redact(raw), parent)
	}
	url := at.write()
	if _, err := parseURL(url, allowFile); err != nil { // what a relative url has added was not looked at
		e, _ := errors.AsType[*Error](err)
		return "", failf(KindContent, sameHostHint, "its url %s is not fetched from: %w", redact(raw), e.Err)
	}
	return url, nil
}

// relativePath goes from a repository's path along a relative url, which names first how many names at the end of the path are left out.
func relativePath(path, relative string) (string, bool) {
	slash := func(r rune) bool { return r == '/' }
	names := strings.FieldsFunc(path, slash)
	for {
		rest, here := strings.CutPrefix(relative, "./")
		if !here {
			var up bool
			if rest, up = strings.CutPrefix(relative, "../"); !up {
				break
			}
			if len(names) == 0 {
				return "", false
			}
			names = names[:len(names)-1]
		}
		relative = rest
	}
	whole := strings.Join(append(names, strings.FieldsFunc(relative, slash)...), "/")
	if strings.HasPrefix(path, "/") {
		whole = "/" + whole
	}
	return whole, true
}

// server is what must be the same for credentials to be sent to a second repository: the scheme, who we are there, the host and the port.
func (e endpoint) server() endpoint {
	e.path = ""
	e.host = strings.ToLower(e.host)
	if e.port == "" {
		e.port = map[string]string{"https": "443", "http": "80"}[e.scheme]
	}
	return e
}

// write writes a url that parses to this endpoint again, which String does not promise: a path below a home directory of SSH has no slash before it.
func (e endpoint) write() string {
	if e.scheme != "ssh" || strings.HasPrefix(e.path, "/") || strings.HasPrefix(e.path, "~") {
		return e.String()
	}
	host := e.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if e.user != "" {
		host = e.user + "@" + host
	}
	return host + ":" + e.path
}
