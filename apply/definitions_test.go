package apply_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

// widgets installs the test's own kind, apart from the unit.
func (f *fixture) widgets() {
	f.Helper()
	f.kubectl("apply", "-f", f.write(widgetDefinition))
	f.Cleanup(f.dropWidgets)
	f.kubectl("wait", "--for=condition=Established", "crd/widgets."+f.ns+".test.mooring.dev")
	f.eventually("widgets are served", func() bool {
		_, err := f.cluster.Kubectl(f.Context(), "get", "widgets."+f.ns+".test.mooring.dev", "-A")
		return err == nil
	})
}

func (f *fixture) dropWidgets() {
	where := f.objects.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	_ = where.Delete(uncancelled(f.T), "widgets."+f.ns+".test.mooring.dev", metav1.DeleteOptions{})
}

// A definition and its object in one commit, in a namespace of the same commit; then the definition and the object change together: the
// object needs the new schema, and later a version that only the new definition serves.
func TestDefinitionAndObjectTogether(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(func() {
		f.dropWidgets()
		_, _ = f.cluster.Kubectl(uncancelled(t), "delete", "namespace", f.ns+"-extra", "--wait=false")
	})
	inExtra := strings.Replace(widget, "namespace: $NS", "namespace: $NS-extra", 1)
	ns := "apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-extra}\n"
	all := func(definition, object string) string { return object + "---\n" + definition + "---\n" + ns }

	p, _ := f.sync(all(widgetDefinition, inExtra))
	f.want(p, "create CustomResourceDefinition/widgets."+f.ns+".test.mooring.dev", "create Namespace/"+f.ns+"-extra", "create Widget/"+f.ns+"-extra/w")
	f.settled(all(widgetDefinition, inExtra))

	wider := strings.Replace(widgetDefinition, "size: {", "colour: {type: string}\n              size: {", 1)
	coloured := strings.Replace(inExtra, "size: 1", "size: 1, colour: red", 1)
	if err := f.refuse(all(widgetDefinition, coloured)); !strings.Contains(err.Error(), "colour") {
		t.Fatalf("a field that no definition has: %v", err)
	}
	p, _ = f.sync(all(wider, coloured))
	f.want(p, "update CustomResourceDefinition/widgets."+f.ns+".test.mooring.dev", "update Widget/"+f.ns+"-extra/w")
	f.settled(all(wider, coloured))

	const v2 = `  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	inV2 := strings.Replace(coloured, "mooring.dev/v1", "mooring.dev/v2", 1)
	second := strings.Replace(inV2, "name: w", "name: w2", 1)
	p, _ = f.sync(all(wider+v2, inV2+"---\n"+second))
	f.want(p, "update CustomResourceDefinition/widgets."+f.ns+".test.mooring.dev", "update Widget/"+f.ns+"-extra/w", "create Widget/"+f.ns+"-extra/w2")
	f.settled(all(wider+v2, inV2+"---\n"+second))
}

// What was set by hand goes also where the object could not be tried, because its definition changes with it: nobody would look again.
func TestTakeOverOfWhatIsNotTried(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(f.dropWidgets)
	f.sync(widget + "---\n" + widgetDefinition)
	f.edit("widgets."+f.ns+".test.mooring.dev", "w", `{"metadata":{"annotations":{"by":"hand"}}}`)
	wider := strings.Replace(widgetDefinition, "size: {", "colour: {type: string}\n              size: {", 1)
	coloured := strings.Replace(widget, "size: 1", "size: 1, colour: red", 1)
	p, _ := f.sync(coloured + "---\n" + wider)
	if !strings.Contains(p.String(), "not tried") {
		t.Fatalf("the object was tried:\n%s", p)
	}
	if w := f.get(f.ns+".test.mooring.dev", "v1", "widgets", "w"); w.GetAnnotations()["by"] != "" {
		t.Errorf("annotations: %v", w.GetAnnotations())
	}
}

// What depends on a definition that fails is not reached; the rest is done.
func TestFailedDefinitionStopsWhatDependsOnIt(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(func() { f.dropWidgets() })
	f.sync(oneMap)
	f.kubectl("create", "namespace", f.ns+"-going")
	f.kubectl("patch", "namespace", f.ns+"-going", "--type=merge", "-p", `{"metadata":{"finalizers":["test.mooring.dev/hold"]}}`)
	f.kubectl("delete", "namespace", f.ns+"-going", "--wait=false")
	t.Cleanup(func() {
		_, _ = f.cluster.Kubectl(uncancelled(t), "patch", "namespace", f.ns+"-going", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
	all := strings.ReplaceAll(twoMaps, "one", "changed") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: $NS-going}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: $NS-going}\n"
	p := f.plan(all)
	f.want(p, "create ConfigMap/b", "update ConfigMap/a", "create Namespace/"+f.ns+"-going", "create ConfigMap/"+f.ns+"-going/inside")
	r, err := f.applier.Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "being deleted") {
		t.Fatalf("want the error of the namespace that goes, got %v", err)
	}
	if got := r.Counts(); got.Create != 1 || got.Update != 1 {
		t.Fatalf("done: %s", got)
	}
	missed := r.NotReached()
	if len(missed) != 1 || missed[0].ID.Name != "inside" || !strings.Contains(missed[0].Err.Error(), "waits for Namespace/") {
		t.Fatalf("not reached: %+v", missed)
	}
	// Once it is gone everything comes.
	f.kubectl("patch", "namespace", f.ns+"-going", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	f.eventually("the namespace is gone", func() bool {
		_, err := f.cluster.Kubectl(t.Context(), "get", "namespace", f.ns+"-going")
		return err != nil
	})
	f.sync(all)
	f.settled(all)
	f.policy.Confirmed = true
	f.sync(oneMap)
}

// A run that ended between the write of a definition and the moment when the server takes it up leaves what the next one waits for, and only for as long as
// something needs it.
func TestDefinitionThatIsNotTakenUpYet(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(f.dropWidgets)
	holders := strings.NewReplacer("name: widgets.", "name: holders.", "kind: Widget,", "kind: Holder,", "plural: widgets, singular: widget", "plural: holders, singular: holder")
	f.kubectl("apply", "-f", f.write(holders.Replace(widgetDefinition)))
	f.Cleanup(func() {
		_, _ = f.cluster.Kubectl(uncancelled(t), "delete", "crd", "holders."+f.ns+".test.mooring.dev", "--ignore-not-found")
	})
	f.kubectl("wait", "--for=condition=Established", "crd/holders."+f.ns+".test.mooring.dev")
	short, err := apply.New(f.cluster.Config(), apply.Options{GateTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	f.applier = short
	if _, err := f.applier.Run(t.Context(), f.plan(widgetDefinition)); err == nil || !strings.Contains(err.Error(), "not accepted") {
		t.Fatalf("want the error of a definition whose names are taken, got %v", err)
	}

	f.sync(widgetDefinition + "---\n" + oneMap) // needs no Widget
	all := widgetDefinition + "---\n" + widget + "---\n" + twoMaps
	p := f.plan(all)
	f.want(p, "create ConfigMap/b", "create Widget/w")
	if !strings.Contains(p.String(), "is not established yet") {
		t.Errorf("the plan does not say what it waits for:\n%s", p)
	}
	r, err := f.applier.Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "not accepted") {
		t.Fatalf("want the error of the definition, got %v", err)
	}
	if missed := r.NotReached(); len(missed) != 1 || missed[0].ID.Kind != "Widget" || r.Counts().Create != 1 {
		t.Fatalf("done: %s, not reached: %+v", r.Counts(), missed)
	}

	f.kubectl("delete", "crd", "holders."+f.ns+".test.mooring.dev")
	f.applier = f.newApplier(f.cluster.Config())
	p, _ = f.sync(all)
	f.want(p, "create Widget/w")
	f.settled(all)
}

func TestAnotherVersionIsTheSameObject(t *testing.T) {
	f := newFixture(t)
	f.istio()
	old := strings.ReplaceAll(mesh, "networking.istio.io/v1\n", "networking.istio.io/v1beta1\n")
	f.sync(old)
	uid := f.get("networking.istio.io", "v1", "virtualservices", "reviews").GetUID()
	p, _ := f.sync(mesh)
	for s := range p.Steps() {
		if s.Action == apply.Delete || s.Action == apply.Create || s.Action == apply.Replace {
			t.Errorf("%s %s", s.Action, s.ID)
		}
	}
	dropped := strings.Replace(mesh, "  http:\n", "  exportTo: ['*']\n  http:\n", 1)
	f.sync(strings.ReplaceAll(dropped, "networking.istio.io/v1\n", "networking.istio.io/v1beta1\n"))
	f.sync(mesh)
	live := f.get("networking.istio.io", "v1", "virtualservices", "reviews")
	if live.GetUID() != uid {
		t.Error("another UID")
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "exportTo"); found {
		t.Error("a field that was set in one version and dropped in the other is still there")
	}
	f.settled(mesh)
}
