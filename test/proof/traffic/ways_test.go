package traffic_test

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
	propagation "github.com/mooring-dev/mooring/apply/istiod"
	"github.com/mooring-dev/mooring/test/istiod"
	"github.com/mooring-dev/mooring/test/kube"
	"github.com/mooring-dev/mooring/test/poll"
	"github.com/mooring-dev/mooring/test/proof/random"
	"github.com/mooring-dev/mooring/test/proof/traffic"
)

type file = fstest.MapFile

// keys of both maps.
func keys(a, b map[string]*file) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range a {
			if !yield(name) {
				return
			}
		}
		for name := range b {
			if a[name] == nil && !yield(name) {
				return
			}
		}
	}
}

func data(f *file) []byte {
	if f == nil {
		return nil
	}
	return f.Data
}

// mooring applies with package apply, which asks the istiod how far a change has come.
type mooring struct {
	cluster *kube.Cluster
	applier *apply.Applier
	unit    apply.Unit
	client  *propagation.Client
}

func newMooring(t *testing.T, cluster *kube.Cluster) *mooring {
	t.Helper()
	applier, err := apply.New(cluster.Config(), apply.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &mooring{cluster: cluster, applier: applier}
	m.unit = apply.Unit{ID: apply.ApplySetID("proof", "default", "Mooring", "mooring.dev"), Name: "default/proof"}
	m.unit.Record = func(_ context.Context, kinds []schema.GroupKind) error {
		m.unit.Kinds = slices.Clone(kinds)
		return nil
	}
	return m
}

func (m *mooring) strict() bool { return true }

func (m *mooring) observe(t *testing.T, pilot *istiod.Istiod) {
	t.Helper()
	m.client = ask(t, m.cluster, pilot)
}

// ask gives the client of an istiod that is no pod.
func ask(t *testing.T, cluster *kube.Cluster, pilot *istiod.Istiod) *propagation.Client {
	t.Helper()
	c, err := propagation.New(cluster.Config(), propagation.Options{URLs: []string{"http://" + pilot.Monitoring}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func asked(c *propagation.Client) *propagation.Mesh {
	return c.Mesh(propagation.Policy{Ask: propagation.Service})
}

func (m *mooring) apply(t *testing.T, mesh *random.Mesh) string {
	t.Helper()
	set, err := mesh.Set(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unit := m.unit
	var proxies *propagation.Mesh
	if m.client != nil { // the first apply is before there is an istiod
		proxies = asked(m.client)
		unit.Mesh = proxies
	}
	plan, err := m.applier.Plan(t.Context(), unit, set, apply.Policy{Prune: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.applier.Run(t.Context(), plan); err != nil {
		t.Fatalf("%v\nof\n%s", err, plan)
	}
	if proxies != nil && proxies.Unasked() != "" {
		t.Fatalf("istiod was not asked: %s", proxies.Unasked())
	}
	return plan.String()
}

// kubectl applies with kubectl apply -k --prune.
type kubectl struct {
	cluster *kube.Cluster
	dir     string
}

func newKubectl(t *testing.T, cluster *kube.Cluster) *kubectl {
	t.Helper()
	return &kubectl{cluster: cluster, dir: t.TempDir()}
}

func (*kubectl) strict() bool { return false }

func (*kubectl) observe(*testing.T, *istiod.Istiod) {}

func (k *kubectl) apply(t *testing.T, mesh *random.Mesh) string {
	t.Helper()
	dir, err := os.MkdirTemp(k.dir, "commit-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, fs.FS(mesh.Files())); err != nil {
		t.Fatal(err)
	}
	// What is pruned is found by a label.
	top := fmt.Sprintf("resources: [%s]\nlabels: [{pairs: {proof-set: kubectl}}]\n", mesh.Folder())
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(top), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"apply", "-k", dir, "--prune", "-l", "proof-set=kubectl"}
	for _, kind := range prunable() {
		args = append(args, "--prune-allowlist="+kind)
	}
	out, err := k.cluster.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// prunable are the kinds that kubectl deletes where the files do not have them. Namespaces stay, as with Mooring.
func prunable() []string {
	return []string{
		"core/v1/Service", "apps/v1/Deployment", "networking.istio.io/v1/VirtualService", "networking.istio.io/v1/DestinationRule",
		"networking.istio.io/v1/ServiceEntry", "networking.istio.io/v1/Gateway", "networking.istio.io/v1/Sidecar",
		"security.istio.io/v1/PeerAuthentication", "security.istio.io/v1/AuthorizationPolicy",
	}
}

// settle returns when istiod and the proxies are at rest, and the gateway, which no Sidecar narrows, has all clusters that the mesh stands for. It may have
// more: when a port goes, istiod 1.31 tells a proxy that speaks the delta protocol of one cluster of that port, and forgets those of the
// subsets (BuildDeltaClusters keeps one name for each port).
func settle(t *testing.T, cluster *kube.Cluster, pilot *istiod.Istiod, watches []*traffic.Watch, mesh *random.Mesh) {
	t.Helper()
	want := wanted(mesh)
	gateway := watches[len(watches)-1]
	poll.Await(t, time.Minute, "the gateway is given all clusters", func() error {
		if err := asked(ask(t, cluster, pilot)).Propagated(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		has := gateway.Clusters()
		missing := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return slices.Contains(has, name) })
		if len(missing) > 0 {
			return fmt.Errorf("it lacks %v", missing)
		}
		return nil
	})
}

// wanted are the clusters of a proxy that sees all of a mesh, sorted.
func wanted(mesh *random.Mesh) []string {
	var out []string
	ports, subsets := map[string][]int64{}, map[string][]string{}
	for _, o := range mesh.Objects() {
		spec, _ := o.Object["spec"].(map[string]any)
		switch o.GetKind() {
		case "Service":
			for _, p := range spec["ports"].([]any) {
				host := o.GetName() + "." + o.GetNamespace() + ".svc.cluster.local"
				ports[host] = append(ports[host], p.(map[string]any)["port"].(int64))
			}
		case "ServiceEntry":
			for _, host := range spec["hosts"].([]any) {
				for _, p := range spec["ports"].([]any) {
					ports[host.(string)] = append(ports[host.(string)], p.(map[string]any)["number"].(int64))
				}
			}
		case "DestinationRule":
			for _, s := range spec["subsets"].([]any) {
				host := spec["host"].(string)
				subsets[host] = append(subsets[host], s.(map[string]any)["name"].(string))
			}
		}
	}
	for host, numbers := range ports {
		for _, n := range numbers {
			for _, s := range append([]string{""}, subsets[host]...) {
				out = append(out, fmt.Sprintf("outbound|%d|%s|%s", n, s, host))
			}
		}
	}
	slices.Sort(out)
	return out
}
