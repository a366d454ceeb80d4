package repos_test

import (
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
)

const someID = "4f0c1d2e3f4a5b6c7d8e9f0a1b2c3d4e5f6a7b8c"

func TestRefValidate(t *testing.T) {
	t.Parallel()
	for _, r := range []repos.Ref{
		{Branch: "main"},
		{Branch: "env/prod"},
		{Branch: "a@b"},
		{Branch: "ünï/cödé"},
		{Tag: "v1.2.0"},
		{Tag: "release-1.0+build"},
		{SemVer: "1.x"},
		{SemVer: ">=1.2.0-0 <2.0.0 || ~3.1"},
		{Name: "refs/pull/7/head"},
		{Name: "HEAD"},
		{Commit: someID},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
	for _, c := range []struct {
		ref  repos.Ref
		says string
	}{
		{repos.Ref{}, "0 fields set"},
		{repos.Ref{Branch: "main", Tag: "v1"}, "2 fields set"},
		{repos.Ref{SemVer: ">>1"}, "not a range of versions"},
		{repos.Ref{SemVer: " "}, "not a range of versions"},
		{repos.Ref{SemVer: "latest"}, "not a range of versions"},
		{repos.Ref{SemVer: "1.x\nx"}, "not a range of versions"},
		{repos.Ref{SemVer: strings.Repeat("1 || ", 1000) + "1"}, "not a range of versions"},
		{repos.Ref{SemVer: "1.x", Tag: "v1"}, "2 fields set"},
		{repos.Ref{Branch: "refs/heads/main"}, "leave out refs/heads/"},
		{repos.Ref{Tag: "refs/tags/v1"}, "leave out"},
		{repos.Ref{Name: "pull/7/head"}, "does not begin with refs/"},
		{repos.Ref{Commit: "4f0c1d2"}, "not a full commit id"},
		{repos.Ref{Commit: strings.ToUpper(someID)}, "not a full commit id"},
		{repos.Ref{Branch: "a..b"}, ".."},
		{repos.Ref{Branch: "a b"}, "' '"},
		{repos.Ref{Branch: "a\nb"}, `'\n'`},
		{repos.Ref{Branch: "-x"}, "begins with"},
		{repos.Ref{Branch: "--upload-pack=/bin/sh"}, "begins with"},
		{repos.Ref{Branch: "a/.b"}, "part"},
		{repos.Ref{Branch: "a.lock"}, "part"},
		{repos.Ref{Branch: "a/"}, "ends with"},
		{repos.Ref{Branch: "/a"}, "begins"},
		{repos.Ref{Branch: "a@{1}"}, "@{"},
		{repos.Ref{Branch: "a:b"}, "':'"},
		{repos.Ref{Branch: "*"}, "'*'"},
		{repos.Ref{Branch: strings.Repeat("a", 300)}, "longer"},
	} {
		wantKind(t, c.ref.Validate(), repos.KindRef, c.says)
	}
}

func TestRevision(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rev  repos.Revision
		text string
	}{
		{repos.Revision{}, ""},
		{repos.Revision{Ref: "main", Commit: someID}, "main@sha1:" + someID},
		{repos.Revision{Ref: "env/prod@eu", Commit: someID}, "env/prod@eu@sha1:" + someID},
		{repos.Revision{Ref: "refs/pull/7/head", Commit: someID}, "refs/pull/7/head@sha1:" + someID},
		{repos.Revision{Commit: someID}, "sha1:" + someID},
	} {
		if got := c.rev.String(); got != c.text {
			t.Errorf("%+v = %q, want %q", c.rev, got, c.text)
		}
		if got, err := repos.ParseRevision(c.text); err != nil || got != c.rev {
			t.Errorf("parse %q = %+v, %v; want %+v", c.text, got, err, c.rev)
		}
		if got := c.rev.IsZero(); got != (c.text == "") {
			t.Errorf("%q is zero: %v", c.text, got)
		}
	}
	for _, text := range []string{
		"main", "main@sha1:", "main@sha1:123", "main@sha256:" + someID, "@sha1:" + someID, someID,
		"sha1:" + strings.ToUpper(someID), "main@sha1:" + someID + "0", "a b@sha1:" + someID, " sha1:" + someID,
	} {
		_, err := repos.ParseRevision(text)
		wantKind(t, err, repos.KindRef, "is not a revision")
	}
}

// What is parsed prints as it was.
func FuzzParseRevision(f *testing.F) {
	for _, seed := range []string{"", "main@sha1:" + someID, "sha1:" + someID, "a@sha1:" + someID + "@sha1:" + someID, "@sha1:", "x@sha1:zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rev, err := repos.ParseRevision(text)
		if err != nil {
			if !rev.IsZero() || rev.Ref != "" {
				t.Errorf("an error with revision %+v", rev)
			}
			return
		}
		if got := rev.String(); got != text {
			t.Errorf("%q prints as %q", text, got)
		}
	})
}
