package apply_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mooring-dev/mooring/apply"
)

// guarded wants a plan that is held for this reason, and that Run refuses.
func (f *fixture) guarded(p *apply.Plan, reason apply.GuardReason, words ...string) {
	f.Helper()
	if p.Guard == nil || p.Guard.Reason != reason {
		f.Fatalf("guard is %+v, want %s", p.Guard, reason)
	}
	for _, word := range words {
		if !strings.Contains(p.Guard.Message, word) {
			f.Errorf("the message lacks %q: %s", word, p.Guard.Message)
		}
	}
	r, err := f.applier.Run(f.Context(), p)
	if !errors.Is(err, apply.ErrGuarded) {
		f.Fatalf("run of a guarded plan: %v", err)
	}
	if len(r.NotReached()) != len(r.Steps) {
		f.Fatalf("a guarded plan did something: %+v", r.Steps)
	}
}

func TestLaw3EmptyRenderNeverPrunes(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	for _, confirmed := range []bool{false, true} {
		f.policy.Confirmed = confirmed
		f.guarded(f.plan(""), apply.GuardEmpty, "2 objects", "ConfigMap/"+f.ns+"/a")
	}
	f.settled(twoMaps)
}

func TestLaw3Limits(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.policy.MaxPercent = 49
	first := f.plan(oneMap)
	f.guarded(first, apply.GuardLimit, "1 of 2 objects", "49 percent", "ConfigMap/"+f.ns+"/b")
	if second := f.plan(oneMap); second.Guard.Message != first.Guard.Message {
		t.Errorf("the message flaps:\n%s\n%s", first.Guard.Message, second.Guard.Message)
	}
	f.policy.MaxPercent = 50
	if p := f.plan(oneMap); p.Guard != nil {
		t.Errorf("50 percent are within 50: %s", p.Guard.Message)
	}
	f.policy = apply.Policy{Prune: true, MaxObjects: 1}
	const other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: $NS}\n"
	f.guarded(f.plan(other), apply.GuardLimit, "2 objects", "over 1")
	f.policy.Confirmed = true
	p, _ := f.sync(other)
	f.want(p, "create ConfigMap/other", "delete ConfigMap/a", "delete ConfigMap/b")
}

func TestLaw3PruneOff(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.policy.Prune = false
	p, r := f.sync(oneMap)
	f.want(p, "skip ConfigMap/b")
	if r.Objects != 2 {
		t.Errorf("%d objects, want 2: what is kept stays ours", r.Objects)
	}
	f.policy.Prune = true
	p, _ = f.sync(oneMap)
	f.want(p, "delete ConfigMap/b")
}

// Ours twice: the label alone deletes nothing.
func TestLaw3CopyIsNotOurs(t *testing.T) {
	f := newFixture(t)
	f.sync(oneMap)
	copied := f.kubectl("get", "configmap", "a", "-o", "yaml")
	f.kubectl("create", "-f", f.write(strings.Replace(copied, "name: a", "name: copy", 1)))
	p, r := f.sync(oneMap)
	f.want(p, "skip ConfigMap/copy")
	if p.Live != 1 || r.Objects != 1 {
		t.Errorf("the copy was counted: %d, %d", p.Live, r.Objects)
	}
	f.configMap("copy")

	// Once Git wants it it is applied, and then it is ours twice.
	both := oneMap + "---\n" + strings.Replace(oneMap, "name: a", "name: copy", 1)
	p, _ = f.sync(both)
	f.want(p, "update ConfigMap/copy")
	f.settled(both)
	p, _ = f.sync(oneMap)
	f.want(p, "delete ConfigMap/copy")
}

func TestLaw3PruneDisabledOnTheObject(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.kubectl("annotate", "configmap", "b", "mooring.dev/prune=disabled")
	p, _ := f.sync(oneMap)
	f.want(p, "skip ConfigMap/b")
	f.configMap("b")
}

