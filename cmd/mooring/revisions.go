package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mooring-dev/mooring/repos"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// commitOf is the id of the commit in a revision; empty for what is none.
func commitOf(revision string) string {
	rev, err := repos.ParseRevision(revision)
	if err != nil {
		return ""
	}
	return string(rev.Commit)
}

// sameCommit says whether two revisions are of one commit, whatever the branch is called.
func sameCommit(x, y string) bool { return commitOf(x) != "" && commitOf(x) == commitOf(y) }

// shortCommit is what a person types.
func shortCommit(revision string) string {
	id := commitOf(revision)
	return id[:min(len(id), 7)]
}

// leastDigits of an id by which a commit may be named.
const leastDigits = 7

// isNamed says whether what somebody typed names a revision: the whole of it, its commit's id or the beginning of that, or what short tables show.
func isNamed(word, revision string) bool {
	if word == revision || word == shortRevision(revision) {
		return true
	}
	return len(word) >= leastDigits && strings.HasPrefix(commitOf(revision), strings.ToLower(strings.TrimPrefix(word, "sha1:")))
}

// pickRevision finds the one among revisions that a word names. Several revisions of one commit are one; the first counts.
func pickRevision(word string, among []string) (string, error) {
	found := ""
	for _, revision := range among {
		switch {
		case !isNamed(word, revision):
		case found == "":
			found = revision
		case !sameCommit(found, revision):
			return "", withHint(fmt.Errorf("revision %s: several begin like that: %s and %s", word, found, revision), "write more digits of it")
		}
	}
	if found == "" {
		return "", fmt.Errorf("revision %s: it is not there", word)
	}
	return found, nil
}

// revisionsOf a Mooring's history, newest first.
func revisionsOf(m *v1alpha1.Mooring) []string {
	all := make([]string, len(m.Status.History))
	for i, e := range m.Status.History {
		all[i] = e.Revision
	}
	return all
}

// entryOf is the newest entry of history with this very revision's commit; nil where there is none.
func entryOf(m *v1alpha1.Mooring, revision string) *v1alpha1.HistoryEntry {
	for i := range m.Status.History {
		if e := &m.Status.History[i]; sameCommit(e.Revision, revision) {
			return e
		}
	}
	return nil
}

// authorName is the author of a commit without the address.
func authorName(author string) string {
	name, _, _ := strings.Cut(author, " <")
	return strings.TrimSpace(name)
}

// completeRevisionOf offers revisions of the Mooring that is named on the command line.
func (f *clusterFlags) completeRevisionOf(from func(*v1alpha1.Mooring) []cobra.Completion) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		cluster, err := f.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		m, err := cluster.mooring(ctx, args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return from(m), cobra.ShellCompDirectiveNoFileComp
	}
}

// inHistory offers what was applied.
func inHistory(m *v1alpha1.Mooring) []cobra.Completion {
	var all []cobra.Completion
	seen := map[string]bool{}
	for _, e := range m.Status.History {
		if short := shortCommit(e.Revision); short != "" && !seen[short] {
			seen[short] = true
			all = append(all, cobra.CompletionWithDesc(short, oneLine(e.Subject)))
		}
	}
	return all
}
