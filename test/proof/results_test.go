package proof

import "testing"

// TestRecorded writes a title anew, and leaves all else as it is.
func TestRecorded(t *testing.T) {
	page := "# Measured\n\n## render\n\n| a |\n"
	page = recorded(page, "Traffic", "first\n")
	page = recorded(page, "Crash", "other\n")
	page = recorded(page, "Traffic", "second\n")
	want := "# Measured\n\n## render\n\n| a |\n\n## Proofs\n\n### Crash\n\nother\n\n### Traffic\n\nsecond\n"
	if page != want {
		t.Errorf("got\n%s\nwant\n%s", page, want)
	}
	between := recorded("## Proofs\n\n### Traffic\n\nold\n\n## after\n\ntext\n", "Traffic", "new\n")
	if want := "## Proofs\n\n### Traffic\n\nnew\n\n## after\n\ntext\n"; between != want {
		t.Errorf("got\n%s\nwant\n%s", between, want)
	}
}
