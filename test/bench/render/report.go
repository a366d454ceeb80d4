package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// write puts the section "render" into the file with the results, in place of the one that is there.
func write(ctx context.Context, o options, kustomize string, rows []row) error {
	old, err := os.ReadFile(o.out)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte("# Measured\n\nWhat `make bench-…` has written; each section says on which machine.\n"), nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, replaced(old, section(ctx, o, kustomize, rows)), 0o644)
}

// replaced gives a document with another section of the same heading.
func replaced(document []byte, section string) []byte {
	heading, _, _ := strings.Cut(section, "\n")
	var b bytes.Buffer
	inside, done := false, false
	for line := range strings.Lines(string(document)) {
		if strings.HasPrefix(line, "## ") {
			if inside = strings.TrimSpace(line) == heading; inside {
				b.WriteString(section)
				done = true
			}
		}
		if !inside {
			b.WriteString(line)
		}
	}
	if !done {
		b.WriteString("\n" + section)
	}
	return b.Bytes()
}

func section(ctx context.Context, o options, kustomize string, rows []row) string {
	var b strings.Builder
	version, err := exec.CommandContext(ctx, kustomize, "version").Output()
	if err != nil {
		version = []byte("of unknown version")
	}
	fmt.Fprintf(&b, "## render\n\n`make bench-render`, %s: %s; %s; kustomize %s beside Mooring's %s. Median of %d renders; one run of kustomize, stopped after %s. The load average was %s in the end: above 3, others were at work too.\n\n",
		time.Now().UTC().Format(time.DateOnly), machine(), runtime.Version(), bytes.TrimSpace(version), library(), o.rounds, o.limit, load())
	b.WriteString("| objects | shape | files read | kustomize build | cold | one object changed | nothing changed |\n|---:|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | %s | %d | %s | %s | %s | %s |\n", r.objects, r.shape, r.files, r.kustomizeTime(), seconds(r.cold), seconds(r.one), seconds(r.none))
	}
	return b.String() + "\n"
}

func (r row) kustomizeTime() string {
	if r.stopped {
		return "over " + seconds(r.kustomize)
	}
	return seconds(r.kustomize)
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// library is the version of kustomize that is compiled in.
func library() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == "sigs.k8s.io/kustomize/api" {
				return "kustomize/api " + m.Version
			}
		}
	}
	return "kustomize/api"
}

// machine says what Linux says of it.
func machine() string {
	model := find("/proc/cpuinfo", "model name")
	memory := find("/proc/meminfo", "MemTotal")
	return fmt.Sprintf("%d cores, %s, %s of memory, %s/%s", runtime.NumCPU(), model, memory, runtime.GOOS, runtime.GOARCH)
}

// load says how busy the machine has been for the last fifteen minutes.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); len(fields) > 2 {
		return fields[2]
	}
	return "unknown"
}

// find gives the value of the first line of a file that begins with a name.
func find(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return "unknown"
	}
	defer func() { _ = f.Close() }() // it was opened for reading only
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if before, after, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(before) == name {
			return strings.TrimSpace(after)
		}
	}
	return "unknown"
}
