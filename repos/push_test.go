package repos_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/test/gitserver"
)

// The programs of this machine do it too, where tests allow them.
func TestAdvanceLocally(t *testing.T) {
	t.Parallel()
	repo := gitserver.NewRepo(t, map[string]string{"v": "1"})
	from := repos.Commit(repo.Resolve("main"))
	repo.SetBranch("env/prod", "main")
	to := repos.Commit(repo.Commit(gitserver.Change{Files: map[string]string{"v": "2"}}))
	store, _ := open(t, repos.Options{AllowFile: true})
	if err := store.Advance(t.Context(), repos.Remote{URL: "file://" + repo.Dir}, "env/prod", from, to); err != nil {
		t.Fatal(err)
	}
	wantBranch(t, repo, "env/prod", to)
	err := store.Advance(t.Context(), repos.Remote{URL: "file://" + repo.Dir}, "env/prod", to, from)
	wantKind(t, err, repos.KindDiverged)
}

// Whatever a server answers to a push, only a report that the branch has moved is taken for success.
func TestHostileReports(t *testing.T) {
	t.Parallel()
	const branch = "refs/heads/env/prod"
	band := func(n byte, text string) string { return line(string(n) + text) }
	report := func(lines ...string) string {
		var b strings.Builder
		for _, l := range lines {
			b.WriteString(line(l + "\n"))
		}
		return b.String() + "0000"
	}
	const caps = "report-status side-band-64k delete-refs"
	for _, c := range []struct {
		name, caps, answer string
		kind               repos.Kind
		says               string
	}{
		{"well", caps, band(1, report("unpack ok", "ok "+branch)) + "0000", "", ""},
		{"well, without bands", "report-status", report("unpack ok", "ok "+branch), "", ""},
		{"well, in pieces", caps, band(2, "hm\n") + band(1, report("unpack ok", "ok "+branch)[:9]) + band(2, "so\n") + band(1, report("unpack ok", "ok "+branch)[9:]) + "0000", "", ""},
		{"well, cut off after the report", caps, band(1, report("unpack ok", "ok "+branch)), "", ""},
		{"no disk", caps, band(2, "no space left\n") + band(1, report("unpack index-pack failed")) + "0000", repos.KindUnavailable, "index-pack failed; it says: no space left"},
		{"another branch", caps, band(1, report("unpack ok", "ok refs/heads/other")) + "0000", repos.KindProtocol, "may have moved"},
		{"no", caps, band(1, report("unpack ok", "ng "+branch+" protected \x1b[31mbranch")) + "0000", repos.KindRefused, "protected [31mbranch"},
		{"words alone", caps, band(2, "come back later") + "0000", repos.KindProtocol, "come back later"},
		{"nothing", caps, "", repos.KindUnavailable, "in the middle"},
		{"a flush", caps, "0000", repos.KindProtocol, "does not report"},
		{"last words", caps, band(3, "out of memory"), repos.KindProtocol, "out of memory"},
		{"an error", caps, line("ERR you are not allowed to push"), repos.KindAuth, "not allowed to push"},
		{"an error, without bands", "report-status", line("ERR you are not allowed to push"), repos.KindAuth, "not allowed to push"},
		{"half a report", caps, band(1, report("unpack ok", "ok "+branch)[:20]) + "0000", repos.KindProtocol, "does not report"},
		{"a web page", caps, "<html>", repos.KindProtocol, "garbled"},
		{"no reports", "side-band-64k", "", repos.KindProtocol, "lacks report-status"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if service := r.URL.Query().Get("service"); service != "" {
					w.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
					_, _ = io.WriteString(w, line("# service="+service+"\n")+"0000"+line(someID+" "+branch+"\x00"+c.caps+"\n")+"0000")
					return
				}
				_, _ = io.WriteString(w, c.answer)
			}))
			defer s.Close()
			store, _ := open(t, repos.Options{})
			err := store.SetBranch(t.Context(), repos.Remote{URL: s.URL + "/x.git"}, "env/prod", someID, repos.Commit(strings.Repeat("ab", 20)))
			if c.kind == "" && err != nil {
				t.Error(err)
			} else if c.kind != "" {
				wantKind(t, err, c.kind, c.says)
			}
		})
	}
}
