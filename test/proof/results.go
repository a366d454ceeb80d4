package proof

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Record puts the figures of a whole proof below their title into the section "Proofs" of test/bench/RESULTS.md, in place of those that are there, with the
// machine, the versions and the day.
func Record(t testing.TB, title, figures string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the root of the repository: %v", err)
	}
	file := filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "test", "bench", "RESULTS.md")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("`make proof`, %s: %s; %s; istio %s.\n\n%s\n", time.Now().UTC().Format(time.DateOnly), machine(), runtime.Version(), istio(t), strings.TrimSpace(figures))
	if err := os.WriteFile(file, []byte(recorded(string(old), title, text)), 0o644); err != nil { //nolint:gosec // a page of the documentation
		t.Fatal(err)
	}
}

// recorded gives the page with another text below a title of the section.
func recorded(page, title, text string) string {
	const section = "## Proofs\n"
	if !strings.Contains(page, section) {
		page = strings.TrimRight(page, "\n") + "\n\n" + section
	}
	before, rest, _ := strings.Cut(page, section)
	inside, after := rest, ""
	if at := strings.Index(rest, "\n## "); at >= 0 {
		inside, after = rest[:at+1], rest[at+1:]
	}
	var b strings.Builder
	dropped := false
	for line := range strings.Lines(inside) {
		if strings.HasPrefix(line, "### ") {
			dropped = strings.TrimSpace(line) == "### "+title
		}
		if !dropped {
			b.WriteString(line)
		}
	}
	others := strings.Trim(b.String(), "\n")
	if others != "" {
		others += "\n\n"
	}
	if after != "" {
		after = "\n" + after
	}
	return before + section + "\n" + others + "### " + title + "\n\n" + text + after
}

// machine says what Linux says of it.
func machine() string {
	return fmt.Sprintf("%d cores, %s, %s of memory, %s/%s, load average %s", runtime.NumCPU(), value("/proc/cpuinfo", "model name"),
		value("/proc/meminfo", "MemTotal"), runtime.GOOS, runtime.GOARCH, load())
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
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

// istio is the version that the project is built with, also where it is another process that has it.
func istio(t testing.TB) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "istio.io/istio").Output()
	if err != nil {
		t.Fatalf("find the version of Istio: %v", err)
	}
	return strings.TrimSpace(string(out))
}
