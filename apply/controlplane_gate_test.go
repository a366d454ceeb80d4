package apply_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

// The words for a webhook whose Service is not there, from the API server itself.
func TestIstiodsServiceMissing(t *testing.T) {
	i, all := installed(t)
	i.kubectl("delete", "service", "istiod")
	changed := strings.Replace(all, "weight: 90", "weight: 80", 1)
	// The commit has the Service, so it is the commit that mends it.
	p, _ := i.sync(changed)
	i.want(p, "create Service/istiod", "update VirtualService/reviews")

	i.kubectl("delete", "service", "istiod")
	without := strings.Replace(changed, "kind: Service\n", "kind: ConfigMap\n", 1)
	without = strings.Replace(without, ", labels: {app: istiod}", "", 1)
	without = strings.Replace(without, "spec: {type: ExternalName, externalName: localhost}\n", "", 1)
	without = strings.Replace(without, "weight: 80", "weight: 70", 1)
	_, err := i.applier.Run(t.Context(), i.plan(without))
	hook, ok := errors.AsType[*apply.WebhookError](err)
	if !ok || hook.Cause != `service "istiod" not found` {
		t.Fatalf("got %v", err)
	}
}

// The commit that mends istiod has objects that wait for istiod: the installation is applied although nothing can be tried, and the rest follows in the same run.
func TestCommitThatMendsIstiod(t *testing.T) {
	i, all := installed(t)
	broken := strings.Replace(all, "externalName: localhost", "externalName: nowhere.invalid", 1)
	i.sync(broken)
	changed := strings.Replace(all, "weight: 90", "weight: 80", 1)
	p := i.plan(changed)
	i.want(p, "update Service/istiod", "update VirtualService/reviews")
	if !strings.Contains(p.String(), "did not answer") {
		t.Fatalf("the webhook answers, and nothing is shown:\n%s", p)
	}
	i.run(p)
	i.settled(changed)
}

// A mesh in one commit: istiod, a gateway that it injects, Istio's objects and others. These wait until istiod serves, is called and has judged them; when it
// does not come up they are not reached, the error says why, and the rest is done. The status of istiod's Deployment is the test's.
func TestIstiodComesFirstWithItsStatusWrittenByTheTest(t *testing.T) {
	f := newFixture(t)
	f.istio()
	i := newIstiod(f)
	i.cleanWebhooks()
	i.pods.Store(0)
	i.control()
	var err error
	if f.applier, err = apply.New(f.cluster.Config(), apply.Options{GateTimeout: 2 * time.Second}); err != nil {
		t.Fatal(err)
	}
	all := mesh + "---\n" + gateway + "---\n" + i.stream("")
	p := f.plan(all)
	r, err := f.applier.Run(t.Context(), p)
	if err == nil {
		t.Fatal("istiod has no pods, and all went well")
	}
	faults := apply.ObjectErrors(err)
	if len(faults) != 1 || faults[0].ID.String() != "Deployment/"+f.ns+"/istiod" || !strings.Contains(err.Error(), "none of its pods is available") {
		t.Fatalf("faults: %v", err)
	}
	missed := make(map[string]string)
	for _, s := range r.NotReached() {
		missed[s.ID.Kind+"/"+s.ID.Name] = s.Err.Error()
	}
	for name, why := range map[string]string{
		"DestinationRule/reviews": "istiod is not ready: Deployment/" + f.ns + "/istiod",
		"Deployment/gateway":      "istiod is not ready: Deployment/" + f.ns + "/istiod",
		"VirtualService/reviews":  "waits for DestinationRule/" + f.ns + "/reviews",
	} {
		if !strings.Contains(missed[name], why) {
			t.Errorf("%s: %s", name, missed[name])
		}
	}
	if len(missed) != 3 {
		t.Errorf("not reached: %v", missed)
	}
	f.configMap("a")

	// The next pass finds the Deployment as it should be, and waits no longer than it takes to look. It says the same.
	_, again := f.applier.Run(t.Context(), f.plan(all))
	if again == nil || again.Error() != err.Error() {
		t.Errorf("the error changed:\n%v\n%v", err, again)
	}
	i.pods.Store(1)
	f.eventually("istiod is there", func() bool {
		_, err = f.applier.Run(t.Context(), f.plan(all))
		return err == nil
	})
	f.settled(all)
}

// In one run, when istiod comes up while it is waited for.
func TestRunGoesOnWhenIstiodServesWithItsStatusWrittenByTheTest(t *testing.T) {
	cluster, wire := kube.Start(t), &recorder{}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	f.istio()
	i := newIstiod(f)
	i.cleanWebhooks()
	i.pods.Store(0)
	all := mesh + "---\n" + gateway + "---\n" + i.stream("Ignore")
	p := f.plan(all)
	done := make(chan error, 1)
	go func() {
		_, err := f.applier.Run(t.Context(), p)
		done <- err
	}()
	there := func(group, resource, name string) bool {
		_, err := f.resource(group, "v1", resource).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		return err == nil
	}
	f.eventually("istiod is applied", func() bool {
		return there("apps", "deployments", "istiod") && i.validator("failurePolicy") == "Ignore"
	})
	wire.take()
	asked := 0
	f.eventually("the run has asked for istiod three times, and waits", func() bool {
		for _, request := range wire.take() {
			if strings.HasPrefix(request, "GET ") && strings.HasSuffix(request, "/deployments/istiod") {
				asked++
			}
		}
		return asked >= 3
	})
	if there("networking.istio.io", "virtualservices", "reviews") || there("apps", "deployments", "gateway") {
		t.Fatal("what depends on istiod did not wait")
	}
	i.pods.Store(1)
	i.control()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if i.judged.Load() < 2 || i.validator("failurePolicy") != "Fail" {
		t.Errorf("istiod judged %d objects, and its webhook is %s", i.judged.Load(), i.validator("failurePolicy"))
	}
	f.settled(all)
}
