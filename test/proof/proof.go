// Package proof says how the proofs below it are to be made: each has a short form, which `make test` runs, and a whole one, which
// `make proof` runs. All that is left to chance comes out of one seed, which is printed, so that a failure can be run again:
//
//	MOORING_PROOF=full          the whole proof
//	MOORING_PROOF_SEED=12345    the same choices again
package proof

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Full says whether the whole proof is wanted.
func Full() bool { return os.Getenv("MOORING_PROOF") == "full" }

// Seed gives the seed of this proof, and prints it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) % 1_000_000_000 // short enough to be typed
	if text := os.Getenv("MOORING_PROOF_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("read MOORING_PROOF_SEED: %v", err)
		}
		seed = given
	}
	t.Logf("seed %d (MOORING_PROOF_SEED=%d makes the same choices again)", seed, seed)
	return seed
}
