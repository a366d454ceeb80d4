package e2e_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// TestHealthByExpressions tells by spec.healthChecks when a ConfigMap is healthy, which nobody else would know.
func TestHealthByExpressions(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, some("a=starting"))
	check := v1alpha1.HealthCheck{APIVersion: "v1", Kind: "ConfigMap", Current: "data.value == 'up'", Failed: "data.value == 'down'"}
	u := s.mooring("prod", func(m *mooring) {
		waiting(10 * time.Minute)(m)
		m.Spec.HealthChecks = []v1alpha1.HealthCheck{check}
	})
	m := u.until("it waits for the ConfigMap", world.HasReason(v1alpha1.ReasonProgressing))
	ready(t, m, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, "ConfigMap/"+s.ns+"/a (InProgress: spec.healthChecks[0].current is not true)")

	// A commit ends the wait, and so does another expression.
	u.inForce(s.commit(some("a=up")))
	s.commit(some("a=down"))
	m = u.until("it waits for the ConfigMap", world.HasReason(v1alpha1.ReasonProgressing))
	ready(t, m, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, "Failed: spec.healthChecks[0].failed is true")
	u.edit(func(m *mooring) {
		m.Spec.HealthChecks[0].Current, m.Spec.HealthChecks[0].Failed = "data.value == 'down'", ""
	})
	u.inForce(s.head())

	u.edit(func(m *mooring) { m.Spec.HealthChecks[0].Current = "data.value ==" })
	m = u.until("the expression is refused", world.HasReason(v1alpha1.ReasonCheckFailed))
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonCheckFailed, "spec.healthChecks[0].current does not compile", "edit the Mooring")
}