// What a controller made of our object, label included, is the garbage collector's.
func TestLaw3ControlledByAnother(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	uid := f.kubectl("get", "configmap", "a", "-o", "jsonpath={.metadata.uid}")
	f.kubectl("patch", "configmap", "b", "--type=merge", "-p",
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"`+uid+`","controller":true}]}}`)
	p, _ := f.sync(oneMap)
	f.want(p, "skip ConfigMap/b")
}

// Prune is last, and does not begin when anything before it failed.
func TestLaw3PruneLast(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	changed := strings.Replace(oneMap, "one", "changed", 1) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: $NS}\n"
	p := f.plan(changed)
	f.want(p, "create ConfigMap/c", "delete ConfigMap/b", "update ConfigMap/a")
	if last := p.Waves[len(p.Waves)-1]; last.Name != apply.WavePrune {
		t.Fatalf("the last wave is %s", last.Name)
	}
	// The plan was made while nothing was denied; the change of a fails when it runs.
	f.denyUpdates("a")
	r, err := f.applier.Run(t.Context(), p)
	if err == nil {
		t.Fatal("the update was not denied")
	}
	if failed := r.Failed(); len(failed) != 1 || f.short(failed[0].ID) != "ConfigMap/a" {
		t.Fatalf("failed: %+v", failed)
	}
	if missed := r.NotReached(); len(missed) != 1 || f.short(missed[0].ID) != "ConfigMap/b" {
		t.Fatalf("not reached: %+v", missed)
	}
	if got := r.Counts(); got.Create != 1 || got.Delete != 0 {
		t.Fatalf("done: %s", got)
	}
	f.configMap("b")
	f.configMap("c")
	f.allow()
	p, _ = f.sync(changed)
	f.want(p, "delete ConfigMap/b", "update ConfigMap/a")
}

// A delete that admission denies: an error, still ours, and done once it is allowed.
func TestLaw3DeniedDeleteStaysOurs(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	f.denyDeletes("b")
	p := f.plan(oneMap)
	r, err := f.applier.Run(t.Context(), p)
	if err == nil || !strings.Contains(err.Error(), "delete ConfigMap/"+f.ns+"/b") {
		t.Fatalf("want the delete's error, got %v", err)
	}
	if r.Objects != 2 || len(r.Failed()) != 1 {
		t.Fatalf("result: %+v", r)
	}
	f.configMap("b")
	f.allow()
	p, _ = f.sync(oneMap)
	f.want(p, "delete ConfigMap/b")
	f.gone("", "v1", "configmaps", "b")
}

const namespaceAndMap = oneMap + `---
apiVersion: v1
kind: Namespace
metadata: {name: $NS-extra}
`

func TestLaw3NamespaceNeedsAWord(t *testing.T) {
	f := newFixture(t)
	f.kubectl("create", "namespace", f.ns+"-extra")
	f.sync(namespaceAndMap)
	f.settled(namespaceAndMap)
	f.guarded(f.plan(oneMap), apply.GuardDefinition, "Namespace/"+f.ns+"-extra", "mooring.dev/prune=disabled")
	f.kubectl("annotate", "namespace", f.ns+"-extra", "mooring.dev/prune=disabled")
	p, _ := f.sync(oneMap)
	f.want(p, "skip Namespace/"+f.ns+"-extra")
	f.kubectl("annotate", "namespace", f.ns+"-extra", "mooring.dev/prune-")
	f.policy.Confirmed = true
	p, _ = f.sync(oneMap)
	f.want(p, "delete Namespace/"+f.ns+"-extra")
}

const widgetDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$NS.test.mooring.dev}
spec:
  group: $NS.test.mooring.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
              fixed:
                type: string
                x-kubernetes-validations: [{rule: "self == oldSelf", message: "fixed is immutable"}]
`

const widget = `
apiVersion: $NS.test.mooring.dev/v1
kind: Widget
metadata: {name: w, namespace: $NS}
spec: {size: 1}
`

func TestLaw3DefinitionNeedsAWord(t *testing.T) {
	f := newFixture(t)
	all := oneMap + "---\n" + widgetDefinition + "---\n" + widget
	p, _ := f.sync(all)
	f.want(p, "create ConfigMap/a", "create CustomResourceDefinition/widgets."+f.ns+".test.mooring.dev", "create Widget/w")
	f.settled(all)
	f.guarded(f.plan(oneMap), apply.GuardDefinition, "CustomResourceDefinition/widgets."+f.ns+".test.mooring.dev")
	f.get(f.ns+".test.mooring.dev", "v1", "widgets", "w")

	f.policy.Confirmed = true
	p, _ = f.sync(oneMap)
	f.want(p, "delete CustomResourceDefinition/widgets."+f.ns+".test.mooring.dev", "delete Widget/w")
	// The kind goes away with its definition, and the next passes do not trip over it.
	f.eventually("the kind is gone", func() bool {
		_, err := f.cluster.Kubectl(t.Context(), "get", "crd", "widgets."+f.ns+".test.mooring.dev")
		return err != nil
	})
	f.settled(oneMap)
	f.applier = f.newApplier(f.cluster.Config())
	f.settled(oneMap)
}
