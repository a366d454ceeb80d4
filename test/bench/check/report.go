package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/mooring-dev/mooring/test/results"
)

func (f figure) String() string {
	return fmt.Sprintf("%6d objects, %s: first %s, again %s %s", f.objects, f.what, results.Duration(f.first), results.Duration(f.again), f.note)
}

// write puts the section "check" into the file with the results.
func write(ctx context.Context, o options, begin string, figures []figure) error {
	istio, err := results.Module(ctx, "istio.io/istio")
	if err != nil {
		return err
	}
	return results.Write(o.out, "", section(o, begin, istio, figures))
}

func section(o options, begin, istio string, figures []figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## check\n\n`make bench-check`, %s: %s; istio %s. Median of up to %d; one where a check after a change takes over five seconds. The load average of a minute was %s in the beginning and %s in the end: above 3, others were at work too. First is a checker that has seen nothing, again the same checker after one object changed. Commands are processes from start to end.\n\n",
		results.Day(), results.Machine(), istio, o.rounds, begin, results.Load())
	b.WriteString("| objects | what | first | again | |\n|---:|---|---:|---:|---|\n")
	for _, f := range figures {
		objects := ""
		if f.objects > 0 {
			objects = fmt.Sprint(f.objects)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", objects, f.what, results.Duration(f.first), results.Duration(f.again), f.note)
	}
	return b.String() + "\n"
}
