package apply_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mooring-dev/mooring/apply"
	"github.com/mooring-dev/mooring/test/kube"
)

// Every object carries our label, under our name, from the very request that creates it.
func TestLaw2LabelledFromBirth(t *testing.T) {
	f := newFixture(t)
	f.sync(twoMaps)
	live := f.configMap("a")
	if live.GetLabels()[apply.PartOfLabel] != f.unit.ID {
		t.Fatalf("labels: %v", live.GetLabels())
	}
	// One entry and one resourceVersion since creation: there was no second request.
	fields := live.GetManagedFields()
	if len(fields) != 1 || fields[0].Manager != apply.FieldManager || fields[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Fatalf("managedFields: %v", fields)
	}
}

// The wire is cut after each write in turn, as if the agent had been killed there; a new agent goes on with another commit. Whatever the old one left
// is found, and goes.
func TestLaw2CrashAfterEachWrite(t *testing.T) {
	cluster := kube.Start(t)
	const withSecret = twoMaps + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: $NS}\n" +
		"---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: sa, namespace: $NS}\n"
	for crash := 1; crash <= 4; crash++ {
		t.Run(fmt.Sprint(crash), func(t *testing.T) {
			wire := &recorder{cut: func(write int) bool { return write >= crash }}
			f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
			p := f.plan(withSecret)
			r, err := f.applier.Run(t.Context(), p)
			if err == nil {
				t.Fatal("the run went well with a cut wire")
			}
			if len(r.Steps) != 4 || len(r.Failed()) == 0 {
				t.Fatalf("the result is not complete: %+v", r.Steps)
			}
			f.applier = f.newApplier(cluster.Config())
			p, _ = f.sync("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: $NS}\n")
			var tracked []string
			for s := range p.Steps() {
				if s.Action == apply.Delete {
					tracked = append(tracked, f.short(s.ID))
				}
			}
			// The server answered every write that was sent, so whatever was sent is there.
			sent := len(slices.DeleteFunc(wire.take(), func(r string) bool { return r[:5] != "PATCH" || r[len(r)-1] == ')' }))
			if len(tracked) != sent {
				t.Fatalf("%d objects were made, and these were found again: %v", sent, tracked)
			}
			for _, kind := range []string{"configmap", "secret", "serviceaccount"} {
				if left := f.kubectl("get", kind, "-o", "name", "-l", apply.PartOfLabel); left != "" && left != "configmap/other\n" {
					t.Errorf("left behind: %s", left)
				}
			}
		})
	}
}

// The parent is told the kinds before the first write; when that fails nothing is written.
func TestLaw2KindsAreRecordedFirst(t *testing.T) {
	cluster := kube.Start(t)
	wire := &recorder{}
	f := newFixtureAs(t, cluster, wire.config(cluster.Config()))
	f.unit.Record = nil
	p := f.plan(twoMaps)
	p.Unit.Record = refuseToRecord
	if _, err := f.applier.Run(t.Context(), p); err == nil {
		t.Fatal("want the error of Record")
	}
	if wire.n != 0 {
		t.Fatalf("%d writes before the kinds were recorded", wire.n)
	}
}

// The same for a take-over, which writes twice: whichever write was the last, the next pass ends where it should.
func TestLaw2CrashInATakeOver(t *testing.T) {
	cluster := kube.Start(t)
	for crash := 1; crash <= 2; crash++ {
		t.Run(fmt.Sprint(crash), func(t *testing.T) {
			f := newFixture(t)
			f.sync(oneMap)
			f.edit("configmap", "a", `{"data":{"k":"drift","more":"by hand"}}`)
			wire := &recorder{cut: func(write int) bool { return write >= crash }}
			f.applier = f.newApplier(wire.config(cluster.Config()))
			if _, err := f.applier.Run(t.Context(), f.plan(oneMap)); err == nil {
				t.Fatal("the run went well with a cut wire")
			}
			f.applier = f.newApplier(cluster.Config())
			f.sync(oneMap)
			f.settled(oneMap)
			if got := f.kubectl("get", "configmap", "a", "-o", "jsonpath={.data}"); got != `{"k":"one"}` {
				t.Fatalf("data is %s", got)
			}
		})
	}
}
