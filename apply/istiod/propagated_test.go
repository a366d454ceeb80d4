package istiod_test

import (
	"testing"

	"github.com/mooring-dev/mooring/apply/istiod"
	pilot "github.com/mooring-dev/mooring/test/istiod"
)

func TestAcknowledged(t *testing.T) {
	w := newWorld(t)
	p := pilot.Start(t, w.cluster, pilot.Options{})
	written := w.write(serviceOf("shop"))
	c := pilot.Connect(t, p, pilot.Proxy{Namespace: w.namespace}, pilot.Behaviour{})
	took := w.propagated(w.by(istiod.Policy{}, p), written)
	t.Log("service", took)
	for _, subset := range []string{"a", "b", "c", "d", "e"} {
		took := w.propagated(w.by(istiod.Policy{}, p), w.write(rule("shop", subset)))
		t.Log("rule", took)
		if !w.hasSubset(c, "shop", subset) {
			t.Errorf("subset %s is said to be everywhere, and the proxy does not have it", subset)
		}
	}
}
