package e2e_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
)

func dependsOn(names ...string) func(*mooring) {
	return func(m *mooring) {
		m.Spec.DependsOn = nil
		for _, name := range names {
			m.Spec.DependsOn = append(m.Spec.DependsOn, v1alpha1.Dependency{Name: name})
		}
	}
}

// One commit changes both. The one that depends on the other waits for it, keeps what it has meanwhile, and goes on by itself once the other is there.
func TestDependentWaitsAndGoesOnByItself(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("base", some("a=1")), under("app", some("b=1"))))
	base := s.mooring("base", at("base"))
	app := s.mooring("app", func(m *mooring) {
		at("app")(m)
		dependsOn("base")(m)
	})
	first := s.head()
	app.inForce(first)

	base.edit(func(m *mooring) { m.Spec.Suspend = true })
	second := s.commit(all(under("base", some("a=2")), under("app", some("b=2"))))
	ready(t, app.sync(), metav1.ConditionFalse, v1alpha1.ReasonDependencyNotReady, second+" waits", "Mooring "+s.ns+"/base", first+" stays in force")
	app.event(v1alpha1.ReasonDependencyNotReady, second)
	s.tamper("b", "by-hand")
	s.becomes("a=1 b=1")

	base.edit(func(m *mooring) { m.Spec.Suspend = false })
	base.inForceAfterSync(second)
	app.inForce(second) // within the minute that is waited for: its interval is longer
	s.want("a=2 b=2")
}

// Two that wait for each other say so, and what they have stays.
func TestDependenciesInACircleAreNamed(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(under("left", some("a=1")), under("right", some("b=1"))))
	left, right := s.mooring("left", at("left")), s.mooring("right", at("right"))
	left.inForce(s.head())
	right.inForce(s.head())
	left.edit(dependsOn("right"))
	right.edit(dependsOn("left"))
	s.commit(all(under("left", some("a=2")), under("right", some("b=2"))))
	ready(t, left.sync(), metav1.ConditionFalse, v1alpha1.ReasonDependencyNotReady, s.ns+"/left → "+s.ns+"/right → "+s.ns+"/left")
	s.want("a=1 b=1")
	right.edit(dependsOn())
	right.inForce(s.head())
	left.inForce(s.head())
	s.want("a=2 b=2")
}
