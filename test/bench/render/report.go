package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/mooring-dev/mooring/test/results"
)

// write puts the section "render" into the file with the results.
func write(ctx context.Context, o options, kustomize string, rows []row) error {
	library, err := results.Module(ctx, "sigs.k8s.io/kustomize/api")
	if err != nil {
		return err
	}
	return results.Write(o.out, "", section(ctx, o, kustomize, library, rows))
}

func section(ctx context.Context, o options, kustomize, library string, rows []row) string {
	var b strings.Builder
	version, err := exec.CommandContext(ctx, kustomize, "version").Output()
	if err != nil {
		version = []byte("of unknown version")
	}
	fmt.Fprintf(&b, "## render\n\n`make bench-render`, %s: %s; kustomize %s beside Mooring's kustomize/api %s. Median of %d renders; one run of kustomize, stopped after %s. The load average of a minute was %s in the end: above 3, others were at work too.\n\n",
		results.Day(), results.Machine(), bytes.TrimSpace(version), library, o.rounds, o.limit, results.Load())
	b.WriteString("| objects | shape | files read | kustomize build | cold | one object changed | nothing changed |\n|---:|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %d | %s | %d | %s | %s | %s | %s |\n", r.objects, r.shape, r.files, r.kustomizeTime(), results.Duration(r.cold), results.Duration(r.one), results.Duration(r.none))
	}
	return b.String() + "\n"
}

func (r row) kustomizeTime() string {
	if r.stopped {
		return "over " + results.Duration(r.kustomize)
	}
	return results.Duration(r.kustomize)
}
