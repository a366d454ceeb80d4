package results_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/test/results"
)

// A section is written anew where it stands, a new one at the end of what it belongs to, and all else stays.
func TestWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "RESULTS.md")
	for _, w := range [][2]string{
		{"", "## render\n\n| a |\n"},
		{"## Proofs", "### traffic\n\nfirst\n"},
		{"", "## sync\n\n### inside\n\nold\n"},
		{"## Proofs", "### crashes\n\nother"},
		{"## Proofs", "### traffic\n\nsecond\n\n"},
		{"", "## sync\n\nnew\n"},
	} {
		if err := results.Write(file, w[0], w[1]); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Measured\n\nWhat `make bench-…` has written; each section says on which machine.\n\n## render\n\n| a |\n\n" +
		"## Proofs\n\n### traffic\n\nsecond\n\n### crashes\n\nother\n\n## sync\n\nnew\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
