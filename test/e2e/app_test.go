package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/mooring-dev/mooring/sync/v1alpha1"
	"github.com/mooring-dev/mooring/test/world"
)

var destinationRules = schema.GroupVersionKind{Group: "networking.istio.io", Version: "v1", Kind: "DestinationRule"}

// application routes to two versions with these weights; rules is added to its spec.
func application(v1, v2 int, rules string) string {
	return fmt.Sprintf(`apiVersion: mooring.dev/v1alpha1
kind: AppConfiguration
metadata: {name: web, namespace: NS}
spec:
  versions: {v1: {}, v2: {}}
  virtualService:
    routes:
    - name: canary
      to:
      - {version: v1, weight: %d}
      - {version: v2, weight: %d}
%s`, v1, v2, rules)
}

// TestAppConfiguration follows an AppConfiguration from a commit into the cluster: what it becomes arrives, what changes in it arrives, and the
// object of a block that goes is pruned. A commit in which it is wrong changes nothing.
func TestAppConfiguration(t *testing.T) {
	w := shared(t)
	s := newSite(t, w.World, under("prod", all(some("a=1 b=1 c=1"), files{
		"svc.yaml": service("web"), "v1.yaml": workload("web", "v1"), "v2.yaml": workload("web", "v2"), "app.yaml": application(90, 10, ""),
	})))
	u := s.mooring("prod", at("prod"))
	u.inForce(s.head())
	s.weights("90 10")
	subsets, _, err := unstructured.NestedSlice(s.list(destinationRules)["web"].Object, "spec", "subsets")
	if err != nil || len(subsets) != 2 {
		t.Errorf("the DestinationRule has the subsets %v, %v, want v1 and v2", subsets, err)
	}
	if labels := s.list(virtualServices)["web"].GetLabels(); labels["app.kubernetes.io/managed-by"] != "mooring" || labels["applyset.kubernetes.io/part-of"] != u.part() {
		t.Errorf("the VirtualService has the labels %v", labels)
	}
	kept := &unstructured.Unstructured{}
	kept.SetGroupVersionKind(schema.GroupVersionKind{Group: "mooring.dev", Version: "v1alpha1", Kind: "AppConfiguration"})
	if err := w.Client().Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: "web"}, kept); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the AppConfiguration itself in the cluster: %v, want none", err)
	}

	u.inForceAfterSync(s.commit(files{"prod/app.yaml": application(50, 50, "")}))
	s.weights("50 50")

	// The faults are told with their lines, and nothing is touched.
	before := s.versions()
	s.commit(files{"prod/app.yaml": application(20, 80, "  peerAuthentication: {mood: STRICT}\n")})
	m := u.sync()
	ready(t, m, metav1.ConditionFalse, v1alpha1.ReasonRenderFailed,
		"prod/app.yaml:12: AppConfiguration/"+s.ns+"/web: spec.peerAuthentication.mood", "look at its spelling", "stays in force", "push")
	s.untouched(before)
	s.weights("50 50")

	// A block goes, and with it what it stood for.
	u.inForceAfterSync(s.commit(files{"prod/app.yaml": `apiVersion: mooring.dev/v1alpha1
kind: AppConfiguration
metadata: {name: web, namespace: NS}
spec:
  versions: {v1: {}, v2: {}}
`}))
	if left := s.list(virtualServices); len(left) != 0 {
		t.Errorf("the block virtualService is gone and left %v", left)
	}
	if s.list(destinationRules)["web"] == nil {
		t.Error("the DestinationRule is gone, though its block is still there")
	}
	s.want("a=1 b=1 c=1")
}

// weights compares the weights of the VirtualService web with what they should be.
func (s *site) weights(want string) {
	s.t.Helper()
	vs := s.list(virtualServices)["web"]
	if vs == nil {
		s.t.Fatal("the VirtualService web is not in the cluster")
	}
	var got []string
	routes, _, _ := unstructured.NestedSlice(vs.Object, "spec", "http")
	for _, r := range routes {
		to, _, _ := unstructured.NestedSlice(r.(map[string]any), "route")
		for _, destination := range to {
			got = append(got, fmt.Sprint(destination.(map[string]any)["weight"]))
		}
	}
	if strings.Join(got, " ") != want {
		s.t.Errorf("the weights are %v, want %s", got, want)
	}
}

// TestWhatApplicationsBecomeIsAccepted shows the API server, with Istio's own CRDs, everything that the tests of render/app expect of the model.
func TestWhatApplicationsBecomeIsAccepted(t *testing.T) {
	w := shared(t)
	ns := w.Cluster.Namespace(t)
	wanted := wantedOfTheModel(t)
	requests, ctx := errgroup.WithContext(within(t, patience))
	requests.SetLimit(16)
	var mu sync.Mutex
	kinds := map[string]int{}
	for _, o := range wanted {
		requests.Go(func() error {
			if o.GetNamespace() != "" {
				o.SetNamespace(ns)
			}
			err := w.Client().Create(ctx, o.Unstructured, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				t.Errorf("%s: %s/%s: %v", o.archive, o.GetKind(), o.GetName(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			kinds[o.GetKind()]++
			return nil
		})
	}
	if err := requests.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d objects: %v", len(wanted), kinds)
	for _, kind := range []string{
		"AuthorizationPolicy", "DestinationRule", "EnvoyFilter", "Gateway", "PeerAuthentication", "ProxyConfig", "RequestAuthentication",
		"ServiceEntry", "Sidecar", "Telemetry", "VirtualService", "WasmPlugin", "WorkloadEntry", "WorkloadGroup",
	} {
		if kinds[kind] == 0 {
			t.Errorf("no archive of render/app wants a %s", kind)
		}
	}
}

// wantedObject is an object and the archive that expects it.
type wantedObject struct {
	*unstructured.Unstructured
	archive string
}

// wantedOfTheModel reads what the archives of render/app expect.
func wantedOfTheModel(t *testing.T) []wantedObject {
	t.Helper()
	root, err := world.Root(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var found []wantedObject
	err = filepath.WalkDir(filepath.Join(root, "render", "app", "testdata"), func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".txtar" {
			return err
		}
		archive, err := txtar.ParseFile(name)
		if err != nil {
			return err
		}
		want := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == "want.yaml" })
		if want < 0 {
			return nil // it expects an error
		}
		for _, document := range strings.Split("\n"+string(archive.Files[want].Data), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if len(o.Object) > 0 {
				found = append(found, wantedObject{o, filepath.Base(name)})
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("the archives of render/app expect nothing")
	}
	return found
}
