package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// The body of a pull request holds our part, between two comments that no page shows:
//
//	<!-- mooring:begin -->
//	what the proposal says
//
//	Mooring-Promotion: 4f0c…
//	<!-- mooring:end 1a2b3c4d5e6f -->
//
// The line says which commit it is about, also when the branch has moved on and nobody remembers. The end holds the hash of the title that we wrote, so
// that we know one that a person wrote.
const (
	begin    = "<!-- mooring:begin -->"
	endBegin = "<!-- mooring:end"
	trailer  = "Mooring-Promotion: "
)

var endLine = regexp.MustCompile(`(?m)^<!-- mooring:end ?([0-9a-f]*) -->[ \t]*$`)

// maxTitle is below what all forges take: GitHub 256, GitLab and Gitea 255.
const maxTitle = 250

// maxBody is what fits, in characters; counted as bytes, which are never fewer. Gitea has no limit of its own, only its database's.
func maxBody(p Provider) int {
	if p == GitHub {
		return 65536
	}
	return 1 << 20 // GitLab's
}

// part is a body taken apart.
type part struct {
	// before and after our part: a person's.
	before, after string
	// title is the hash in its end; empty where there is none.
	title string
	// ours is what is in between.
	ours string
}

var newlines = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// plain is a body in one form: a browser sends CRLF, and some forges drop the space at the end.
func plain(body string) string {
	return strings.TrimRight(newlines.Replace(body), " \t\n")
}

// split takes a body apart. Where our part is missing, all of it is a person's.
func split(body string) part {
	body = plain(body)
	start := strings.Index(body, begin)
	if start < 0 {
		return part{before: body}
	}
	rest := body[start+len(begin):]
	end := endLine.FindStringSubmatchIndex(rest)
	if end == nil { // a person cut into it: what is left of ours is replaced
		return part{before: body[:start], ours: rest}
	}
	return part{before: body[:start], after: rest[end[1]:], ours: rest[:end[0]], title: rest[end[2]:end[3]]}
}

// promoted is the commit that a body is about: the last of its lines that say so, since what a proposal says may quote one.
func promoted(body string) string {
	p := split(body)
	from := p.ours
	if from == "" {
		from = p.before
	}
	lines := strings.Split(from, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if commit, ok := strings.CutPrefix(strings.TrimSpace(lines[i]), trailer); ok && commitID.MatchString(commit) {
			return commit
		}
	}
	return ""
}

// compose writes a body: our part anew, within what a person wrote around it.
func compose(p Proposal, around part, title string, provider Provider) string {
	before := around.before
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n\n"
	}
	head := before + begin + "\n"
	tail := "\n\n" + trailer + p.Commit + "\n" + endBegin + " " + title + " -->" + around.after
	said := strings.TrimSpace(plain(p.Body))
	// Somebody's commit message must not end our part.
	said = strings.ReplaceAll(said, "<!-- mooring:", "<!-- mooring ")
	return plain(head + cut(said, maxBody(provider)-len(head)-len(tail), maxBody(provider)) + tail)
}

// cut shortens Markdown to so many bytes.
func cut(said string, room, limit int) string {
	if len(said) <= room {
		return said
	}
	const fence = "\n```"
	left := fmt.Sprintf("\n\n*The rest is left out: no more than %d characters fit here.*", limit)
	end := max(room-len(left)-len(fence), 0)
	for end > 0 && !utf8.RuneStart(said[end]) {
		end--
	}
	said = said[:end]
	if line := strings.LastIndexByte(said, '\n'); line > end/2 {
		said = said[:line]
	}
	if open := len(fenceLine.FindAllString(said, -1)); open%2 == 1 { // else our own lines would be code, too
		said += fence
	}
	return said + left
}

var fenceLine = regexp.MustCompile("(?m)^```")

// oneLine is a title that every forge takes.
func oneLine(title string) string {
	title = strings.Join(strings.Fields(title), " ")
	if runes := []rune(title); len(runes) > maxTitle {
		title = strings.TrimSpace(string(runes[:maxTitle-1])) + "…"
	}
	return title
}

// sum is how a title is recognised.
func sum(title string) string {
	hash := sha256.Sum256([]byte(title))
	return hex.EncodeToString(hash[:6])
}
