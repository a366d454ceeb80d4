package istiod_test

import (
	"os"
	"testing"

	"github.com/mooring-dev/mooring/test/istiod"
)

func TestMain(m *testing.M) { os.Exit(istiod.Run(m)) }
