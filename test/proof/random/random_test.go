package random_test

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/render/check"
	"github.com/mooring-dev/mooring/test/proof"
	"github.com/mooring-dev/mooring/test/proof/random"
)

// TestValid checks the states of a mesh, 60 or 1,000 of them: nobody has an Error to report.
func TestValid(t *testing.T) {
	seed := proof.Seed(t)
	mesh := random.New(seed)
	checker := check.New()
	said := "the first commit"
	states := 60
	if proof.Full() {
		states = 1000
	}
	for commit := range states {
		set, err := mesh.Set(t.Context())
		if err != nil {
			t.Fatalf("seed %d, commit %d (%s): %v", seed, commit, said, err)
		}
		report, err := checker.Check(t.Context(), check.Request{Set: set})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			if f.Level == check.Error {
				t.Errorf("seed %d, commit %d (%s): %v", seed, commit, said, f)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
		said = mesh.Change()
	}
}

// TestSame expects the same of the same seed, and something else of another. A prefix changes the names of namespaces only.
func TestSame(t *testing.T) {
	a, b, c := random.New(7), random.New(7), random.New(7, random.Options{Prefix: "other"})
	other := random.New(8)
	for range 50 {
		if diff := gocmp.Diff(a.Objects(), b.Objects()); diff != "" {
			t.Fatal(diff)
		}
		var said []string
		for _, m := range []*random.Mesh{a, b, c} {
			_ = m.Files()
			said = append(said, strings.ReplaceAll(m.Change(), "other-", "mesh-"))
		}
		if len(slices.Compact(said)) != 1 {
			t.Fatalf("one seed, and different commits: %q", said)
		}
	}
	if gocmp.Equal(a.Objects(), other.Objects()) {
		t.Error("two seeds give one mesh")
	}
}
