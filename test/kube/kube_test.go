package kube_test

import (
	"os"
	"testing"

	"github.com/mooring-dev/mooring/test/kube"
)

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

func TestStart(t *testing.T) {
	c := kube.Start(t)
	out, err := c.Kubectl(t.Context(), "get", "crds")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out)
	t.Log(c.Requests(t))
}
