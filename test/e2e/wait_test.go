package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

// deployment is a workload that becomes healthy only when the test says so: no kubelet runs here.
func deployment(name, image string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: %[2]q}]}
`, name, image)
}

func waiting(timeout time.Duration) func(*mooring) {
	return func(m *mooring) {
		m.Spec.Wait = true
		m.Spec.Timeout.Duration = timeout
		m.Spec.Interval.Duration = 2 * time.Second
	}
}

// rollOut waits for the image to be applied and writes the status that a Deployment's controller writes when its rollout is complete. A
// status that is written before the image would be that of the generation before, and nobody would write another.
func (s *site) rollOut(name, image string) {
	s.t.Helper()
	d := &appsv1.Deployment{}
	key := world.Key{Namespace: s.ns, Name: name}
	eventually(s.t, "the image is applied and the Deployment's status is written", func() error {
		if err := s.w.Client().Get(s.t.Context(), key, d); err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("the image is %s, want %s", got, image)
		}
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: "True", Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"},
			},
		}
		return s.w.Client().Status().Update(s.t.Context(), d)
	})
}

func TestWaitIsOverWhenTheStatusThatTheTestWritesIsHealthy(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, all(some("a=1"), files{"web.yaml": deployment("web", "web:1")}))
	u := s.mooring("prod", waiting(patience))
	m := u.until("it waits for the Deployment", world.HasReason(v1alpha1.ReasonProgressing))
	ready(t, m, metav1.ConditionUnknown, v1alpha1.ReasonProgressing, s.head(), "Deployment/"+s.ns+"/web")
	condition(t, m, v1alpha1.ConditionReconciling, metav1.ConditionTrue)
	condition(t, m, v1alpha1.ConditionHealthy, metav1.ConditionFalse)

	s.rollOut("web", "web:1")
	m = u.inForce(s.head())
	condition(t, m, v1alpha1.ConditionHealthy, metav1.ConditionTrue)
	condition(t, m, v1alpha1.ConditionReconciling, "")
	for _, e := range u.events() {
		if e.Type != "Normal" {
			t.Errorf("a rollout that went well made a Warning: %+v", e)
		}
	}
}

func TestWaitTakesUpANewerCommitWhoseStatusTheTestWrites(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, files{"web.yaml": deployment("web", "no-such-image:1")})
	u := s.mooring("prod", waiting(10*time.Minute))
	u.until("it waits for the Deployment", world.HasReason(v1alpha1.ReasonProgressing))

	second := s.commit(files{"web.yaml": deployment("web", "web:2")})
	s.rollOut("web", "web:2") // during the wait
	u.inForce(second)
}

func TestHealthTimeoutNamesWhatIsNotHealthyUntilTheTestWritesItsStatus(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, files{"web.yaml": deployment("web", "no-such-image:1")})
	u := s.mooring("prod", waiting(4*time.Second))
	m := u.until("the wait is given up", world.HasReason(v1alpha1.ReasonHealthTimeout))
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonHealthTimeout, "Deployment/"+s.ns+"/web", s.head())
	u.event(v1alpha1.ReasonHealthTimeout, "Deployment/"+s.ns+"/web")

	// It is applied all the same: drift is corrected, and the commit that mends it is taken up.
	if !strings.HasSuffix(m.Status.LastAppliedRevision, s.head()) {
		t.Errorf("lastAppliedRevision is %s, want %s", m.Status.LastAppliedRevision, s.head())
	}
	second := s.commit(all(some("a=1"), files{"web.yaml": deployment("web", "web:2")}))
	s.becomes("a=1")
	s.rollOut("web", "web:2")
	u.inForce(second)
	u.event("Recovered", second)
}

// condition fails the test when a condition is not so; an empty status means that it is not there.
func condition(t *testing.T, m *mooring, name string, want metav1.ConditionStatus) {
	t.Helper()
	got := metav1.ConditionStatus("")
	if c := meta.FindStatusCondition(m.Status.Conditions, name); c != nil {
		got = c.Status
	}
	if got != want {
		t.Errorf("condition %s is %q, want %q", name, got, want)
	}
}
