package main

import (
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/test/results"
)

// write puts the section "sync" into the file with the results.
func (b *bench) write(begin string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "## sync\n\n`make bench-sync`, %s: %s. kube-apiserver 1.37 with etcd on the same machine, no istiod, no admission webhooks. The load average of a minute was %s in the beginning and %s in the end: above 3, others were at work too.\n\n",
		results.Day(), results.Machine(), begin, results.Load())
	if b.fluxNote != "" {
		fmt.Fprintf(&text, "%s\n\n", b.fluxNote)
	}
	head := []string{"", "Mooring", "beside it", "to reach"}
	if b.flux != nil {
		head = []string{"", "Mooring", "Flux's kustomize-controller " + b.flux.Version, "beside it", "to reach"}
	}
	line(&text, head...)
	text.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range b.rows {
		if b.flux != nil {
			line(&text, r.what, r.mooring, r.flux, r.beside, r.goal)
		} else {
			line(&text, r.what, r.mooring, r.beside, r.goal)
		}
	}
	return results.Write(b.out, "", text.String())
}

func line(text *strings.Builder, cells ...string) {
	fmt.Fprintf(text, "| %s |\n", strings.Join(cells, " | "))
}
