// Package results writes what was measured into test/bench/RESULTS.md, each figure with the machine that it was measured on.
package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

const preface = "# Measured\n\nWhat `make bench-…` has written; each section says on which machine.\n"

// Write puts a section into a file, in place of the one with the same heading; else at the end of the section with the heading under, or of the file. A
// section begins with its heading, such as "## render", and ends before the next one of the same level or above.
func Write(file, under, section string) error {
	old, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte(preface), nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(with(string(old), under, section)), 0o644) //nolint:gosec // a page of the documentation
}

// with gives a page with another section.
func with(page, under, section string) string {
	heading, _, _ := strings.Cut(section, "\n")
	if before, _, after, ok := cut(page, heading); ok {
		return join(before, section, after)
	}
	if under == "" {
		return join(page, section)
	}
	before, parent, after, ok := cut(page, under)
	if !ok {
		parent = under
	}
	return join(before, parent, section, after)
}

// cut a page around the section with a heading. Without one, all is before it.
func cut(page, heading string) (before, section, after string, ok bool) {
	level := strings.IndexByte(heading, ' ')
	lines := strings.SplitAfter(page, "\n")
	from, to := -1, len(lines)
	for i, line := range lines {
		depth := strings.IndexByte(line, ' ')
		title := depth > 0 && strings.Trim(line[:depth], "#") == ""
		switch {
		case from < 0 && strings.TrimSpace(line) == heading:
			from = i
		case from >= 0 && title && depth <= level:
			to = i
		}
		if to == i {
			break
		}
	}
	if from < 0 {
		return page, "", "", false
	}
	return strings.Join(lines[:from], ""), strings.Join(lines[from:to], ""), strings.Join(lines[to:], ""), true
}

// join parts of a page with one empty line between them.
func join(parts ...string) string {
	var kept []string
	for _, part := range parts {
		if part = strings.Trim(part, "\n"); part != "" {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "\n\n") + "\n"
}

// Day is today's date, as the results write it.
func Day() string { return time.Now().UTC().Format(time.DateOnly) }

// Machine says what Linux says of it, and which Go is at work.
func Machine() string {
	return fmt.Sprintf("%d cores, %s, %s of memory, %s/%s; %s", runtime.NumCPU(), value("/proc/cpuinfo", "model name"),
		value("/proc/meminfo", "MemTotal"), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

// Load says how busy the machine has been for the last minute. Above the number of its cores, others were at work too.
func Load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}

// Module gives the version of a module that the project is built with.
func Module(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", path).Output()
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", path, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Duration writes one with the precision of a figure: milliseconds below a second.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}

// value is that of the first line of a file that begins with a name.
func value(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if before, after, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(before) == name {
			return strings.TrimSpace(after)
		}
	}
	return "unknown"
}
