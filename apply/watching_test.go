package apply_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

// alarms are how often a watching Applier was woken for each unit, and which watches are broken.
type alarms struct {
	mu     sync.Mutex
	woken  map[string]int
	broken []string
}

func (a *alarms) wake(unit string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.woken[unit]++
}

func (a *alarms) broke(kind schema.GroupKind, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	said := kind.String() + " works again"
	if err != nil {
		said = fmt.Sprintf("%s: %v", kind, err)
	}
	a.broken = append(a.broken, said)
}

func (a *alarms) of(unit string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.woken[unit]
}

func (a *alarms) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.broken, "\n")
}

// watching gives the fixture an Applier that watches until the test is over.
func (f *fixture) watching(cfg *rest.Config) *alarms {
	f.Helper()
	a := &alarms{woken: map[string]int{}}
	applier, err := apply.New(cfg, apply.Options{GateTimeout: 20 * time.Second, Wake: a.wake, WatchBroken: a.broke})
	if err != nil {
		f.Fatal(err)
	}
	f.applier = applier
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- applier.Watch(ctx) }()
	f.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	return a
}

// atRest plans until that costs no request: the watches have begun by then, and have told of all that was written.
func (f *fixture) atRest(wire *recorder, stream string) {
	f.Helper()
	f.eventually("a plan costs no request", func() bool {
		wire.take()
		p := f.plan(stream)
		f.want(p)
		left := withoutWatches(wire.take())
		if len(left) > 0 {
			f.Logf("a plan at rest asked: %v", left)
		}
		return len(left) == 0
	})
}

func withoutWatches(requests []string) []string {
	var all []string
	for _, r := range requests {
		if !strings.Contains(r, "(watch)") {
			all = append(all, r)
		}
	}
	return all
}

// At rest a plan asks nothing. A commit that changes one object costs what that object costs, and our own writes wake nobody.
func TestWatchedPlanCostsNothing(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, cluster.Config())
	f.istio()
	alarms := f.watching(wire.config(cluster.Config()))
	f.sync(mesh)
	f.atRest(wire, mesh)

	changed := strings.Replace(mesh, "k: one", "k: two", 1)
	wire.take()
	p, _ := f.sync(changed)
	f.want(p, "update ConfigMap/a")
	t.Logf("one changed object: %v", withoutWatches(wire.take()))
	f.atRest(wire, changed)

	f.sync(changed + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: $NS}\n")
	p, _ = f.sync(changed) // at once: the watch may not have told of the new one yet
	f.want(p, "delete ConfigMap/b")
	f.atRest(wire, changed)
	if got := alarms.of(f.unit.Name); got != 0 {
		t.Errorf("our own writes woke the unit %d times", got)
	}
}

// What somebody else does wakes the unit, within a second and for whatever it is; a status does not, and its health is read anew.
func TestWatchWakes(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, cluster.Config())
	f.istio()
	alarms := f.watching(wire.config(cluster.Config()))
	deployment := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: $NS}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web}]}}
`
	all := mesh + "---" + deployment
	f.sync(all)
	f.atRest(wire, all)

	woken := 0
	for _, edit := range []struct {
		name string
		args []string
		want []string
	}{
		{"an edit", []string{"patch", "configmap", "a", "--type=merge", "-p", `{"data":{"k":"hand"}}`}, []string{"update ConfigMap/a"}},
		{"an annotation", []string{"annotate", "virtualservice", "reviews", "hand=made"}, nil}, // looked at, and no drift
		{"scale", []string{"scale", "deployment", "web", "--replicas=3"}, []string{"update Deployment/web"}},
		{"a label that is removed", []string{"label", "configmap", "a", apply.PartOfLabel + "-"}, []string{"update ConfigMap/a"}},
		{"a delete", []string{"delete", "destinationrule", "reviews"}, []string{"create DestinationRule/reviews"}},
	} {
		began := time.Now()
		f.kubectl(edit.args...)
		f.eventually(edit.name+" wakes the unit", func() bool { return alarms.of(f.unit.Name) > woken })
		took := time.Since(began)
		p, _ := f.sync(all)
		f.want(p, edit.want...)
		f.atRest(wire, all)
		t.Logf("%s woke after %s, kubectl and all", edit.name, took.Round(time.Millisecond))
		woken = alarms.of(f.unit.Name)
	}

	f.kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":9,"replicas":1,"unavailableReplicas":1}}`)
	f.eventually("the health is that of the new status", func() bool {
		p := f.plan(all)
		f.want(p)
		return len(p.Unhealthy()) == 1
	})
	f.atRest(wire, all)
	if got := alarms.of(f.unit.Name); got != woken {
		t.Errorf("a status woke the unit %d times", got-woken)
	}
}

// A watch that is denied is said once, and the kind is listed at each plan. One whose kind goes away takes nothing for deleted.
func TestBrokenWatchIsSaidOnce(t *testing.T) {
	cluster := kube.Start(t)
	f := newFixtureAs(t, cluster, cluster.Config())
	f.kubectl("create", "serviceaccount", "deployer")
	f.kubectl("create", "clusterrole", f.ns, "--verb=get,list,patch,create,delete", "--resource=configmaps")
	f.kubectl("create", "clusterrolebinding", f.ns, "--clusterrole="+f.ns, "--serviceaccount="+f.ns+":deployer")
	t.Cleanup(func() { f.cleanup("clusterrole", "clusterrolebinding") })
	wire := &recorder{}
	alarms := f.watching(wire.config(cluster.ConfigFor("system:serviceaccount:" + f.ns + ":deployer")))
	f.sync(twoMaps)
	f.eventually("the broken watch is said", func() bool { return strings.Contains(alarms.said(), "ConfigMap: ") })
	for range 3 {
		wire.take()
		p, _ := f.sync(twoMaps)
		f.want(p)
		if asked := withoutWatches(wire.take()); len(asked) != 1 {
			t.Errorf("want one LIST, got %v", asked)
		}
	}
	f.kubectl("create", "clusterrole", f.ns+"-watch", "--verb=watch", "--resource=configmaps")
	f.kubectl("create", "clusterrolebinding", f.ns+"-watch", "--clusterrole="+f.ns+"-watch", "--serviceaccount="+f.ns+":deployer")
	t.Cleanup(func() {
		_, _ = cluster.Kubectl(uncancelled(t), "delete", "clusterrole,clusterrolebinding", f.ns+"-watch")
	})
	f.eventually("the watch works again", func() bool { return strings.Contains(alarms.said(), "ConfigMap works again") })
	f.atRest(wire, twoMaps)
	if said := alarms.said(); strings.Count(said, "forbidden") != 1 {
		t.Errorf("said:\n%s", said)
	}
}
