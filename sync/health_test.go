package sync_test

import (
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/sync/report"
	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

// Expressions that do not compile are a fault of the spec: no new commit is taken up by them, and the last one is kept.
func TestHealthChecksThatDoNotCompileKeepTheLastCommit(t *testing.T) {
	w := newWorld()
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	w.m.Spec.HealthChecks = []v1alpha1.HealthCheck{
		{APIVersion: "example.com/v1", Kind: "Machine", Current: "status.phase == 'Up'", Failed: "status.phase =="},
		{APIVersion: "example.com/v1", Kind: "Disk", Current: "size(1)"},
	}
	w.m.Generation, w.head = 2, rev("b")
	for range 2 {
		out := w.pass(t)
		want(t, out, v1alpha1.ReasonCheckFailed)
		message := report.Message(out)
		for _, part := range []string{"spec.healthChecks[0].failed does not compile", "spec.healthChecks[1].current", "edit the Mooring", rev("a").String() + " stays in force"} {
			if !strings.Contains(message, part) {
				t.Errorf("the message lacks %q: %s", part, message)
			}
		}
		if out.Again != report.AgainNever || w.lastPlanned() != "a" {
			t.Errorf("looked at again %q, planned %v", out.Again, w.planned)
		}
	}
	w.m.Spec.HealthChecks[0].Failed, w.m.Spec.HealthChecks[1].Current = "", "true"
	w.m.Generation = 3
	want(t, w.pass(t), v1alpha1.ReasonApplied)
	if w.lastPlanned() != "b" {
		t.Errorf("planned %v", w.planned)
	}
}
