package apply_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/mooring-dev/mooring/apply"
)

func TestOrphan(t *testing.T) {
	f := newFixture(t)
	f.sync(ignoring + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\n")
	copied := f.kubectl("get", "secret", "s", "-o", "yaml")
	f.kubectl("create", "-f", f.write(strings.Replace(copied, "name: s", "name: copy", 1)))
	before := f.configMap("a")
	r, err := f.applier.Orphan(t.Context(), f.unit)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Counts(); got.Update != 2 || got.Skip != 1 || r.Objects != 0 {
		t.Fatalf("done: %s, %d objects left", got, r.Objects)
	}
	after := f.configMap("a")
	if after.GetUID() != before.GetUID() || after.Object["data"] == nil {
		t.Error("the object did not stay")
	}
	if len(after.GetLabels()) > 0 || after.GetAnnotations()[apply.AppliedAnnotation] != "" {
		t.Errorf("left: %v %v", after.GetLabels(), after.GetAnnotations())
	}
	for _, entry := range after.GetManagedFields() {
		if entry.Manager == apply.FieldManager {
			t.Errorf("we still own %s", entry.FieldsV1.GetRawString())
		}
	}
	if len(f.unit.Kinds) != 0 {
		t.Errorf("the parent still says %v", f.unit.Kinds)
	}
	if got := f.get("", "v1", "secrets", "copy").GetLabels()[apply.PartOfLabel]; got != f.unit.ID {
		t.Errorf("the user's copy was touched")
	}

	// Nobody's: another Mooring may adopt it, with its UID.
	f.unit.ID, f.unit.Name = apply.ApplySetID("second", f.ns, "Mooring", "mooring.dev"), f.ns+"/second"
	p, _ := f.sync(ignoring)
	f.want(p, "update ConfigMap/a")
	if !strings.Contains(p.String(), "adopts") {
		t.Errorf("the plan does not say that it adopts:\n%s", p)
	}
	if f.configMap("a").GetUID() != before.GetUID() {
		t.Error("another UID")
	}
	f.settled(ignoring)
}

// What an applier knows of the server may be older than a definition that went and came back. A unit that goes has no later pass that would find its objects.
func TestPlanDeleteFindsKindsThatCameBack(t *testing.T) {
	for name, plan := range map[string]func(f *fixture) error{
		"delete": func(f *fixture) error {
			p, err := f.applier.PlanDelete(t.Context(), f.unit)
			if err == nil {
				f.run(p)
			}
			return err
		},
		"orphan": func(f *fixture) error {
			_, err := f.applier.Orphan(t.Context(), f.unit)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			t.Cleanup(f.dropWidgets)
			before := f.applier
			f.sync("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: $NS}\n") // it has seen a server without Widgets
			f.applier = f.newApplier(f.cluster.Config())
			f.sync(widgetDefinition + "---\n" + widget)
			f.applier = before
			if err := plan(f); err != nil {
				t.Fatal(err)
			}
			if left := f.kubectl("get", "widgets."+f.ns+".test.mooring.dev", "-A", "-l", apply.PartOfLabel+"="+f.unit.ID, "-o", "name"); left != "" {
				t.Errorf("still ours: %s", left)
			}
		})
	}
}

func TestPlanDelete(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(func() {
		f.dropWidgets()
		_, _ = f.cluster.Kubectl(uncancelled(t), "delete", "namespace", f.ns+"-extra", "--wait=false")
	})
	f.sync(namespaceAndMap + "---\n" + widgetDefinition + "---\n" + widget)
	p, err := f.applier.PlanDelete(t.Context(), f.unit)
	if err != nil {
		t.Fatal(err)
	}
	crd := "CustomResourceDefinition/widgets." + f.ns + ".test.mooring.dev"
	f.want(p, "delete ConfigMap/a", "delete Widget/w", "update Namespace/"+f.ns+"-extra", "update "+crd)
	if p.Guard != nil || !strings.Contains(p.String(), "is kept") {
		t.Fatalf("plan:\n%s", p)
	}
	r := f.run(p)
	if r.Objects != 0 || len(f.unit.Kinds) != 0 {
		t.Fatalf("%d objects and %v are left", r.Objects, f.unit.Kinds)
	}
	f.gone("", "v1", "configmaps", "a")
	f.gone(f.ns+".test.mooring.dev", "v1", "widgets", "w")
	for _, kept := range []string{"namespace/" + f.ns + "-extra", "crd/widgets." + f.ns + ".test.mooring.dev"} {
		if labels := f.kubectl("get", kept, "-o", "jsonpath={.metadata.labels}"); strings.Contains(labels, "applyset") {
			t.Errorf("%s is still ours: %s", kept, labels)
		}
	}
	p, err = f.applier.PlanDelete(t.Context(), f.unit)
	if err != nil || p.Changes() {
		t.Fatalf("again: %v\n%s", err, p)
	}
}

// What is pruned and held back by a finalizer stays ours, and its kind recorded, until it is gone.
func TestFinalizerHoldsTheKind(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\n")
	f.kubectl("patch", "secret", "s", "--type=merge", "-p", `{"metadata":{"finalizers":["test.mooring.dev/hold"]}}`)
	f.sync(twoMaps)
	isSecret := func() bool {
		return slices.ContainsFunc(f.unit.Kinds, func(gk schema.GroupKind) bool { return gk.Kind == "Secret" })
	}
	if !isSecret() {
		t.Fatal("the kind was dropped while an object of it is there")
	}
	p, _ := f.sync(twoMaps)
	f.want(p, "skip Secret/s")
	f.kubectl("patch", "secret", "s", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	f.gone("", "v1", "secrets", "s")
	f.sync(twoMaps)
	if isSecret() {
		t.Fatal("the kind is still recorded")
	}
}
