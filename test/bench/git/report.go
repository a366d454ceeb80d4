package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/mooring-dev/mooring/test/results"
)

// peakGoal is what a process that fetches may need.
const peakGoal = 150 << 20

func (b *bench) write(ctx context.Context) error {
	version, err := exec.CommandContext(ctx, "git", "--version").Output()
	if err != nil {
		return err
	}
	library, err := results.Module(ctx, "github.com/go-git/go-git/v5")
	if err != nil {
		return err
	}
	var s strings.Builder
	fmt.Fprintf(&s, "## git\n\n`make bench-git`, %s: %s; %s, go-git %s. git http-backend on the same machine, over HTTP on the loopback address. The load average of a minute was %s in the end.\n\n",
		results.Day(), results.Machine(), strings.TrimSpace(string(version)), library, results.Load())
	s.WriteString("Of each repository one folder is wanted: of the monorepo one of its applications. Mooring's process runs already and holds nothing else, as in an agent; git starts one for each step. Peak memory is that of Mooring's process since it began, and of the largest of git's. To reach: ")
	s.WriteString("a poll within 1.2 times `git ls-remote`, after one commit within 1.5 times `git fetch`, and 150 MB of memory in all cases.\n\n")
	s.WriteString("| what | Mooring | git | git, without reading | to reach | memory | git's | on disk | git's |\n|---|---:|---:|---:|---|---:|---:|---:|---:|\n")
	for _, r := range b.rows {
		fmt.Fprintf(&s, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.what, results.Duration(r.mooring.took), results.Duration(r.git.took), r.alone(), r.reached(),
			mb(r.mooring.peak), mb(r.git.peak), mb(r.mooring.disk), mb(r.git.disk))
	}
	s.WriteString("\n")
	for _, r := range b.rows {
		fmt.Fprintf(&s, "- %s: %s.\n", r.what, r.note)
	}
	return results.Write(b.options.out, "", s.String())
}

func (r row) String() string {
	return fmt.Sprintf("%s: %s, %s, %s on disk; git %s (without reading %s), %s, %s on disk; %s", r.what, results.Duration(r.mooring.took), mb(r.mooring.peak), mb(r.mooring.disk),
		results.Duration(r.git.took), r.alone(), mb(r.git.peak), mb(r.git.disk), r.reached())
}

func (r row) alone() string {
	if r.plain == 0 {
		return ""
	}
	return results.Duration(r.plain)
}

// reached says what was to be reached, and whether it was.
func (r row) reached() string {
	var said []string
	if r.factor > 0 {
		beside := r.git.took
		if r.plain > 0 {
			beside = r.plain
		}
		said = append(said, fmt.Sprintf("%.1f×: %.2f×%s", r.factor, float64(r.mooring.took)/float64(beside), missed(float64(r.mooring.took) > r.factor*float64(beside))))
	}
	if r.mooring.peak > 0 {
		said = append(said, "150 MB"+missed(r.mooring.peak > peakGoal))
	}
	return strings.Join(said, ", ")
}

func missed(yes bool) string {
	if yes {
		return " **missed**"
	}
	return ""
}

// mb writes bytes as megabytes of 2^20, or as kilobytes of 2^10 where they are few.
func mb(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 1<<20:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
