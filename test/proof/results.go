package proof

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/test/results"
)

// Record puts the figures of a whole proof below their title into the section "Proofs" of test/bench/RESULTS.md, in place of those that are there, with the
// machine, the versions and the day.
func Record(t testing.TB, title, figures string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the root of the repository: %v", err)
	}
	istio, err := results.Module(t.Context(), "istio.io/istio")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(strings.TrimSpace(string(out))), "test", "bench", "RESULTS.md")
	section := fmt.Sprintf("### %s\n\n`make proof`, %s: %s; istio %s; load average %s in the end.\n\n%s\n",
		title, results.Day(), results.Machine(), istio, results.Load(), strings.TrimSpace(figures))
	if err := results.Write(file, "## Proofs", section); err != nil {
		t.Fatal(err)
	}
}
