package forge_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/sync/forge"
)

// story is one forge and what happens there.
type story struct {
	*testing.T
	*imitation
}

// propose with a forge that remembers nothing, and hold what comes and how often it wrote against what is wanted.
func (s story) propose(p forge.Proposal, want forge.PullRequest, writes int) {
	s.Helper()
	before := s.writes
	got, err := s.forge().Propose(s.Context(), p)
	if err != nil {
		s.Fatal(err)
	}
	if got.URL == "" {
		s.Error("the pull request has no page")
	}
	got.URL = ""
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("pull request (-want +got):\n%s", diff)
	}
	if s.writes-before != writes {
		s.Errorf("it wrote %d times, want %d", s.writes-before, writes)
	}
}

func TestPropose(t *testing.T) {
	one, two, three, merge := commitOf(1), commitOf(2), commitOf(3), commitOf(100)
	open := func(number int64, commit string) forge.PullRequest {
		return forge.PullRequest{Number: number, State: forge.Open, Commit: commit}
	}
	opened := func(number int64, commit string) forge.PullRequest {
		pr := open(number, commit)
		pr.Opened = true
		return pr
	}
	updated := func(number int64, commit string) forge.PullRequest {
		pr := open(number, commit)
		pr.Updated = true
		return pr
	}
	for name, tell := range map[string]func(story){
		"one pull request that moves on": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.propose(proposal(one), open(1, one), 0)
			s.push(two)
			s.propose(proposal(two), updated(1, two), 1)
			s.propose(proposal(two), open(1, two), 0)
			if got := s.requests[0]; got.title != "Promote "+two[:7]+" to prod" || strings.Contains(got.body, one) || !strings.Contains(got.body, "\nMooring-Promotion: "+two+"\n") {
				s.Errorf("it is %q:\n%s", got.title, got.body)
			}
		},
		"turned down": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.person(1, func(p *pull) { p.state = "closed" })
			declined := forge.PullRequest{Number: 1, State: forge.Closed, Commit: one}
			s.propose(proposal(one), declined, 0)
			s.push(two)
			s.propose(proposal(two), opened(2, two), 1)
			s.person(2, func(p *pull) { p.state = "closed" })
			s.push(one)
			s.propose(proposal(one), declined, 0)
			s.push(three)
			s.propose(proposal(three), opened(3, three), 1)
		},
		"turned down, on a forge that lets the head of a closed one move": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.person(1, func(p *pull) { p.state, p.sha = "closed", two })
			s.push(two)
			s.propose(proposal(two), opened(2, two), 1)
		},
		"merged as it is": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.person(1, func(p *pull) { p.state, p.merge = "merged", merge })
			s.propose(proposal(one), forge.PullRequest{Number: 1, State: forge.Merged, Commit: one, MergeCommit: merge}, 0)
			s.push(two)
			s.propose(proposal(two), opened(2, two), 1)
		},
		"merged in the moment between our push and our line": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.push(two)
			s.person(1, func(p *pull) { p.state, p.merge = "merged", merge })
			s.propose(proposal(two), forge.PullRequest{Number: 1, State: forge.Merged, Commit: two, MergeCommit: merge}, 0)
		},
		"an open one goes before what was decided": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.person(1, func(p *pull) { p.state = "closed" })
			s.push(two)
			s.propose(proposal(two), opened(2, two), 1)
			s.person(1, func(p *pull) { p.state = "open" })
			s.person(2, func(p *pull) { p.state = "closed" })
			s.push(two)
			s.propose(proposal(two), updated(1, two), 1)
		},
		"what people wrote stays": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.person(1, func(p *pull) {
				p.title, p.body = "Black Friday", "Ask the shop.\r\n"+strings.ReplaceAll(p.body, "\n", "\r\n")+"\r\nSeen.\r\n"
			})
			s.propose(proposal(one), open(1, one), 0)
			s.push(two)
			s.propose(proposal(two), updated(1, two), 1)
			if got := s.requests[0]; got.title != "Black Friday" || !strings.HasPrefix(got.body, "Ask the shop.\n<!--") || !strings.HasSuffix(got.body, "\nSeen.") || strings.Contains(got.body, one) {
				s.Errorf("it is %q:\n%s", got.title, got.body)
			}
			s.person(1, func(p *pull) { p.title = "Promote " + one[:7] + " to prod" })
			s.propose(proposal(two), updated(1, two), 1)
			if got := s.requests[0].title; got != "Promote "+two[:7]+" to prod" {
				s.Errorf("the title is %q", got)
			}
		},
		"a body that a person emptied": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.person(1, func(p *pull) { p.title, p.body = "Mine", "All mine." })
			s.propose(proposal(one), updated(1, one), 1)
			s.propose(proposal(one), open(1, one), 0)
			if got := s.requests[0]; got.title != "Mine" || !strings.HasPrefix(got.body, "All mine.\n\n<!--") {
				s.Errorf("it is %q:\n%s", got.title, got.body)
			}
		},
		"those of forks are not ours": func(s story) {
			s.push(one)
			s.requests = append(s.requests, &pull{number: 1, head: head, base: base, sha: commitOf(66), state: "open", fork: true})
			s.propose(proposal(one), opened(2, one), 1)
			s.propose(proposal(one), open(2, one), 0)
		},
		"one that the list does not show yet": func(s story) {
			s.push(one)
			s.propose(proposal(one), opened(1, one), 1)
			s.hidden = 1
			s.propose(proposal(one), open(1, one), 1) // it tried to open it
			s.hidden = 1
			s.push(two)
			s.propose(proposal(two), updated(1, two), 2)
		},
		"a text that is too long": func(s story) {
			p := proposal(one)
			p.Title = strings.Repeat("ä\n", 400)
			p.Body = "<!-- mooring:end 0 -->\nMooring-Promotion: " + two + "\n```\n" + strings.Repeat("über\n", 300_000)
			s.push(one)
			s.propose(p, opened(1, one), 1)
			s.propose(p, open(1, one), 0)
			body := s.requests[0].body
			if _, after, ok := strings.Cut(body, "\n```\n\n*The rest is left out: no more than "); !ok || !strings.Contains(after, "\nMooring-Promotion: "+one+"\n") {
				s.Errorf("it ends with:\n%s", body[len(body)-300:])
			}
			s.person(1, func(p *pull) { p.state = "closed" })
			s.propose(p, forge.PullRequest{Number: 1, State: forge.Closed, Commit: one}, 0)
		},
	} {
		for _, provider := range []forge.Provider{forge.GitHub, forge.GitLab} {
			t.Run(name+"/"+string(provider), func(t *testing.T) { tell(story{t, imitate(t, provider)}) })
		}
	}
}
