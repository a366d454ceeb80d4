package apply_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mooring-dev/mooring/apply"
)

var update = flag.Bool("update", false, "write the wanted plans of testdata/order")

// TestOrder: an archive is a mesh before and after a commit, and the plan between the two. others.yaml is applied by kubectl, and is nobody's. Each
// plan is run, and the one after it has nothing left to do but what want.after says.
func TestOrder(t *testing.T) {
	files, err := filepath.Glob("testdata/order/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f := newFixture(t)
			f.istio()
			if others := content(archive, "others.yaml"); others != "" {
				f.kubectl("apply", "--server-side", "-f", f.write(others))
			}
			f.sync(content(archive, "before.yaml"))
			after := content(archive, "after.yaml")
			f.policy.Confirmed = true
			p, _ := f.sync(after)
			compareWith(t, archive, file, "want", strings.ReplaceAll(p.String(), f.ns, "$NS"))
			p = f.plan(after)
			if p.Changes() {
				t.Errorf("the plan after it still has something to do:\n%s", p)
			}
			compareWith(t, archive, file, "want.after", strings.ReplaceAll(p.String(), f.ns, "$NS"))
		})
	}
}

func content(archive *txtar.Archive, name string) string {
	for _, file := range archive.Files {
		if file.Name == name {
			return string(file.Data)
		}
	}
	return ""
}

