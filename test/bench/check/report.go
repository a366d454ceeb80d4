package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

func (f figure) String() string {
	return fmt.Sprintf("%6d objects, %s: first %s, again %s %s", f.objects, f.what, seconds(f.first), seconds(f.again), f.note)
}

// write puts the section "check" into the file with the results, in place of the one that is there.
func write(o options, begin string, figures []figure) error {
	old, err := os.ReadFile(o.out)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte("# Measured\n\nWhat `make bench-…` has written; each section says on which machine.\n"), nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, replaced(old, section(o, begin, figures)), 0o644) //nolint:gosec // a page of the documentation
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

func section(o options, begin string, figures []figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## check\n\n`make bench-check`, %s: %s; %s; istio %s. Median of up to %d; one where a check after a change takes over five seconds. The load average of a minute was %s in the beginning and %s in the end: above 3, others were at work too. First is a checker that has seen nothing, again the same checker after one object changed. Commands are processes from start to end.\n\n",
		time.Now().UTC().Format(time.DateOnly), machine(), runtime.Version(), istio(), o.rounds, begin, load())
	b.WriteString("| objects | what | first | again | |\n|---:|---|---:|---:|---|\n")
	for _, f := range figures {
		objects := ""
		if f.objects > 0 {
			objects = fmt.Sprint(f.objects)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", objects, f.what, seconds(f.first), seconds(f.again), f.note)
	}
	return b.String() + "\n"
}

func seconds(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// istio is the version of Istio that is compiled in.
func istio() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == "istio.io/istio" {
				return m.Version
			}
		}
	}
	return "of unknown version"
}

// machine says what Linux says of it.
func machine() string {
	return fmt.Sprintf("%d cores, %s, %s of memory, %s/%s", runtime.NumCPU(), find("/proc/cpuinfo", "model name"), find("/proc/meminfo", "MemTotal"), runtime.GOOS, runtime.GOARCH)
}

// load says how busy the machine has been for the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); len(fields) > 0 {
		return fields[0]
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
