package apply_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

func states(all []apply.Health) map[string]string {
	found := make(map[string]string)
	for _, h := range all {
		found[h.ID.Kind] = string(h.Status)
	}
	return found
}

// There is no kubelet and no Deployment controller here: the test writes the status through the status subresource, as they would.
func TestHealthWithStatusWrittenByTheTest(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	f.istio()
	all := deployment + "---\n" + mesh
	_, r := f.sync(all)
	if diff := cmp.Diff(map[string]string{"Deployment": "InProgress"}, states(r.Unhealthy())); diff != "" {
		t.Fatalf("unhealthy (-want +got):\n%s", diff)
	}
	healthy := map[string]string{"Deployment": "InProgress", "ConfigMap": "Current", "VirtualService": "Current", "DestinationRule": "Current"}
	if diff := cmp.Diff(healthy, states(r.Health)); diff != "" {
		t.Fatalf("health (-want +got):\n%s", diff)
	}
	// It is remembered: to ask again costs no request.
	wire.take()
	p := f.plan(all)
	if diff := cmp.Diff(map[string]string{"Deployment": "InProgress"}, states(p.Unhealthy())); diff != "" {
		t.Fatalf("unhealthy (-want +got):\n%s", diff)
	}
	if asked := wire.take(); len(asked) != 4 {
		t.Errorf("requests: %v", asked)
	}
	status := func(conditions string) {
		t.Helper()
		f.kubectl("patch", "deployment", "d", "--subresource=status", "--type=merge", "-p",
			`{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[`+conditions+`]}}`)
	}
	status(`{"type":"Progressing","status":"False","reason":"ProgressDeadlineExceeded","message":"it takes too long"}`)
	p, _ = f.sync(all)
	f.want(p)
	if diff := cmp.Diff(map[string]string{"Deployment": "Failed"}, states(p.Unhealthy())); diff != "" {
		t.Fatalf("unhealthy (-want +got):\n%s", diff)
	}
	status(`{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}`)
	p, _ = f.sync(all)
	f.want(p)
	if sick := p.Unhealthy(); len(sick) != 0 {
		t.Fatalf("unhealthy: %v", sick)
	}
}