func compareWith(t *testing.T, archive *txtar.Archive, file, name, got string) {
	t.Helper()
	if *update {
		archive.Files = append(without(archive.Files, name), txtar.File{Name: name, Data: []byte(got)})
		if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(content(archive, name), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func without(files []txtar.File, name string) []txtar.File {
	var kept []txtar.File
	for _, f := range files {
		if f.Name != name {
			kept = append(kept, f)
		}
	}
	return kept
}

// gatekeeper is a Mesh that notes what it is asked, and answers what it is told to.
type gatekeeper struct {
	asked  [][]apply.Written
	answer []error
}

func (g *gatekeeper) Propagated(_ context.Context, written []apply.Written) error {
	g.asked = append(g.asked, written)
	if len(g.answer) == 0 {
		return nil
	}
	answer := g.answer[0]
	g.answer = g.answer[1:]
	return answer
}

const (
	toV1 = `
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: $NS}
spec: {ports: [{name: http, port: 9080}], selector: {app: reviews}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: $NS}
spec: {host: reviews, subsets: [{name: v1, labels: {version: v1}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: reviews, namespace: $NS}
spec: {hosts: [reviews], http: [{route: [{destination: {host: reviews, subset: v1}}]}]}
`
)

// A gate that is not passed stops the run with the mesh as it was: the old route and its subset are there. The next pass asks again before it moves
// the route, although it has nothing else to write before.
func TestGateStopsAndNextPassGoesOn(t *testing.T) {
	f := newFixture(t)
	f.istio()
	mesh := &gatekeeper{}
	f.unit.Mesh = mesh
	f.sync(toV1)
	mesh.asked = nil
	toV2 := strings.ReplaceAll(toV1, "v1, ", "v2, ")
	toV2 = strings.ReplaceAll(strings.ReplaceAll(toV2, "subset: v1", "subset: v2"), "version: v1", "version: v2")

	mesh.answer = []error{errors.New("the sidecar reviews-1 has not acknowledged")}
	p := f.plan(toV2)
	r, err := f.applier.Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "reviews-1 has not acknowledged") {
		t.Fatalf("want the gate's error, got %v\n%s", err, p)
	}
	if got := r.Counts(); got.Update != 1 || len(r.NotReached()) == 0 {
		t.Errorf("want one update and the rest not reached, got %v, not reached %v", got, r.NotReached())
	}
	f.subsets("v2", "v1")
	f.routesTo("v1")

	mesh.answer = []error{errors.New("still not")}
	if _, err := f.applier.Run(t.Context(), f.plan(toV2)); err == nil {
		t.Fatal("want the gate asked again before the route moves")
	}
	f.routesTo("v1")
	f.sync(toV2)
	f.routesTo("v2")
	f.subsets("v2")
	f.settled(toV2)

	// Killed between the route and the subset's end: the next pass asks before it takes the subset away.
	mesh.answer = []error{nil, errors.New("not yet")}
	if _, err := f.applier.Run(t.Context(), f.plan(toV1)); err == nil {
		t.Fatal("want the second gate's error")
	}
	f.routesTo("v1")
	f.subsets("v1", "v2")
	mesh.asked, mesh.answer = nil, []error{errors.New("not yet either")}
	if _, err := f.applier.Run(t.Context(), f.plan(toV1)); err == nil || len(mesh.asked) != 1 {
		t.Fatalf("want the gate asked once, and no subset taken away before: %v, %v", err, mesh.asked)
	}
	f.subsets("v1", "v2")
	f.sync(toV1)
	f.subsets("v1")
	f.settled(toV1)
}

// What a gate is asked about is every object of the mesh as it stands, with the resourceVersion that the API server gave it.
func TestGateIsAskedAboutWhatStands(t *testing.T) {
	f := newFixture(t)
	f.istio()
	mesh := &gatekeeper{}
	f.unit.Mesh = mesh
	f.sync(toV1)
	if len(mesh.asked) != 1 || len(mesh.asked[0]) != 2 {
		t.Fatalf("want one question about Service and DestinationRule, got %v", mesh.asked)
	}
	for _, w := range mesh.asked[0] {
		resource := map[string][3]string{"Service": {"", "v1", "services"}, "DestinationRule": {"networking.istio.io", "v1", "destinationrules"}}[w.ID.Kind]
		live := f.get(resource[0], resource[1], resource[2], w.ID.Name)
		if w.UID != live.GetUID() || w.ResourceVersion != live.GetResourceVersion() || w.Deleted {
			t.Errorf("asked about %+v, which lives as %s %s", w, live.GetUID(), live.GetResourceVersion())
		}
	}
	mesh.asked = nil
	f.sync(toV1)
	if len(mesh.asked) > 0 {
		t.Errorf("rest asks nobody, got %v", mesh.asked)
	}
}

// A route whose subset could not be written is not moved; what has nothing to do with it is.
func TestRouteWaitsForWhatItNeeds(t *testing.T) {
	f := newFixture(t)
	f.istio()
	f.sync(toV1)
	broken := strings.ReplaceAll(toV1, "subsets: [{name: v1", "subsets: [{name: v2, labels: {version: v2}}, {name: v1")
	broken = strings.ReplaceAll(broken, "subset: v1", "subset: v2") + `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: details, namespace: $NS}
spec: {hosts: [details], http: [{route: [{destination: {host: reviews, subset: v1}}]}]}
`
	p := f.plan(broken)
	f.denyRule()
	r, err := f.applier.Run(t.Context(), p)
	if err == nil {
		t.Fatal("want the refusal of the rule")
	}
	var states []string
	for _, s := range r.Steps {
		if s.Action != apply.Unchanged {
			states = append(states, string(s.State)+" "+f.short(s.ID))
		}
	}
	want := []string{"failed DestinationRule/reviews", "done VirtualService/details", "not reached VirtualService/reviews"}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	f.routesTo("v1")
}

// subsets of the rule that lives.
func (f *fixture) subsets(want ...string) {
	f.Helper()
	got := strings.Fields(f.kubectl("get", "destinationrule", "reviews", "-o", "jsonpath={.spec.subsets[*].name}"))
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("subsets (-want +got):\n%s", diff)
	}
}

func (f *fixture) routesTo(want string) {
	f.Helper()
	if got := f.kubectl("get", "virtualservice", "reviews", "-o", "jsonpath={.spec.http[0].route[0].destination.subset}"); got != want {
		f.Errorf("the route leads to %s, want %s", got, want)
	}
}

// denyRule makes the API server refuse changes of DestinationRules in the test's namespace.
func (f *fixture) denyRule() {
	f.Helper()
	policy := strings.NewReplacer(`apiGroups: [""]`, "apiGroups: [networking.istio.io]", "apiVersions: [v1], resources: [configmaps]",
		`apiVersions: ["*"], resources: [destinationrules]`, "OPERATION", "UPDATE", "NAME", "reviews").Replace(denial)
	f.kubectl("apply", "-f", f.write(policy))
	f.Cleanup(func() { f.cleanup("validatingadmissionpolicybinding", "validatingadmissionpolicy") })
	f.eventually("the policy denies", func() bool {
		_, err := f.cluster.Kubectl(f.Context(), "-n", f.ns, "annotate", "destinationrule", "reviews", "probe=x", "--overwrite", "--dry-run=server")
		return err != nil && strings.Contains(err.Error(), "the test denies it")
	})
}
