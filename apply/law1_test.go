package apply_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/test/kube"
)

// A kind that the identity may not list is a kind of which nothing is known.
func TestLaw1ForbiddenListMeansNoPlan(t *testing.T) {
	cluster := kube.Start(t)
	f := newFixture(t)
	f.sync(twoMaps + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\n")

	f.kubectl("create", "serviceaccount", "deployer")
	f.kubectl("create", "clusterrole", f.ns, "--verb=get,list,patch,create,delete", "--resource=configmaps")
	f.kubectl("create", "clusterrolebinding", f.ns, "--clusterrole="+f.ns, "--serviceaccount="+f.ns+":deployer")
	t.Cleanup(func() { f.cleanup("clusterrole", "clusterrolebinding") })
	f.applier = f.newApplier(cluster.ConfigFor("system:serviceaccount:" + f.ns + ":deployer"))

	// Secrets were dropped from Git, and so was b. Neither may go.
	err := f.refuse(oneMap)
	if !strings.Contains(err.Error(), "list Secret: ") || !strings.Contains(err.Error(), "forbidden") {
		t.Fatalf("the error does not say what could not be listed: %v", err)
	}
	f.configMap("b")
	f.get("", "v1", "secrets", "s")

	f.applier = f.newApplier(cluster.Config())
	p, _ := f.sync(oneMap)
	f.want(p, "delete ConfigMap/b", "delete Secret/s")
}

// The server of a group is away. A unit that has objects of the group gets no plan; all others go on.
func TestLaw1DeadAPIService(t *testing.T) {
	cluster := kube.Start(t)
	f := newFixture(t)
	f.sync(twoMaps)
	group := "dead." + f.ns + ".test.mooring.dev"
	apiService := `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.` + group + `}
spec:
  group: ` + group + `
  version: v1
  groupPriorityMinimum: 10
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {name: nobody, namespace: ` + f.ns + `}
`
	f.kubectl("apply", "-f", f.write(apiService))
	t.Cleanup(func() {
		if err := f.objects.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}).
			Delete(uncancelled(t), "v1."+group, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	f.eventually("discovery shows the dead group", func() bool {
		f.applier = f.newApplier(cluster.Config())
		f.unit.Kinds = []schema.GroupKind{{Group: group, Kind: "Thing"}, {Kind: "ConfigMap"}}
		_, err := f.applier.Plan(t.Context(), f.unit, f.set(oneMap), f.policy)
		return err != nil && strings.Contains(err.Error(), group)
	})
	_ = f.refuse(oneMap)
	f.configMap("b")

	f.unit.Kinds = []schema.GroupKind{{Kind: "ConfigMap"}}
	p, _ := f.sync(oneMap)
	f.want(p, "delete ConfigMap/b")
}

// A kind that is not served today stays recorded: its server, or the API server's own start, may only be late.
func TestLaw1UnservedKindStaysRecorded(t *testing.T) {
	f := newFixture(t)
	gone := schema.GroupKind{Group: "gone.test.mooring.dev", Kind: "Thing"}
	f.unit.Kinds = []schema.GroupKind{gone}
	f.sync(oneMap)
	f.sync(oneMap)
	for _, kinds := range f.recorded {
		if !contains(kinds, gone) {
			t.Fatalf("%s was dropped: %v", gone, kinds)
		}
	}
	if !contains(f.unit.Kinds, gone) {
		t.Fatalf("%s was dropped: %v", gone, f.unit.Kinds)
	}
}

// An error of a read is never an answer: what could not be read is not taken for absent.
func TestLaw1NothingPlannedWhenTheServerIsAway(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	cfg := f.cluster.Config()
	cfg.Host = "https://127.0.0.1:1"
	f.applier = f.newApplier(cfg)
	_ = f.refuse(oneMap)
}

// More objects than a page of a LIST holds.
func TestLaw1AllPagesAreRead(t *testing.T) {
	f := newFixture(t)
	const n = 520
	var many strings.Builder
	for i := range n {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: m%d, namespace: $NS}\n", i)
	}
	f.sync(many.String())
	p := f.plan(many.String())
	if got := p.Counts(); got.Unchanged != n || p.Live != n {
		t.Fatalf("%s, %d live; want %d", got, p.Live, n)
	}
	p, _ = f.sync(oneMap)
	if got := p.Counts(); got.Delete != n {
		t.Fatalf("%s; want %d to delete", got, n)
	}
}
