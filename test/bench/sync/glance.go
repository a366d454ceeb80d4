package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/results"
)

// glance is what can be seen of a process from outside: what was asked of the API server so far, and what Linux knows of the process.
type glance struct {
	asked kube.Requests
	cpu   time.Duration
	// resident memory, now and at most.
	resident, peak string
}

func (b *bench) glance(ctx context.Context, pid int) (glance, error) {
	var g glance
	var err error
	if g.asked, err = b.asked(ctx); err != nil {
		return g, err
	}
	if g.cpu, err = cpu(pid); err != nil {
		return g, err
	}
	if g.resident, err = status(pid, "VmRSS"); err != nil {
		return g, err
	}
	g.peak, err = status(pid, "VmHWM")
	return g, err
}

// settle is how long what was done before may still have effects.
const settle = 5 * time.Second

// leaveAlone tells what a process does when nobody wants anything of it, and how much memory it has. passes counts those that it has made so far.
func (b *bench) leaveAlone(ctx context.Context, rest time.Duration, pid int, passes func() (float64, error)) (said, memory string, err error) {
	if err := pause(ctx, settle); err != nil {
		return "", "", err
	}
	begun, err := passes()
	if err != nil {
		return "", "", err
	}
	before, err := b.glance(ctx, pid)
	if err != nil {
		return "", "", err
	}
	if err := pause(ctx, rest); err != nil {
		return "", "", err
	}
	after, err := b.glance(ctx, pid)
	if err != nil {
		return "", "", err
	}
	ended, err := passes()
	if err != nil {
		return "", "", err
	}
	requests := after.asked.Since(before.asked)
	said = fmt.Sprint(requests.Total())
	if requests.Total() > 0 {
		said += " (" + strings.ReplaceAll(strings.TrimSpace(requests.String()), "\n", "; ") + ")"
	}
	said = fmt.Sprintf("%s requests that are no watches in %.0f passes, %.2f %% of a core", said, ended-begun, 100*(after.cpu-before.cpu).Seconds()/rest.Seconds())
	return said, fmt.Sprintf("%s, at most %s before", after.resident, after.peak), nil
}

// restarted tells what it cost to begin anew.
func (g glance) restarted(before kube.Requests, took time.Duration) string {
	requests := g.asked.Since(before)
	objects := aboutObjects(requests)
	tried := objects.Only(func(r kube.Request) bool { return r.DryRun })
	wrote := objects.Only(kube.Request.Write)
	return fmt.Sprintf("%s, %d requests (%d about objects: %d dry runs, %d writes), %s of memory at most",
		results.Duration(took), requests.Total(), objects.Total(), tried.Total(), wrote.Total(), g.peak)
}

// aboutObjects leaves out what concerns no object that is applied: Moorings, Events and the like.
func aboutObjects(all kube.Requests) kube.Requests {
	return all.Only(func(r kube.Request) bool { return r.Resource == "serviceentries" || r.Resource == "destinationrules" })
}

// cpu is how long a process has used a core so far. Linux counts it in hundredths of a second.
func cpu(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is not what it was: %s", pid, text)
	}
	var ticks int64
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// status gives a line of /proc/PID/status in megabytes.
func status(pid int, name string) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if before, after, ok := strings.Cut(line, ":"); ok && before == name {
			kilobytes, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(after), " kB"))
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%d MB", kilobytes/1000), nil
		}
	}
	return "", fmt.Errorf("/proc/%d/status has no %s", pid, name)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
